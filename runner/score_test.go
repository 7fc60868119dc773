package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

func ends(reason dataset.ExitReason) Rollout {
	return rolloutFunc(func(_ context.Context, _ env.Env, _ dataset.Episode, tr *dataset.Trajectory) error {
		tr.ExitReason = reason
		return nil
	})
}

func scorerOf(rewards []dataset.Reward, err error) Scorer {
	return scorerFunc(func(context.Context, dataset.Task, *dataset.Trajectory) ([]dataset.Reward, error) {
		return rewards, err
	})
}

func envScoring(rewards []dataset.Reward, err error) env.Factory {
	return envs(fakeEnv{score: func(context.Context, *dataset.Trajectory) ([]dataset.Reward, error) { return rewards, err }})
}

func TestScoring(t *testing.T) {
	judge := &model.Error{Class: model.ClassTimeout, Err: errors.New("judge away")}
	for _, test := range []struct {
		name       string
		spoil      func(c *Cell)
		want       dataset.ExitReason
		wantReward *float64
		wantFlags  []string
		wantError  string
	}{{
		name: "a limit is scored",
		spoil: func(c *Cell) {
			c.Rollout, c.Scorers = ends(dataset.ExitTurnLimit), []Scorer{scorerOf(reward(0.5), nil)}
		},
		want:       dataset.ExitTurnLimit,
		wantReward: new(0.5),
	}, {
		name:  "infra is not scored",
		spoil: func(c *Cell) { c.Rollout = ends(dataset.ExitProviderError) },
		want:  dataset.ExitProviderError,
	}, {
		name: "the env scores first, the scorers have the last word",
		spoil: func(c *Cell) {
			c.Env, c.Scorers = envScoring(reward(0), nil), []Scorer{scorerOf(reward(0.25), nil)}
		},
		want:       dataset.ExitEnvDone,
		wantReward: new(0.25),
	}, {
		name:       "the env alone",
		spoil:      func(c *Cell) { c.Env, c.Scorers = envScoring(reward(0.75), nil), nil },
		want:       dataset.ExitEnvDone,
		wantReward: new(0.75),
	}, {
		name: "nobody",
		spoil: func(c *Cell) {
			c.Scorers = nil
		},
		want: dataset.ExitEnvDone,
	}, {
		name: "one scorer of two fails",
		spoil: func(c *Cell) {
			c.Scorers = []Scorer{scorerOf(nil, judge), scorerOf(reward(1), nil)}
		},
		want:      dataset.ExitEnvDone,
		wantFlags: []string{dataset.FlagUnscored},
		wantError: "scoring: timeout: judge away",
	}, {
		name:      "no number",
		spoil:     func(c *Cell) { c.Scorers = []Scorer{scorerOf(reward(math.NaN()), nil)} },
		want:      dataset.ExitEnvDone,
		wantFlags: []string{dataset.FlagUnscored},
		wantError: `scoring: reward "exact" is NaN`,
	}, {
		name:      "the verifier is at fault",
		spoil:     func(c *Cell) { c.Env = envScoring(nil, fmt.Errorf("tests: %w", dataset.ErrTask)) },
		want:      dataset.ExitVerifierError,
		wantError: "tests: task at fault",
	}, {
		name:      "the env cannot score",
		spoil:     func(c *Cell) { c.Env = envScoring(nil, errors.New("sandbox gone")) },
		want:      dataset.ExitEnvDone,
		wantFlags: []string{dataset.FlagUnscored, dataset.FlagNeedsWorld},
		wantError: "scoring: sandbox gone",
	}} {
		t.Run(test.name, func(t *testing.T) {
			b := setup(1)
			test.spoil(b.cell())
			b.run(t)
			tr := b.one(t)
			got := dataset.Trajectory{ExitReason: tr.ExitReason, Reward: tr.Reward, Flags: tr.Flags, Error: tr.Error}
			want := dataset.Trajectory{
				ExitReason: test.want, Reward: test.wantReward, Flags: test.wantFlags, Error: test.wantError,
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(dataset.Books{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			chosen := slices.ContainsFunc(tr.Rewards, func(r dataset.Reward) bool { return r.Chosen })
			if chosen != (tr.Reward != nil) {
				t.Errorf("a reward's row says chosen: %v, the attempt's row has reward %v", chosen, tr.Reward)
			}
		})
	}
}

func TestScoreSpans(t *testing.T) {
	b := setup(1)
	b.cell().Env = envScoring(reward(1), nil)
	b.cell().Scorers = []Scorer{scorerOf(nil, &model.Error{Class: model.ClassServer, Err: errors.New("down")}), scorerFunc(exact)}
	b.run(t)
	want := []dataset.Span{
		{ID: "score.env", Kind: dataset.SpanScore, Name: "exact", Status: "ok"},
		{
			ID: "score.0", Kind: dataset.SpanScore, Name: "score.0", Status: "error",
			ErrorClass: model.ClassServer, Attrs: map[string]any{"error": "server_error: down"},
		},
		{ID: "score.1", Kind: dataset.SpanScore, Name: "exact", Status: "ok"},
	}
	got := b.one(t).Spans[1:]
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dataset.Span{}, "Start", "Duration")); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// TestCutOffWhileScoring tells what only the world can score from the rest.
func TestCutOffWhileScoring(t *testing.T) {
	wait := func(ctx context.Context, _ *dataset.Trajectory) ([]dataset.Reward, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	for _, test := range []struct {
		name  string
		spoil func(c *Cell)
		want  dataset.ExitReason
	}{
		{"in the env", func(c *Cell) { c.Env = envs(fakeEnv{score: wait}) }, dataset.ExitInterrupted},
		{"in a scorer", func(c *Cell) {
			c.Scorers = []Scorer{scorerFunc(func(ctx context.Context, _ dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
				return wait(ctx, tr)
			})}
		}, dataset.ExitEnvDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := setup(1)
				test.spoil(b.cell())
				work, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(time.Second, func() { cancel(dataset.ErrInterrupted) }).Stop()
				if _, err := b.runner(t).Run(t.Context(), work); err != nil {
					t.Fatal(err)
				}
				tr := b.one(t)
				if tr.ExitReason != test.want || tr.Reward != nil {
					t.Errorf("got exit %q, reward %v, want %q, null", tr.ExitReason, tr.Reward, test.want)
				}
				if got := tr.Spans[len(tr.Spans)-1].Status; got != "cancelled" && test.want == dataset.ExitEnvDone {
					t.Errorf("the scorer's span is %q", got)
				}
			})
		})
	}
}

func TestGradingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(64)
		b.opts.Workers, b.opts.Grading = 64, 3
		slots := make(chan struct{}, 3)
		b.cell().Scorers = []Scorer{scorerFunc(func(context.Context, dataset.Task, *dataset.Trajectory) ([]dataset.Reward, error) {
			select {
			case slots <- struct{}{}:
			default:
				t.Error("more than 3 scorers at once")
				return nil, nil
			}
			<-time.After(time.Minute)
			<-slots
			return reward(1), nil
		})}
		if s := b.run(t); s.Duration != 22*time.Minute {
			t.Errorf("64 scorings, 3 at a time, took %v, want 22m", s.Duration)
		}
	})
}

// TestCutOffBeforeScoring waits for a scorer's place when the work is cut off.
func TestCutOffBeforeScoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(2)
		b.opts.Grading = 1
		b.cell().Scorers = []Scorer{scorerFunc(func(ctx context.Context, _ dataset.Task, _ *dataset.Trajectory) ([]dataset.Reward, error) {
			<-ctx.Done()
			<-time.After(time.Second) // the other one gives up first
			return nil, context.Cause(ctx)
		})}
		work, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Second, func() { cancel(dataset.ErrInterrupted) }).Stop()
		if _, err := b.runner(t).Run(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		got := []string{b.sink.rows[0].Error, b.sink.rows[1].Error}
		want := []string{"scoring: waiting to score: interrupted", "scoring: interrupted"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	})
}

// recorded yields what the sink has, as a store does on resume.
func (s *memory) recorded() iter.Seq2[*dataset.Trajectory, error] {
	return func(yield func(*dataset.Trajectory, error) bool) {
		for _, tr := range s.sorted() {
			if !yield(tr, nil) {
				return
			}
		}
	}
}

func TestRescore(t *testing.T) {
	b := setup(20)
	b.cell().Scorers = []Scorer{scorerOf(nil, errors.New("judge away"))}
	s := b.run(t)
	if s.Total.Unscored != 20 || s.Total.Reward.Value != nil || ExitCode(s, nil, 0.5) != CodeFailures {
		t.Fatalf("%d unscored, mean %v, exit code %d", s.Total.Unscored, s.Total.Reward.Value, ExitCode(s, nil, 0.5))
	}

	b.opts.Recorded = b.sink.recorded()
	b.cell().Rollout = rolloutFunc(func(context.Context, env.Env, dataset.Episode, *dataset.Trajectory) error {
		t.Error("an episode was bought again")
		return nil
	})
	b.cell().Scorers = []Scorer{scorerFunc(func(ctx context.Context, task dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
		if task.Input == "3" {
			panic("still broken")
		}
		return exact(ctx, task, tr)
	})}
	s = b.run(t)
	if s.Rescored != 19 || s.Total.Unscored != 1 || s.Total.Scored != 19 || s.Total.Passed != 19 || len(b.sink.late) != 19 {
		t.Errorf("%d rescored, %d unscored, %d scored, %d passed, %d rows, want 19, 1, 19, 19, 19",
			s.Rescored, s.Total.Unscored, s.Total.Scored, s.Total.Passed, len(b.sink.late))
	}
	for _, late := range b.sink.late {
		if r := late.Reward; !r.Chosen || r.Passed == nil || !*r.Passed || r.ScorerHash != "scorers" {
			t.Errorf("late reward %+v", r)
		}
	}
	if s := b.run(t); s.Rescored != 0 {
		t.Errorf("%d were scored once more", s.Rescored)
	}
}

// TestRescoreOfTwoSources finds the scorers of each source, by hash and, where
// two share it, by the task.
func TestRescoreOfTwoSources(t *testing.T) {
	twin, other := cell("v"), cell("v")
	other.Variant.Hash = "hash of v, elsewhere"
	b := setup(0)
	b.plan.Cells = [][]Cell{{cell("v"), twin, other}}
	b.plan.Tasks = func(yield func(dataset.Task, error) bool) {
		for source := range 3 {
			if !yield(dataset.Task{ID: strconv.Itoa(source), Source: source}, nil) {
				return
			}
		}
	}
	cells := b.plan.Cells[0]
	for i := range cells {
		cells[i].Scorers = []Scorer{scorerOf(nil, errors.New("judge away"))}
	}
	b.run(t)
	for i := range cells {
		cells[i].Scorers = []Scorer{scorerOf(reward(float64(i)), nil)}
	}
	b.sink.sorted()[2].Episode.Task.Source = 0 // a store need not know it
	b.opts.Recorded = b.sink.recorded()
	b.opts.Workers, b.opts.Grading = 1, 1
	b.run(t)
	for _, late := range b.sink.late {
		tr := b.sink.rows[slices.IndexFunc(b.sink.rows, func(tr *dataset.Trajectory) bool { return tr.Episode.ID == late.EpisodeID })]
		if got := fmt.Sprint(*late.Reward.Value); got != tr.Episode.Task.ID {
			t.Errorf("the task of source %s was scored by source %s", tr.Episode.Task.ID, got)
		}
	}
	if len(b.sink.late) != 3 {
		t.Errorf("%d late rewards, want 3", len(b.sink.late))
	}
}

// TestRescoreUnderAnotherScorer keeps the env's reward and replaces the
// scorers'.
func TestRescoreUnderAnotherScorer(t *testing.T) {
	b := setup(3)
	b.cell().Env = envScoring(reward(0.5), nil)
	b.run(t)
	b.cell().Variant.ScorerHash = "stricter"
	b.cell().Scorers = []Scorer{scorerFunc(func(_ context.Context, _ dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
		if len(tr.Rewards) != 1 || tr.Rewards[0].Source != dataset.FromEnv {
			t.Errorf("the scorer sees %+v", tr.Rewards)
		}
		return reward(0), nil
	})}
	b.opts.Recorded = b.sink.recorded()
	s := b.run(t)
	if s.Rescored != 3 || s.Total.Passed != 0 || *s.Total.Reward.Value != 0 || s.Total.Attempts != 3 || len(b.sink.late) != 3 {
		t.Errorf("%d rescored, %d passed, mean %v, %d late", s.Rescored, s.Total.Passed, *s.Total.Reward.Value, len(b.sink.late))
	}
}

// TestRescoreOnlyCurrentAttempts has an earlier attempt that nothing waits for.
func TestRescoreOnlyCurrentAttempts(t *testing.T) {
	b := setup(1)
	b.cell().Env = envScoring(nil, errors.New("sandbox gone"))
	b.run(t)
	b.cell().Env = envScoring(nil, nil)
	b.cell().Scorers = []Scorer{scorerOf(nil, errors.New("judge away"))}
	b.run(t)
	b.cell().Scorers = []Scorer{scorerFunc(exact)}
	b.opts.Recorded = b.sink.recorded()
	b.run(t)
	if len(b.sink.late) != 1 || b.sink.late[0].Attempt != 1 {
		t.Errorf("late rewards %+v, want one of attempt 1", b.sink.late)
	}
}

func TestRunTimeEndsRescoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(20)
		b.cell().Scorers = []Scorer{scorerOf(nil, errors.New("judge away"))}
		b.run(t)
		b.opts.Recorded, b.opts.Grading, b.opts.RunTime = b.sink.recorded(), 1, 3500*time.Millisecond
		b.cell().Scorers = []Scorer{scorerFunc(func(context.Context, dataset.Task, *dataset.Trajectory) ([]dataset.Reward, error) {
			<-time.After(time.Second)
			return reward(1), nil
		})}
		if s := b.run(t); s.Rescored != 4 || s.Stopped != StopTime {
			t.Errorf("%d rescored, stopped by %q, want 4, time", s.Rescored, s.Stopped)
		}
	})
}

func TestRescoreErrors(t *testing.T) {
	unscored := func() *testBundle {
		b := setup(5)
		b.cell().Scorers = []Scorer{scorerOf(nil, errors.New("judge away"))}
		b.run(t)
		b.opts.Recorded = b.sink.recorded()
		b.cell().Scorers = []Scorer{scorerFunc(exact)}
		return b
	}
	t.Run("sink", func(t *testing.T) {
		b := unscored()
		b.sink.fail = errDisk
		s, err := b.runner(t).Run(t.Context(), t.Context())
		if !errors.Is(err, errDisk) || s.Total.Unscored != 5 {
			t.Errorf("error %v, %d unscored, want %v, 5", err, s.Total.Unscored, errDisk)
		}
	})
	t.Run("reader", func(t *testing.T) {
		b := unscored()
		b.opts.Recorded = func(yield func(*dataset.Trajectory, error) bool) { yield(nil, errDisk) }
		if _, err := b.runner(t).Run(t.Context(), t.Context()); !errors.Is(err, errDisk) {
			t.Errorf("error %v, want %v", err, errDisk)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		b := unscored()
		admit, cancel := context.WithCancel(t.Context())
		cancel()
		s, err := b.runner(t).Run(admit, t.Context())
		if err != nil || !s.Interrupted {
			t.Errorf("error %v, interrupted %v, want none, true", err, s.Interrupted)
		}
	})
}

// TestNeedsWorldRunsAgain cannot be scored without a new attempt.
func TestNeedsWorldRunsAgain(t *testing.T) {
	b := setup(1)
	b.cell().Env = envScoring(nil, errors.New("sandbox gone"))
	b.run(t)
	b.opts.Recorded = b.sink.recorded()
	b.cell().Env = envScoring(reward(1), nil)
	s := b.run(t)
	if diff := cmp.Diff([]string{"0 env_done", "1 env_done"}, b.sink.attempts()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if s.Total.Total() != 1 || s.Total.Scored != 1 || s.Total.Unscored != 0 || len(b.sink.late) != 0 {
		t.Errorf("%d episodes, %d scored, %d unscored, %d late", s.Total.Total(), s.Total.Scored, s.Total.Unscored, len(b.sink.late))
	}
}

func TestShort(t *testing.T) {
	long := strings.Repeat("é", maxShort)
	for in, want := range map[string]string{
		"one\ntwo": "one",
		long:       strings.Repeat("é", maxShort/2) + "...",
		"x" + long: "x" + strings.Repeat("é", (maxShort-1)/2) + "...",
	} {
		if got := short(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
