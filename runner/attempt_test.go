package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// explode panics in a function whose name the row has to keep.
func explode() { panic("boom") }

// TestPanicsBecomeRows panics in each place that others write.
func TestPanicsBecomeRows(t *testing.T) {
	for _, test := range []struct {
		name       string
		spoil      func(c *Cell)
		want       dataset.ExitReason
		wantReward bool
		wantFlags  []string
		inSpan     bool // the stack is in a span, the row's error is short
	}{{
		name:  "env.New",
		spoil: func(c *Cell) { c.Env = factory(func() (env.Env, error) { explode(); return nil, nil }) },
		want:  dataset.ExitEnvPanic,
	}, {
		name: "env.Reset",
		spoil: func(c *Cell) {
			c.Env = envs(fakeEnv{reset: func(context.Context, dataset.Episode) error { explode(); return nil }})
		},
		want: dataset.ExitEnvPanic,
	}, {
		name:  "env.Step",
		spoil: func(c *Cell) { c.Env = envs(fakeEnv{step: func(context.Context) error { explode(); return nil }}) },
		want:  dataset.ExitEnvPanic,
	}, {
		name: "env.Score",
		spoil: func(c *Cell) {
			c.Env = envs(fakeEnv{score: func(context.Context, *dataset.Trajectory) ([]dataset.Reward, error) {
				explode()
				return nil, nil
			}})
		},
		want: dataset.ExitEnvPanic,
	}, {
		name:       "env.Close",
		spoil:      func(c *Cell) { c.Env = envs(fakeEnv{closing: func(context.Context) error { explode(); return nil }}) },
		want:       dataset.ExitEnvDone,
		wantReward: true,
		inSpan:     true,
	}, {
		name: "tool",
		spoil: func(c *Cell) {
			c.Env = envs(fakeEnv{tools: []env.Tool{{
				Name: "t", Call: func(context.Context, json.RawMessage) (env.ToolResult, error) {
					explode()
					return env.ToolResult{}, nil
				},
			}}})
			c.Rollout = rolloutFunc(callTool)
		},
		want: dataset.ExitToolPanic,
	}, {
		name: "rollout",
		spoil: func(c *Cell) {
			c.Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
				_ = playOnce(ctx, e, ep, tr)
				explode()
				return nil
			})
		},
		want: dataset.ExitPanic,
	}, {
		name: "scorer",
		spoil: func(c *Cell) {
			c.Scorers = append(c.Scorers, scorerFunc(func(context.Context, dataset.Task, *dataset.Trajectory) ([]dataset.Reward, error) {
				explode()
				return nil, nil
			}))
		},
		want:      dataset.ExitEnvDone,
		wantFlags: []string{dataset.FlagUnscored},
		inSpan:    true,
	}} {
		t.Run(test.name, func(t *testing.T) {
			b := setup(2)
			spoilt := cell("spoilt")
			test.spoil(&spoilt)
			b.plan.Cells = append(b.plan.Cells, []Cell{spoilt})
			b.run(t)
			rows := b.sink.sorted()
			if len(rows) != 4 || rows[1].Reward == nil {
				t.Fatalf("%d rows, want 4, the good variant's with a reward", len(rows))
			}
			tr := rows[0]
			if tr.ExitReason != test.want || (tr.Reward != nil) != test.wantReward {
				t.Errorf("got exit %q, reward %v, want %q, a reward: %v", tr.ExitReason, tr.Reward, test.want, test.wantReward)
			}
			if diff := cmp.Diff(test.wantFlags, tr.Flags); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			wantStack(t, tr, test.inSpan)
		})
	}
}

// wantStack wants the place of the panic, first and without addresses.
func wantStack(t *testing.T, tr *dataset.Trajectory, inSpan bool) {
	t.Helper()
	text := tr.Error
	if inSpan {
		if strings.Contains(text, "\n") || !strings.Contains(text, "boom") {
			t.Errorf("the row's error is %q", text)
		}
		i := slices.IndexFunc(tr.Spans, func(s dataset.Span) bool { return s.Status == statusError })
		text = fmt.Sprint(tr.Spans[i].Attrs["error"])
	}
	lines := strings.Split(text, "\n")
	if lines[0] != "panic: boom" || !strings.Contains(lines[1], "runner.explode attempt_test.go:") {
		t.Errorf("the panic is recorded as:\n%s", text)
	}
	if strings.Contains(text, "0x") || len(lines) > maxFrames+2 {
		t.Errorf("the stack is not trimmed:\n%s", text)
	}
}

// callTool calls the env's first tool.
func callTool(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	if _, err := e.Reset(ctx, ep); err != nil {
		return err
	}
	pay(tr, 1)
	result, err := e.(env.Tooled).Tools()[0].Call(ctx, json.RawMessage(`{}`))
	if err != nil {
		return err
	}
	tr.Messages = append(tr.Messages, dataset.Message{Role: dataset.Assistant, Policy: true, Content: result.Content})
	tr.ExitReason = dataset.ExitAnswered
	return nil
}

func TestPanicKeepsWhatWasPaidFor(t *testing.T) {
	b := setup(1)
	b.cell().Env = envs(fakeEnv{step: func(context.Context) error { panic("boom") }})
	b.run(t)
	tr := b.one(t)
	if len(tr.Messages) != 2 || tr.Books.CostKnown != 100 {
		t.Errorf("%d messages, cost %d, want 2, 100", len(tr.Messages), tr.Books.CostKnown)
	}
}

func TestToolsOfTheEnv(t *testing.T) {
	var bound env.Tool
	bound.Bind = bindZero
	for _, test := range []struct {
		name string
		tool env.Tool
		roll rolloutFunc
	}{
		{"called", env.Tool{Name: "t", Call: zero}, callTool},
		{"bound", bound, func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			tool := e.(env.Tooled).Tools()[0]
			if tool.Call != nil {
				t.Error("a tool to be bound can be called")
			}
			_, err := tool.Bind(nil)(ctx, nil)
			return errors.Join(err, playOnce(ctx, e, ep, tr))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := setup(1)
			b.cell().Env = envs(fakeEnv{tools: []env.Tool{test.tool}})
			b.cell().Rollout = test.roll
			b.run(t)
			if tr := b.one(t); tr.Reward == nil || *tr.Reward != 1 {
				t.Errorf("reward %v, error %q, want 1", tr.Reward, tr.Error)
			}
		})
	}
}

// zero is a tool that says 0.
func zero(context.Context, json.RawMessage) (env.ToolResult, error) {
	return env.ToolResult{Content: "0"}, nil
}

func bindZero[S any](S) env.ToolCall { return zero }

// TestFaceHasTheSandbox shows the rollout a sandbox where the env has one, and
// only there.
func TestFaceHasTheSandbox(t *testing.T) {
	for _, boxed := range []bool{false, true} {
		b := setup(1)
		b.cell().Env = factory(func() (env.Env, error) {
			if boxed {
				return struct {
					*fakeEnv
					env.Sandboxed
				}{fakeEnv: new(fakeEnv)}, nil
			}
			return new(fakeEnv), nil
		})
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			if _, got := e.(env.Sandboxed); got != boxed {
				t.Errorf("the rollout sees a sandbox: %v, want %v", got, boxed)
			}
			return playOnce(ctx, e, ep, tr)
		})
		b.run(t)
		if tr := b.one(t); tr.ExitReason != dataset.ExitEnvDone {
			t.Errorf("got exit %q, want %q", tr.ExitReason, dataset.ExitEnvDone)
		}
	}
}

func TestExitOfAnAttemptWithoutOne(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want dataset.ExitReason
	}{
		{"nothing said", nil, dataset.ExitInfraError},
		{"an error", errors.New("lost"), dataset.ExitInfraError},
		{"the task's fault", fmt.Errorf("step: %w", dataset.ErrTask), dataset.ExitEnvError},
		{"the budget", fmt.Errorf("call: %w", dataset.ErrRunBudget), dataset.ExitRunBudget},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := setup(1)
			b.cell().Rollout = rolloutFunc(func(context.Context, env.Env, dataset.Episode, *dataset.Trajectory) error { return test.err })
			b.run(t)
			tr := b.one(t)
			if tr.ExitReason != test.want || tr.Reward != nil || tr.RewardRule != dataset.RuleNone {
				t.Errorf("got %q, reward %v by %q, want %q, null, none", tr.ExitReason, tr.Reward, tr.RewardRule, test.want)
			}
		})
	}
}

func TestEnvThatCannotBeMade(t *testing.T) {
	for _, test := range []struct {
		err  error
		want dataset.ExitReason
	}{
		{errors.New("no disk"), dataset.ExitInfraError},
		{fmt.Errorf("image: %w", dataset.ErrTask), dataset.ExitResetError},
	} {
		b := setup(1)
		b.cell().Env = factory(func() (env.Env, error) { return nil, test.err })
		b.run(t)
		if tr := b.one(t); tr.ExitReason != test.want || !strings.Contains(tr.Error, test.err.Error()) {
			t.Errorf("got %q, %q, want %q", tr.ExitReason, tr.Error, test.want)
		}
	}
}

func TestCloseErrorChangesNoOutcome(t *testing.T) {
	b := setup(1)
	b.cell().Env = envs(fakeEnv{closing: func(context.Context) error { return errors.New("busy") }})
	b.run(t)
	tr := b.one(t)
	if tr.ExitReason != dataset.ExitEnvDone || tr.Reward == nil || tr.Error != "closing the env: busy" {
		t.Errorf("got %q, reward %v, error %q", tr.ExitReason, tr.Reward, tr.Error)
	}
}

func TestCloseOutlivesTheEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan error, 1)
		b := setup(1)
		b.cell().Env = envs(fakeEnv{closing: func(ctx context.Context) error {
			closed <- ctx.Err()
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		b.cell().Rollout = rolloutFunc(endless)
		work, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Second, func() { cancel(dataset.ErrInterrupted) }).Stop()
		s, err := b.runner(t).Run(t.Context(), work)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close was called with a context that has ended: %v", err)
		}
		if want := time.Second + defaultCloseTimeout; s.Duration != want {
			t.Errorf("the run took %v, want %v", s.Duration, want)
		}
	})
}

// TestHangs holds each call that others write for ever: the run goes on without
// it, and the env is closed when the call returns after all.
func TestHangs(t *testing.T) {
	for _, test := range []struct {
		name      string
		hang      func(c *Cell, hang func())
		want      dataset.ExitReason
		wantFlags []string
		wantTime  time.Duration

		closedFirst bool // the env is closed before the call returns
	}{{
		name: "env.New",
		hang: func(c *Cell, hang func()) {
			inner := c.Env
			c.Env = factory(func() (env.Env, error) { hang(); return inner.New() })
		},
		want:     dataset.ExitInterrupted,
		wantTime: time.Hour + abandonAfter,
	}, {
		name: "env.Reset until a signal",
		hang: func(c *Cell, hang func()) {
			c.Env = envs(fakeEnv{reset: func(context.Context, dataset.Episode) error { hang(); return nil }})
		},
		want:     dataset.ExitInterrupted,
		wantTime: time.Hour + abandonAfter,
	}, {
		name: "env.Step beyond the episode's time",
		hang: func(c *Cell, hang func()) {
			c.Env = envs(fakeEnv{
				step:  func(context.Context) error { hang(); return nil },
				score: func(context.Context, *dataset.Trajectory) ([]dataset.Reward, error) { return reward(1), nil },
			})
			c.Rollout = rolloutFunc(timed)
		},
		want:      dataset.ExitTimeLimit,
		wantFlags: []string{dataset.FlagUnscored, dataset.FlagNeedsWorld},
		wantTime:  time.Minute + abandonAfter,
	}, {
		name: "a tool beyond the episode's time",
		hang: func(c *Cell, hang func()) {
			tool := func(context.Context, json.RawMessage) (env.ToolResult, error) { hang(); return env.ToolResult{}, nil }
			c.Env = envs(fakeEnv{tools: []env.Tool{{Name: "t", Call: tool}}})
			c.Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return callTool(ctx, e, ep, tr)
			})
		},
		want:     dataset.ExitInfraError,
		wantTime: time.Minute + abandonAfter,
	}, {
		name: "env.Score",
		hang: func(c *Cell, hang func()) {
			c.Env = envs(fakeEnv{score: func(context.Context, *dataset.Trajectory) ([]dataset.Reward, error) { hang(); return nil, nil }})
		},
		want:      dataset.ExitEnvDone,
		wantFlags: []string{dataset.FlagUnscored, dataset.FlagNeedsWorld},
		wantTime:  defaultScoreTimeout + abandonAfter,
	}, {
		name: "a scorer",
		hang: func(c *Cell, hang func()) {
			c.Scorers = append(c.Scorers, scorerFunc(func(_ context.Context, _ dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
				hang()
				tr.Error = "late" // its copy is its own: this races with nothing
				return nil, nil
			}))
		},
		closedFirst: true,
		want:        dataset.ExitEnvDone,
		wantFlags:   []string{dataset.FlagUnscored},
		wantTime:    defaultScoreTimeout + abandonAfter,
	}, {
		name: "env.Close",
		hang: func(c *Cell, hang func()) {
			c.Env = envs(fakeEnv{closing: func(context.Context) error { hang(); return nil }})
		},
		want:     dataset.ExitEnvDone,
		wantTime: defaultCloseTimeout + abandonAfter,
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := setup(1)
				release, closed := make(chan struct{}), make(chan struct{}, 1)
				test.hang(b.cell(), func() { <-release })
				b.cell().Env = closing(b.cell().Env, closed)
				work, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(time.Hour, func() { cancel(dataset.ErrInterrupted) }).Stop()
				s, err := b.runner(t).Run(t.Context(), work)
				if err != nil {
					t.Fatal(err)
				}
				tr := b.one(t)
				if tr.ExitReason != test.want || s.Duration != test.wantTime || tr.Error == "" {
					t.Errorf("got exit %q after %v, error %q, want %q after %v",
						tr.ExitReason, s.Duration, tr.Error, test.want, test.wantTime)
				}
				if diff := cmp.Diff(test.wantFlags, tr.Flags); diff != "" {
					t.Errorf("flags (-want +got):\n%s", diff)
				}
				if got := len(closed) > 0; got != test.closedFirst {
					t.Errorf("the env is closed before the call returned: %v", got)
				}
				close(release)
				<-closed
			})
		})
	}
}

// TestAbandonedScorerKeepsItsCopy: what it reads late is what it was given,
// though the attempt has lost its reward meanwhile.
func TestAbandonedScorerKeepsItsCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(1)
		release, read := make(chan struct{}), make(chan bool)
		b.cell().Scorers = append(b.cell().Scorers, scorerFunc(
			func(_ context.Context, _ dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
				<-release
				read <- tr.Rewards[0].Chosen
				return nil, nil
			}))
		b.run(t)
		if tr := b.one(t); tr.Reward != nil || tr.Rewards[0].Chosen {
			t.Errorf("reward %v, chosen %v, want null, false", tr.Reward, tr.Rewards[0].Chosen)
		}
		close(release)
		if !<-read {
			t.Error("what the scorer reads was changed under it")
		}
	})
}

// closing tells each time that an env of f is closed.
func closing(f env.Factory, closed chan<- struct{}) env.Factory {
	return factory(func() (env.Env, error) {
		e, err := f.New()
		if err != nil {
			return nil, err
		}
		var inner *fakeEnv
		switch e := e.(type) {
		case *fakeEnv:
			inner = e
		case scoredEnv:
			inner = e.fakeEnv
		}
		before := inner.closing
		inner.closing = func(ctx context.Context) error {
			defer func() { closed <- struct{}{} }()
			if before != nil {
				return before(ctx)
			}
			return nil
		}
		return e, nil
	})
}

// timed plays for a minute at most.
func timed(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, dataset.ErrEpisodeTime)
	defer cancel()
	err := playOnce(ctx, e, ep, tr)
	if errors.Is(context.Cause(ctx), dataset.ErrEpisodeTime) {
		tr.ExitReason, tr.Error = dataset.ExitTimeLimit, fmt.Sprint(err)
		return nil
	}
	return err
}

func TestQueueSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(2)
		b.opts.Workers = 1
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			<-time.After(time.Second)
			return playOnce(ctx, e, ep, tr)
		})
		b.run(t)
		tr := b.sink.sorted()[1]
		want := dataset.Span{
			ID: "queue", Kind: dataset.SpanQueue, Name: "queue", Status: "ok",
			Start: -time.Second, Duration: time.Second,
		}
		if diff := cmp.Diff(want, tr.Spans[0]); diff != "" {
			t.Errorf("span (-want +got):\n%s", diff)
		}
		ids := map[string]bool{}
		for _, s := range tr.Spans {
			ids[s.ID] = true
		}
		if tr.Queued != time.Second || len(ids) != len(tr.Spans) {
			t.Errorf("queued for %v, span ids %v", tr.Queued, ids)
		}
	})
}

// TestRetryWaitsForNobody counts no time of the attempt before as queued.
func TestRetryWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(1)
		b.opts.InfraRetries = 1
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			<-time.After(time.Minute)
			return lost(ctx, e, ep, tr)
		})
		b.run(t)
		for _, tr := range b.sink.rows {
			if tr.Queued != 0 {
				t.Errorf("attempt %d was queued for %v", tr.Episode.Attempt, tr.Queued)
			}
		}
	})
}

// attempts are the numbers and ends of what was written.
func (s *memory) attempts() []string {
	rows := s.sorted()
	all := make([]string, 0, len(rows))
	for _, tr := range rows {
		all = append(all, fmt.Sprint(tr.Episode.Attempt, " ", tr.ExitReason))
	}
	return all
}

func TestInfraRetries(t *testing.T) {
	b := setup(1)
	b.opts.InfraRetries = 2
	worlds := 0
	b.cell().Env = factory(func() (env.Env, error) { worlds++; return new(fakeEnv), nil })
	b.cell().Rollout = rolloutFunc(lost)
	infra := func(from, n int) []string {
		want := make([]string, 0, n)
		for i := range n {
			want = append(want, fmt.Sprint(from+i, " ", dataset.ExitInfraError))
		}
		return want
	}
	s := b.run(t)
	if diff := cmp.Diff(infra(0, 3), b.sink.attempts()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if s.Total.Attempts != 3 || s.Total.CostKnown != 300 || worlds != 3 {
		t.Errorf("%d attempts in %d worlds, cost %d, want 3, 3, 300", s.Total.Attempts, worlds, s.Total.CostKnown)
	}
	if got := b.run(t).Total.Attempts; got != 3 {
		t.Errorf("a plain resume made it %d attempts", got)
	}
	b.opts.Retry.Infra = true
	b.run(t)
	if diff := cmp.Diff(infra(0, 6), b.sink.attempts()); diff != "" {
		t.Errorf("attempts with a fresh allowance (-want +got):\n%s", diff)
	}
	b.cell().Rollout = rolloutFunc(playOnce)
	b.run(t)
	if diff := cmp.Diff(append(infra(0, 6), "6 env_done"), b.sink.attempts()); diff != "" {
		t.Errorf("attempts when all is well (-want +got):\n%s", diff)
	}
}

// lost pays for a call and loses its sandbox.
func lost(_ context.Context, _ env.Env, _ dataset.Episode, tr *dataset.Trajectory) error {
	pay(tr, 1)
	return errors.New("sandbox gone")
}

// TestInfraRetriesOverInvocations has an allowance that an earlier invocation
// used in part.
func TestInfraRetriesOverInvocations(t *testing.T) {
	b := setup(1)
	b.opts.InfraRetries = 2
	admit, cancel := context.WithCancel(t.Context())
	b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		cancel()
		return lost(ctx, e, ep, tr)
	})
	s, err := b.runner(t).Run(admit, t.Context())
	if err != nil || !s.Interrupted || len(b.sink.rows) != 1 {
		t.Fatalf("%d attempts, interrupted %v, error %v, want 1, true, none", len(b.sink.rows), s.Interrupted, err)
	}
	b.run(t)
	want := []string{"0 infra_error", "1 infra_error", "2 infra_error"}
	if diff := cmp.Diff(want, b.sink.attempts()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestRetryEndsWithTheFirstThatIsNotInfra(t *testing.T) {
	b := setup(1)
	b.opts.InfraRetries = 9
	b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		if ep.Attempt < 2 {
			return errors.New("sandbox gone")
		}
		return playOnce(ctx, e, ep, tr)
	})
	b.run(t)
	want := []string{"0 infra_error", "1 infra_error", "2 env_done"}
	if diff := cmp.Diff(want, b.sink.attempts()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got := slices.Index(b.sink.exits(), dataset.ExitEnvDone); got != 2 {
		t.Errorf("the good one is attempt %d", got)
	}
}
