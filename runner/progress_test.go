package runner

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/env"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(100)
		b.plan.Tasks = tasks(10)
		b.run(t) // ten episodes are recorded
		b.plan.Tasks = tasks(100)
		b.opts.Workers = 2
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			<-time.After(10 * time.Second)
			return playOnce(ctx, e, ep, tr)
		})
		r := b.runner(t)
		wantProgress(t, r.Progress(), Progress{Total: 100}) // before the run
		done := make(chan error)
		go func() {
			_, err := r.Run(t.Context(), t.Context())
			done <- err
		}()
		<-time.After(105 * time.Second)
		p := r.Progress()
		wantProgress(t, p, Progress{ // two end every 10 s
			Done: 30, Skipped: 10, InFlight: 2, Total: 100, Elapsed: 105 * time.Second,
			Rate: 20.0 / 105, ETA: 70 * 105 / 20 * time.Second,
		})
		wantTally(t, p)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantProgress(t, r.Progress(), Progress{
			Done: 100, Skipped: 10, Total: 100, Elapsed: 450 * time.Second, Rate: 90.0 / 450,
		})
	})
}

// wantProgress compares all but the tallies.
func wantProgress(t *testing.T, got, want Progress) {
	t.Helper()
	got.ETA = got.ETA.Truncate(time.Second)
	want.ETA = want.ETA.Truncate(time.Second)
	options := cmp.Options{
		cmpopts.IgnoreFields(Progress{}, "Variants", "Tally"), cmpopts.EquateApprox(0, 1e-9),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// wantTally wants 30 good episodes, in all and for the one variant.
func wantTally(t *testing.T, p Progress) {
	t.Helper()
	if p.CostKnown != 3000 || p.Usage.Total() != 300 || p.Episodes[dataset.OutcomeModel] != 30 {
		t.Errorf("cost %d, %d tokens, %v", p.CostKnown, p.Usage.Total(), p.Episodes)
	}
	if v := p.Variants[0]; v.Name != "v" || v.Done != 30 || v.Scored != 30 || v.InFlight != 2 || v.Total != 100 || v.Skipped != 10 || v.Stopped {
		t.Errorf("variant %+v", v)
	}
}

func TestRate(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	t.Run("none yet", func(t *testing.T) {
		var r rate
		if got := r.at(start); got != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("fast", func(t *testing.T) {
		var r rate
		r.add(start, 0)
		for i := range 100_000 { // a thousand a second, for 100 s
			r.add(at(float64(i+1)/1000), 1)
		}
		if got := r.at(at(100)); math.Abs(got-1000) > 10 {
			t.Errorf("got %v, want about 1000", got)
		}
	})
	t.Run("changing", func(t *testing.T) {
		var r rate
		r.add(start, 0)
		now := 0.0
		for range 1000 { // one a second, then ten
			now++
			r.add(at(now), 1)
		}
		for range 2600 {
			now += 0.1
			r.add(at(now), 1)
		}
		if got := r.at(at(now)); math.Abs(got-10) > 0.5 {
			t.Errorf("got %v, want about 10", got)
		}
	})
	t.Run("standing still", func(t *testing.T) {
		var r rate
		r.add(start, 0)
		r.add(at(1), 10)
		if got := r.at(at(100)); got != 0.1 {
			t.Errorf("got %v, want 0.1", got)
		}
	})
}

// TestRateSums checks what the ring is for: the sum of all ticks but the oldest.
func TestRateSums(t *testing.T) {
	var r rate
	start := time.Unix(0, 0)
	r.add(start, 5)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 3 * rateTicks {
		r.add(start.Add(time.Duration(i+1)*time.Second), rng.IntN(100))
		want := 0
		for _, tick := range r.ticks {
			want += tick.n
		}
		oldest := r.ticks[0].n
		if r.n == rateTicks {
			oldest = r.ticks[r.next].n
		}
		if r.sum != want-oldest {
			t.Fatalf("after %d: the sum is %d, want %d", i, r.sum, want-oldest)
		}
	}
}

func TestMean(t *testing.T) {
	for _, test := range []struct {
		name            string
		sum             float64
		scored, planned int
		want            Mean
	}{
		{"nothing planned", 0, 0, 0, Mean{}},
		{"nothing scored", 0, 0, 4, Mean{Low: new(0.0), High: new(1.0)}},
		{"half of them missing", 1, 2, 4, Mean{Value: new(0.5), Low: new(0.25), High: new(0.75)}},
		{"all", 3, 4, 4, Mean{Value: new(0.75), Low: new(0.75), High: new(0.75)}},
		{"more than planned", 3, 4, 2, Mean{Value: new(0.75), Low: new(0.75), High: new(0.75)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, meanOf(test.sum, test.scored, test.planned)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	outcomes := func(model, infra, task, unscored int) VariantSummary {
		return VariantSummary{Planned: 10, Tally: store.Tally{Unscored: unscored, Episodes: map[dataset.Outcome]int{
			dataset.OutcomeModel: model, dataset.OutcomeInfra: infra, dataset.OutcomeTask: task,
		}}}
	}
	fine, allInfra := outcomes(10, 0, 0, 0), outcomes(0, 10, 0, 0)
	for _, test := range []struct {
		name string
		s    Summary
		err  error
		want int
	}{
		{"finished", Summary{Total: fine}, nil, CodeOK},
		{"an error before all", Summary{Total: allInfra, Interrupted: true, Stopped: StopCost}, errors.New("disk"), CodeError},
		{"interrupted before a budget", Summary{Total: allInfra, Interrupted: true, Stopped: StopCost}, nil, CodeInterrupted},
		{"a budget before failures", Summary{Total: allInfra, Stopped: StopTime}, nil, CodeEarly},
		{"none of model", Summary{Total: allInfra}, nil, CodeNoModel},
		{"just the share allowed", Summary{Total: outcomes(9, 1, 0, 0)}, nil, CodeOK},
		{"infra and task", Summary{Total: outcomes(8, 1, 1, 0)}, nil, CodeFailures},
		{"unscored", Summary{Total: outcomes(10, 0, 0, 2)}, nil, CodeFailures},
		{"an empty shard", Summary{}, nil, CodeOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ExitCode(test.s, test.err, 0.1); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// TestProgressCountsFailures: every attempt that failed without the model's
// doing counts, also one that was made good by another.
func TestProgressCountsFailures(t *testing.T) {
	b := setup(100)
	b.plan.Cells = [][]Cell{{unsteady("a")}}
	b.opts.InfraRetries = 2
	r := b.runner(t)
	if _, err := r.Run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, tr := range b.sink.rows {
		if o := tr.Outcome(); o == dataset.OutcomeInfra || o == dataset.OutcomeTask {
			class := tr.ErrorClass
			if class == "" {
				class = string(tr.ExitReason)
			}
			want[class]++
		}
	}
	if diff := cmp.Diff(want, r.Progress().Failures); diff != "" || len(want) < 2 {
		t.Errorf("(-recorded +progress):\n%s", diff)
	}
}
