package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// TestForecastIsWhatRunDoes runs a plan whose episodes end in all ways over and
// over, each time under other options, and forecasts it before.
func TestForecastIsWhatRunDoes(t *testing.T) {
	b := setup(100)
	b.plan.Samples = 2
	b.plan.Cells = [][]Cell{{unsteady("a")}, {unsteady("b")}}
	for i, opts := range []Options{
		{},
		{InfraRetries: 1},
		{InfraRetries: 2, Retry: Retry{Task: true}},
		{Retry: Retry{Infra: true}},
		{},
	} {
		b.opts.InfraRetries, b.opts.Retry = opts.InfraRetries, opts.Retry
		forecast, err := b.plan.Forecast(b.opts)
		if err != nil {
			t.Fatal(err)
		}
		known := b.opts.Index.Len()
		want := []Forecast{ran(t, b, "a", known > 0), ran(t, b, "b", known > 0)}
		got := []Forecast{forecast[0][0], forecast[1][0]}
		for v := range got {
			got[v].Waiting = 0 // scored by the run only where Options.Recorded yields them
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("invocation %d (-ran +forecast):\n%s", i, diff)
		}
	}
}

// ran counts the episodes of a variant of which a run of the bundle makes
// attempts. The first call of a pair runs it.
func ran(t *testing.T, b *testBundle, variant string, before bool) Forecast {
	t.Helper()
	if variant == "a" {
		b.sink.rows = nil
		b.run(t)
	}
	f := Forecast{Planned: 200}
	first := map[string]int{} // episode to its first attempt of this invocation
	for _, tr := range b.sink.rows {
		if tr.Episode.Variant != variant {
			continue
		}
		if at, seen := first[tr.Episode.ID]; !seen || tr.Episode.Attempt < at {
			first[tr.Episode.ID] = tr.Episode.Attempt
		}
	}
	for _, attempt := range first {
		f.Due++
		if attempt > 0 {
			f.Again++
		}
	}
	if before && f.Again != f.Due {
		t.Errorf("variant %s: %d episodes ran for the first time in a later invocation", variant, f.Due-f.Again)
	}
	return f
}

// TestForecastOfScores: what waits for a score is told apart from what runs.
func TestForecastOfScores(t *testing.T) {
	b := setup(4)
	var all []dataset.Task
	for task, err := range b.plan.Tasks {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, task)
	}
	at := func(i int, flags ...string) store.Attempt {
		task := all[i]
		group := dataset.GroupID(b.plan.Seed, task, "hash of v", 0)
		return store.Attempt{
			EpisodeID: dataset.EpisodeID(group, 0), VariantHash: "hash of v", ScorerHash: "scorers",
			Outcome: dataset.OutcomeModel, Reward: new(1.0), Flags: flags,
		}
	}
	unscored, old, live := at(0, dataset.FlagUnscored), at(1), at(2, dataset.FlagUnscored, dataset.FlagNeedsWorld)
	old.ScorerHash = "others"
	for _, a := range []store.Attempt{unscored, old, live, at(3)} {
		if err := b.opts.Index.Add(a); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.plan.Forecast(b.opts)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Forecast{{{Planned: 4, Due: 1, Again: 1, Waiting: 2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if reused := got[0][0].Reused(); reused != 3 {
		t.Errorf("%d are reused, want 3", reused)
	}
}
