package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// world is a sound env with two steps, a tool and a score, each of whose
// methods a test may replace by a broken one.
type world struct {
	made  func() error
	reset func(context.Context, dataset.Episode) ([]dataset.Message, error)
	step  func(context.Context, int) (env.Result, error)
	tools []env.Tool
	score func() ([]dataset.Reward, error)
	close func() error
	done  func() error
}

func sound() *world {
	return &world{
		made: func() error { return nil },
		reset: func(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if ep.Task.Input == "" {
				return nil, fmt.Errorf("%w: no input", dataset.ErrTask)
			}
			return []dataset.Message{{Role: dataset.User, Content: fmt.Sprint(ep.Task.Input, ep.Seed)}}, nil
		},
		step: func(_ context.Context, n int) (env.Result, error) {
			if n == 1 {
				return env.Result{Messages: []dataset.Message{{Role: dataset.User, Content: "sure?"}}}, nil
			}
			return env.Result{Done: true}, nil
		},
		tools: []env.Tool{tool("look", `{"type":"object"}`)},
		score: func() ([]dataset.Reward, error) { return []dataset.Reward{{Name: "score", Value: new(float64)}}, nil },
		close: func() error { return nil },
		done:  func() error { return nil },
	}
}

func tool(name, schema string) env.Tool {
	return env.Tool{
		Name: name, Parameters: json.RawMessage(schema),
		Call: func(context.Context, json.RawMessage) (env.ToolResult, error) { return env.ToolResult{}, nil },
	}
}

func (w *world) New() (env.Env, error)       { return &state{world: w}, w.made() }
func (w *world) Close(context.Context) error { return w.done() }

type state struct {
	world *world
	steps int
}

func (s *state) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	return s.world.reset(ctx, ep)
}

func (s *state) Step(ctx context.Context, _ dataset.Message) (env.Result, error) {
	s.steps++
	return s.world.step(ctx, s.steps)
}

func (s *state) Tools() []env.Tool { return s.world.tools }

func (s *state) Score(context.Context, *dataset.Trajectory) ([]dataset.Reward, error) {
	return s.world.score()
}

func (s *state) Close(context.Context) error { return s.world.close() }

func caseOf(w *world) Case {
	return Case{
		New: func() (env.Factory, error) { return w, nil },
		Episodes: []dataset.Episode{
			{ID: "a", Task: dataset.Task{Input: "one"}, Seed: 1},
			{ID: "b", Task: dataset.Task{Input: "two"}, Seed: 2},
		},
		Broken: []dataset.Episode{{ID: "c"}},
	}
}

func TestSoundEnvPasses(t *testing.T) { Run(t, caseOf(sound())) }

// messages makes a reset that gives always the same.
func messages(m ...dataset.Message) func(context.Context, dataset.Episode) ([]dataset.Message, error) {
	return func(_ context.Context, ep dataset.Episode) ([]dataset.Message, error) {
		if ep.Task.Input == "" {
			return nil, dataset.ErrTask
		}
		return m, nil
	}
}

func result(r env.Result) func(context.Context, int) (env.Result, error) {
	return func(context.Context, int) (env.Result, error) { return r, nil }
}

func TestBrokenEnvsFail(t *testing.T) {
	user := dataset.Message{Role: dataset.User, Content: "hello"}
	boom := errors.New("boom")
	tests := []struct {
		name   string
		breaks func(*world)
		check  string // the rule that has to find it
	}{
		{"no messages", func(w *world) { w.reset = messages() }, "plays each episode well formed"},
		{"unknown role", func(w *world) { w.reset = messages(dataset.Message{Role: "bot", Content: "x"}, user) }, "plays each episode well formed"},
		{"empty message", func(w *world) { w.reset = messages(dataset.Message{Role: dataset.User}) }, "plays each episode well formed"},
		{"assistant last", func(w *world) { w.reset = messages(dataset.Message{Role: dataset.Assistant, Content: "x"}) }, "plays each episode well formed"},
		{"policy text", func(w *world) {
			w.reset = messages(dataset.Message{Role: dataset.Assistant, Content: "x", Policy: true}, user)
		}, "plays each episode well formed"},
		{"not UTF-8", func(w *world) { w.reset = messages(dataset.Message{Role: dataset.User, Content: "\xff"}) }, "plays each episode well formed"},
		{"broken parts", func(w *world) {
			w.reset = messages(dataset.Message{Role: dataset.User, Parts: json.RawMessage("[")})
		}, "plays each episode well formed"},
		{"tool result of no call", func(w *world) { w.reset = messages(dataset.Message{Role: dataset.ToolRole, Content: "x"}) }, "plays each episode well formed"},
		{"reset fails", func(w *world) {
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) { return nil, boom }
		}, "plays each episode well formed"},
		{"reset panics", func(w *world) {
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) { panic("boom") }
		}, "plays each episode well formed"},
		{"step fails", func(w *world) {
			w.step = func(context.Context, int) (env.Result, error) { return env.Result{}, boom }
		}, "plays each episode well formed"},
		{"step says nothing", func(w *world) { w.step = result(env.Result{}) }, "plays each episode well formed"},
		{"step says rubbish", func(w *world) { w.step = result(env.Result{Done: true, Messages: []dataset.Message{{}}}) }, "plays each episode well formed"},
		{"nameless reward", func(w *world) { w.step = result(env.Result{Done: true, Rewards: []dataset.Reward{{}}}) }, "plays each episode well formed"},
		{"score is not finite", func(w *world) {
			w.score = func() ([]dataset.Reward, error) {
				nan := math.NaN()
				return []dataset.Reward{{Name: "x", Value: &nan}}, nil
			}
		}, "plays each episode well formed"},
		{"score fails", func(w *world) { w.score = func() ([]dataset.Reward, error) { return nil, boom } }, "plays each episode well formed"},
		{"two tools of one name", func(w *world) { w.tools = append(w.tools, w.tools[0]) }, "plays each episode well formed"},
		{"bad tool name", func(w *world) { w.tools = []env.Tool{tool("look up", `{"type":"object"}`)} }, "plays each episode well formed"},
		{"tool without function", func(w *world) { w.tools[0].Call = nil }, "plays each episode well formed"},
		{"tool without schema", func(w *world) { w.tools = []env.Tool{tool("look", `[]`)} }, "plays each episode well formed"},
		{"no env", func(w *world) { w.made = func() error { return boom } }, "plays each episode well formed"},
		{"random first message", func(w *world) {
			var n atomic.Int64
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) {
				return []dataset.Message{{Role: dataset.User, Content: strconv.FormatInt(n.Add(1), 10)}}, nil
			}
		}, "equal seeds give equal episodes"},
		{"shared state", func(w *world) {
			var n atomic.Int64
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) {
				return []dataset.Message{{Role: dataset.User, Content: strconv.FormatBool(n.Add(1) > 6)}}, nil
			}
		}, "episodes at the same time do not disturb each other"},
		{"close fails", func(w *world) { w.close = func() error { return boom } }, "closes without a reset"},
		{"close panics", func(w *world) { w.close = func() error { panic("not reset") } }, "closes without a reset"},
		{"factory close fails", func(w *world) { w.done = func() error { return boom } }, "closes without a reset"},
		{"close fails after cancel", func(w *world) {
			var cut atomic.Bool
			w.step = func(ctx context.Context, _ int) (env.Result, error) {
				cut.Store(ctx.Err() != nil)
				return env.Result{Done: true}, nil
			}
			w.close = func() error {
				if cut.Load() {
					return boom
				}
				return nil
			}
		}, "closes in the middle, after its context was cancelled"},
		{"cancelled step blames the task", func(w *world) {
			w.step = func(context.Context, int) (env.Result, error) { return env.Result{}, dataset.ErrTask }
		}, "closes in the middle, after its context was cancelled"},
		{"cancelled reset blames the task", func(w *world) {
			w.reset = func(ctx context.Context, _ dataset.Episode) ([]dataset.Message, error) {
				return nil, fmt.Errorf("%w: %w", dataset.ErrTask, context.Cause(ctx))
			}
		}, "a cancelled reset is nobody's fault"},
		{"cancelled reset hides the cause", func(w *world) {
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) { return nil, boom }
		}, "a cancelled reset is nobody's fault"},
		{"broken task accepted", func(w *world) {
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) { return []dataset.Message{user}, nil }
		}, "a broken task is at fault itself"},
		{"broken task is infra", func(w *world) {
			w.reset = func(context.Context, dataset.Episode) ([]dataset.Message, error) { return nil, boom }
		}, "a broken task is at fault itself"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := sound()
			tt.breaks(w)
			if err := find(t, tt.check)(t.Context(), caseWithDefaults(w)); err == nil {
				t.Errorf("the check %q finds nothing", tt.check)
			}
		})
	}
}

func caseWithDefaults(w *world) Case {
	c := caseOf(w)
	c.applyDefaults()
	return c
}

func find(t *testing.T, name string) func(context.Context, Case) error {
	t.Helper()
	for _, ch := range checks() {
		if ch.name == name {
			return ch.run
		}
	}
	t.Fatalf("no check %q", name)
	return nil
}

func TestLimitClosesAnEndlessEnv(t *testing.T) {
	w := sound()
	w.step = result(env.Result{Messages: []dataset.Message{{Role: dataset.User, Content: "go on"}}})
	Run(t, caseOf(w))
}
