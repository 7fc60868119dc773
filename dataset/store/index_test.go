package store

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

func TestIndexCurrentAttempt(t *testing.T) {
	id := sampleEpisode(0).ID
	at := func(n int, o dataset.Outcome) Attempt {
		return Attempt{EpisodeID: id, Attempt: n, Outcome: o, VariantHash: "v", ScorerHash: "s"}
	}
	const model, infra, operator, budget, task = dataset.OutcomeModel, dataset.OutcomeInfra, dataset.OutcomeOperator, dataset.OutcomeBudget, dataset.OutcomeTask
	tests := []struct {
		name    string
		add     []Attempt
		current int
		outcome dataset.Outcome
		infra   int
	}{
		{"one", []Attempt{at(0, model)}, 0, model, 0},
		{"retried", []Attempt{at(0, infra), at(1, infra), at(2, model)}, 2, model, 2},
		{"only failures", []Attempt{at(0, infra), at(1, operator)}, 1, operator, 1},
		{"an end stays before later failures", []Attempt{at(0, task), at(1, infra), at(2, operator)}, 0, task, 1},
		{"budget, then run again", []Attempt{at(0, budget), at(1, model)}, 1, model, 0},
		{"in any order", []Attempt{at(2, infra), at(0, infra), at(1, model)}, 1, model, 2},
		{"an outcome of a later release", []Attempt{at(0, "novel")}, 0, infra, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ix := NewIndex()
			highest := 0
			for _, a := range tt.add {
				highest = max(highest, a.Attempt)
				if err := ix.Add(a); err != nil {
					t.Fatal(err)
				}
			}
			want := State{
				Attempts: highest + 1, Current: tt.current, Outcome: tt.outcome, Infra: tt.infra,
				VariantHash: "v", ScorerHash: "s",
			}
			if diff := cmp.Diff(want, ix.State(id)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			tally := ix.Tallies()[0]
			if tally.Attempts != len(tt.add) || tally.Total() != 1 || tally.Episodes[tt.outcome] != 1 {
				t.Errorf("tally = %+v, want one episode of outcome %s", tally, tt.outcome)
			}
		})
	}
}

func TestIndexRefuses(t *testing.T) {
	ix := NewIndex()
	for _, a := range []Attempt{
		{EpisodeID: "short"},
		{EpisodeID: strings.Repeat("x", 32)},
		{EpisodeID: sampleEpisode(0).ID, Attempt: -1},
		{EpisodeID: sampleEpisode(0).ID, Attempt: math.MaxUint16},
	} {
		if err := ix.Add(a); err == nil {
			t.Errorf("%+v was taken", a)
		}
	}
	if ix.Len() != 0 || len(ix.Tallies()) != 0 {
		t.Error("what was refused was counted")
	}
	if got := ix.State("unknown"); got != (State{}) {
		t.Errorf("state of an unknown episode = %+v", got)
	}
}

// TestIndexRewards: only finite values of attempts that the model ended count.
func TestIndexRewards(t *testing.T) {
	ix := NewIndex()
	for i, a := range []Attempt{
		{Outcome: dataset.OutcomeModel, Reward: new(1.0), Passed: new(true)},
		{Outcome: dataset.OutcomeModel, Reward: new(math.NaN()), Passed: new(true)},
		{Outcome: dataset.OutcomeModel, Flags: []string{dataset.FlagUnscored, dataset.FlagNeedsWorld}, Truncated: true},
		{Outcome: dataset.OutcomeBudget, Reward: new(0.5), Passed: new(false)},
	} {
		a.EpisodeID = sampleEpisode(i).ID
		if err := ix.Add(a); err != nil {
			t.Fatal(err)
		}
	}
	got := ix.Tallies()[0]
	if got.Scored != 1 || got.Passed != 1 || got.RewardSum != 1 || got.Unscored != 1 || got.Truncated != 1 {
		t.Errorf("tally = %+v", got)
	}
	if s := ix.State(sampleEpisode(2).ID); !s.Unscored || !s.NeedsWorld {
		t.Errorf("state = %+v, want it unscored", s)
	}
	for _, value := range []*float64{nil, new(math.Inf(1))} {
		if err := ix.Reward(sampleEpisode(2).ID, 0, "s", value, nil); err != nil || !ix.State(sampleEpisode(2).ID).Unscored {
			t.Errorf("a reward of %v scored it (%v)", value, err)
		}
	}
	if !ix.Any(func(s State) bool { return s.Unscored }) {
		t.Error("Any finds no unscored episode")
	}
}

// TestIndexMemory holds a large run to its promise of 64 bytes an episode.
func TestIndexMemory(t *testing.T) {
	const promise, slack = 64, 2
	ids := make([]string, 250_000) // where the map has just grown
	for i := range ids {
		ids[i] = dataset.EpisodeID("g", i)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	ix := NewIndex()
	for _, id := range ids {
		if err := ix.Add(Attempt{EpisodeID: id, Outcome: dataset.OutcomeModel, Reward: new(1.0), VariantHash: "v"}); err != nil {
			t.Fatal(err)
		}
	}
	per := float64(heap()-before) / float64(len(ids))
	runtime.KeepAlive(ix)
	runtime.KeepAlive(ids)
	if per > promise+slack {
		t.Errorf("%.1f bytes an episode, want %d", per, promise)
	}
}
