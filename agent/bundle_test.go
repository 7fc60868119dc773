package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/tool"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The runner's Rollout, which this package may not import.
var _ interface {
	Run(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error
} = (*Loop)(nil)

// turn is one answer of a scripted model.
type turn func(ctx context.Context, req model.Request) (model.Response, error)

// script is a model that gives its turns one after another.
type script struct {
	t     *testing.T
	turns []turn
	seen  []model.Request // with the messages as they were
}

func (s *script) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	n := len(s.seen)
	copied := req
	copied.Messages = slices.Clone(req.Messages)
	s.seen = append(s.seen, copied)
	if n >= len(s.turns) {
		s.t.Errorf("model call %d: the script has %d turns", n, len(s.turns))
		return model.Response{}, errors.New("end of script")
	}
	return s.turns[n](ctx, req)
}

// usage of each scripted reply.
const (
	inTokens  = 10
	outTokens = 5
	nanoUSD   = 1000
)

func respond(m dataset.Message) turn {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{
			Message: m, Usage: &dataset.Usage{Input: inTokens, Output: outTokens}, CostNanoUSD: new(int64(nanoUSD)),
			ModelServed: "m-1", Fingerprint: "f", Upstream: "u", RequestID: "r", PriceVersion: "2026-01",
		}, nil
	}
}

func say(text string) turn { return ending(text, model.FinishStop) }

func ending(text, finish string, calls ...dataset.ToolCall) turn {
	return respond(dataset.Message{Role: dataset.Assistant, Content: text, FinishReason: finish, ToolCalls: calls})
}

func call(name, arguments string) dataset.ToolCall {
	return dataset.ToolCall{ID: "id-" + name, Name: name, Arguments: arguments}
}

func calls(c ...dataset.ToolCall) turn { return ending("", model.FinishToolCalls, c...) }

func submit(answer string) dataset.ToolCall {
	return call("submit_answer", fmt.Sprintf(`{"answer":%q}`, answer))
}

func calc(expression string) dataset.ToolCall {
	return call("calculator", fmt.Sprintf(`{"expression":%q}`, expression))
}

func fail(err error) turn {
	return func(context.Context, model.Request) (model.Response, error) { return model.Response{}, err }
}

// hang waits until it is cut off, after its request was sent.
func hang(ctx context.Context, _ model.Request) (model.Response, error) {
	<-ctx.Done()
	return model.Response{Unreported: 1}, &model.Error{Class: model.ClassCancelled, Sent: true, Err: context.Cause(ctx)}
}

// world is an env whose parts a test sets; a nil one is what env answer does.
type world struct {
	reset func(context.Context) ([]dataset.Message, error)
	step  func(context.Context, dataset.Message) (env.Result, error)
	tools func() []env.Tool
}

func (w *world) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	if w.reset != nil {
		return w.reset(ctx)
	}
	return []dataset.Message{{Role: dataset.User, Content: ep.Task.Input}}, nil
}

func (w *world) Step(ctx context.Context, reply dataset.Message) (env.Result, error) {
	if w.step != nil {
		return w.step(ctx, reply)
	}
	return env.Result{Done: true}, nil
}

func (w *world) Tools() []env.Tool {
	if w.tools == nil {
		return nil
	}
	return w.tools()
}

func (w *world) Close(context.Context) error { return nil }

// testTool makes a tool without parameters.
func testTool(name string, f func(ctx context.Context) (env.ToolResult, error)) env.Tool {
	return env.Tool{
		Name: name, Parameters: json.RawMessage(`{"type":"object"}`),
		Call: func(ctx context.Context, _ json.RawMessage) (env.ToolResult, error) { return f(ctx) },
	}
}

// bundle is a loop over a script, with the built-in tools.
type bundle struct {
	options Options
	script  *script
	world   *world
	ctx     context.Context //nolint:containedctx // a test's
}

func newBundle(t *testing.T, turns ...turn) *bundle {
	t.Helper()
	tools, err := tool.Resolve([]string{"answer", "math"})
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, turns: turns}
	return &bundle{options: Options{Model: s, Tools: tools}, script: s, world: new(world), ctx: t.Context()}
}

func episode() dataset.Episode {
	return dataset.Episode{ID: "e", Attempt: 2, Task: dataset.Task{ID: "t", Input: "question"}}
}

func (b *bundle) run(t *testing.T) (*dataset.Trajectory, error) {
	t.Helper()
	l, err := New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	tr := &dataset.Trajectory{Episode: episode(), StartedAt: time.Now()}
	err = l.Run(b.ctx, b.world, tr.Episode, tr)
	sound(t, tr)
	if got, want := len(b.script.seen), len(b.script.turns); got != want {
		t.Errorf("model calls: got %d, want %d", got, want)
	}
	return tr, err
}

// sound checks what holds of every trajectory.
func sound(t *testing.T, tr *dataset.Trajectory) {
	t.Helper()
	if tr.ExitReason == "" {
		t.Error("no exit reason")
	}
	answersInOrder(t, tr)
	ids := map[string]bool{}
	for _, s := range tr.Spans {
		if ids[s.ID] || s.ID == "" || s.Status == "" {
			t.Errorf("span %+v: its id is not unique, or it has no status", s)
		}
		ids[s.ID] = true
	}
	models := 0
	for _, s := range tr.Spans {
		if s.ParentID != "" && !ids[s.ParentID] {
			t.Errorf("span %q: no parent %q", s.ID, s.ParentID)
		}
		if s.Kind == dataset.SpanModel {
			models++
		}
	}
	if tr.Books.Requests != models {
		t.Errorf("requests: got %d booked, %d spans", tr.Books.Requests, models)
	}
	if got, want := tr.Turns()+tr.DiscardedGenerations, tr.Books.Requests; got > want {
		t.Errorf("replies: got %d, want at most %d", got, want)
	}
}

// answersInOrder checks that each call has exactly one result, in the order of
// the calls, right after its message.
func answersInOrder(t *testing.T, tr *dataset.Trajectory) {
	t.Helper()
	results := 0
	for i, m := range tr.Messages {
		if m.Policy != (m.Role == dataset.Assistant && m.SpanID != "") {
			t.Errorf("message %d (%s): policy is %v", i, m.Role, m.Policy)
		}
		if m.CreatedAt.IsZero() {
			t.Errorf("message %d (%s): no time", i, m.Role)
		}
		if m.Role == dataset.ToolRole {
			results++
		}
		for n, c := range m.ToolCalls {
			at := i + 1 + n
			if c.ResultPosition != at || at >= len(tr.Messages) {
				t.Errorf("message %d, call %d: result at %d of %d, want %d", i, n, c.ResultPosition, len(tr.Messages), at)
				continue
			}
			r := tr.Messages[at]
			if r.Role != dataset.ToolRole || r.ToolCallID != c.ID || r.ToolName != c.Name || r.IsError != c.IsError || r.Turn != m.Turn {
				t.Errorf("message %d is not the result of call %d of message %d: %+v", at, n, i, r)
			}
			results--
		}
	}
	if results != 0 {
		t.Errorf("%d tool results more than calls", results)
	}
}

// lines renders the conversation: role, what marks the message, content, and
// for each call why it was blocked.
func lines(tr *dataset.Trajectory) []string {
	out := make([]string, 0, len(tr.Messages))
	for _, m := range tr.Messages {
		var b strings.Builder
		fmt.Fprintf(&b, "%d %s", m.Turn, m.Role)
		if m.InjectedBy != "" {
			fmt.Fprintf(&b, " (%s)", m.InjectedBy)
		}
		if m.IsError {
			b.WriteString(" error")
		}
		fmt.Fprintf(&b, ": %s", m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " %s%s", c.Name, c.Arguments)
			if c.BlockedBy != "" {
				fmt.Fprintf(&b, " [%s]", c.BlockedBy)
			}
		}
		out = append(out, b.String())
	}
	return out
}
