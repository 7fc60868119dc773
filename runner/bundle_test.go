package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEnv is an env whose every call may be replaced. The zero fakeEnv is a
// world that asks its task and ends with the first reply.
type fakeEnv struct {
	ep      dataset.Episode
	reset   func(context.Context, dataset.Episode) error
	step    func(context.Context) error
	score   func(context.Context, *dataset.Trajectory) ([]dataset.Reward, error)
	closing func(context.Context) error
	tools   []env.Tool
}

func (e *fakeEnv) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	e.ep = ep
	if e.reset != nil {
		if err := e.reset(ctx, ep); err != nil {
			return nil, err
		}
	}
	return []dataset.Message{{Role: dataset.User, Content: ep.Task.Input}}, nil
}

func (e *fakeEnv) Step(ctx context.Context, _ dataset.Message) (env.Result, error) {
	if e.step != nil {
		if err := e.step(ctx); err != nil {
			return env.Result{}, err
		}
	}
	return env.Result{Done: true}, nil
}

func (e *fakeEnv) Close(ctx context.Context) error {
	if e.closing != nil {
		return e.closing(ctx)
	}
	return nil
}

func (e *fakeEnv) Tools() []env.Tool { return e.tools }

// scoredEnv is a fakeEnv that also scores.
type scoredEnv struct{ *fakeEnv }

func (e scoredEnv) Score(ctx context.Context, tr *dataset.Trajectory) ([]dataset.Reward, error) {
	return e.score(ctx, tr)
}

// factory makes envs.
type factory func() (env.Env, error)

func (f factory) New() (env.Env, error)     { return f() }
func (factory) Close(context.Context) error { return nil }

// envs is a factory of fakeEnvs like e.
func envs(e fakeEnv) factory {
	return func() (env.Env, error) {
		c := e
		if c.score != nil {
			return scoredEnv{&c}, nil
		}
		return &c, nil
	}
}

type rolloutFunc func(context.Context, env.Env, dataset.Episode, *dataset.Trajectory) error

func (f rolloutFunc) Run(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	return f(ctx, e, ep, tr)
}

// playOnce resets, pays for one call, answers with the task's input and steps.
func playOnce(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	first, err := e.Reset(ctx, ep)
	if err != nil {
		return err
	}
	tr.Messages = append(tr.Messages, first...)
	pay(tr, 1)
	reply := dataset.Message{Role: dataset.Assistant, Content: ep.Task.Input, Policy: true, Turn: 1}
	tr.Messages = append(tr.Messages, reply)
	if _, err := e.Step(ctx, reply); err != nil {
		return err
	}
	tr.ExitReason = dataset.ExitEnvDone
	return nil
}

// pay books n calls of 10 tokens and 100 nano-dollars each.
func pay(tr *dataset.Trajectory, n int) {
	for range n {
		cost := int64(100)
		tr.Books.Add(dataset.Call{Usage: &dataset.Usage{Input: 7, Output: 3}, CostNanoUSD: &cost})
	}
}

type scorerFunc func(context.Context, dataset.Task, *dataset.Trajectory) ([]dataset.Reward, error)

func (f scorerFunc) Score(ctx context.Context, t dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
	return f(ctx, t, tr)
}

// exact rewards an answer that equals the task's target.
func exact(_ context.Context, t dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
	value := 0.0
	if tr.FinalText() == t.Target {
		value = 1
	}
	return reward(value), nil
}

func reward(value float64) []dataset.Reward {
	return []dataset.Reward{{Name: "exact", Value: &value, Chosen: true}}
}

// memory is a Sink that keeps what it gets. While gate is set, Write waits for
// it; once fail is set, it fails.
type memory struct {
	gate chan struct{}
	fail error

	mu     sync.Mutex
	writes int
	rows   []*dataset.Trajectory
	late   []dataset.LateReward
}

var errDisk = errors.New("disk on fire")

func (s *memory) Write(_ context.Context, trs []*dataset.Trajectory) error {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.fail != nil {
		return s.fail
	}
	s.rows = append(s.rows, trs...)
	return nil
}

func (s *memory) Rewards(_ context.Context, late []dataset.LateReward) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.late = append(s.late, late...)
	return nil
}

// sorted is what was written, by key.
func (s *memory) sorted() []*dataset.Trajectory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(slices.Values(s.rows), func(a, b *dataset.Trajectory) int {
		return cmp.Or(
			cmp.Compare(a.Episode.Task.ID, b.Episode.Task.ID),
			cmp.Compare(a.Episode.Variant, b.Episode.Variant),
			cmp.Compare(a.Episode.Sample, b.Episode.Sample),
			cmp.Compare(a.Episode.Attempt, b.Episode.Attempt))
	})
}

// exits are the exit reasons written, by key.
func (s *memory) exits() []dataset.ExitReason {
	rows := s.sorted()
	exits := make([]dataset.ExitReason, 0, len(rows))
	for _, tr := range rows {
		exits = append(exits, tr.ExitReason)
	}
	return exits
}

func tasks(n int) iter.Seq2[dataset.Task, error] {
	return func(yield func(dataset.Task, error) bool) {
		for i := range n {
			text := strconv.Itoa(i)
			t := dataset.Task{ID: fmt.Sprintf("task-%05d", i), Input: text, Target: text}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// testBundle is a plan of one variant, and where it records to.
type testBundle struct {
	plan Plan
	sink *memory
	opts Options
}

// setup is a bundle of n tasks, one sample each, whose every episode is a
// success.
func setup(n int) *testBundle {
	return &testBundle{
		plan: Plan{
			Seed: 7, Samples: 1, Tasks: tasks(n), Total: n,
			Cells: [][]Cell{{cell("v")}},
		},
		sink: new(memory),
		opts: Options{Workers: 4, RetryPause: time.Microsecond, Index: store.NewIndex()},
	}
}

// cell is a cell of the variant name.
func cell(name string) Cell {
	return Cell{
		Variant: dataset.Variant{Name: name, Hash: "hash of " + name, ScorerHash: "scorers"},
		Env:     envs(fakeEnv{}),
		Rollout: rolloutFunc(playOnce),
		Scorers: []Scorer{scorerFunc(exact)},
	}
}

// cell is the bundle's one cell.
func (b *testBundle) cell() *Cell { return &b.plan.Cells[0][0] }

func (b *testBundle) runner(t *testing.T) *Runner {
	t.Helper()
	r, err := New(b.plan, b.sink, b.opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs the bundle with nobody stopping it; an error ends the test.
func (b *testBundle) run(t *testing.T) Summary {
	t.Helper()
	s, err := b.runner(t).Run(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one is the only trajectory written.
func (b *testBundle) one(t *testing.T) *dataset.Trajectory {
	t.Helper()
	if len(b.sink.rows) != 1 {
		t.Fatalf("got %d rows, want 1", len(b.sink.rows))
	}
	return b.sink.rows[0]
}
