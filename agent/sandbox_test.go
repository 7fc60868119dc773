package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// box is a sandbox that only tells what it is.
type box struct {
	sandbox.Sandbox

	id string
}

func (b box) Info() sandbox.Info {
	return sandbox.Info{ID: b.id, Backend: "test", Image: "image-" + b.id, Enforced: []string{"network:namespace", "time:supervisor"}}
}

// boxedWorld is a world with a sandbox.
type boxedWorld struct {
	world

	box sandbox.Sandbox
}

func (w *boxedWorld) Sandbox() sandbox.Sandbox { return w.box }

// counter is a tool that acts in a sandbox and keeps state: it counts its calls
// there, and in bound how often it was given a sandbox.
func counter(bound *atomic.Int64) env.Tool {
	return env.Tool{
		Name: "count", Parameters: json.RawMessage(`{"type":"object"}`),
		Bind: func(s sandbox.Sandbox) env.ToolCall {
			bound.Add(1)
			n := 0
			return func(context.Context, json.RawMessage) (env.ToolResult, error) {
				n++
				return env.ToolResult{Content: fmt.Sprintf("%s: %d", s.Info().ID, n), ExitCode: &n}, nil
			}
		},
	}
}

// runIn plays an attempt in a world with a sandbox.
func (b *bundle) runIn(t *testing.T, w env.Env) (*dataset.Trajectory, error) {
	t.Helper()
	l, err := New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	tr := &dataset.Trajectory{Episode: episode(), StartedAt: time.Now()}
	err = l.Run(b.ctx, w, tr.Episode, tr)
	sound(t, tr)
	return tr, err
}

// TestToolsInSandbox binds a tool once for each attempt, to the attempt's own
// sandbox, wherever the tool comes from.
func TestToolsInSandbox(t *testing.T) {
	for _, from := range []string{"config", "env"} {
		t.Run(from, func(t *testing.T) {
			var bound atomic.Int64
			script := []turn{calls(call("count", "{}"), calc("1+1"), call("count", "{}")), calls(call("count", "{}")), say("2")}
			b := newBundle(t, append(script, script...)...)
			var own []env.Tool
			if tools := []env.Tool{counter(&bound)}; from == "config" {
				b.options.Tools = append(b.options.Tools, tools...)
			} else {
				own = tools
			}
			for i, id := range []string{"first", "second"} {
				w := &boxedWorld{world: world{tools: func() []env.Tool { return own }}, box: box{id: id}}
				tr, err := b.runIn(t, w)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := bound.Load(), int64(i+1); got != want {
					t.Errorf("bound %d times by attempt %d, want %d", got, i, want)
				}
				countedIn(t, tr, w.box.Info())
			}
		})
	}
}

// countedIn checks the conversation of TestToolsInSandbox.
func countedIn(t *testing.T, tr *dataset.Trajectory, in sandbox.Info) {
	t.Helper()
	want := []string{
		"0 user: question",
		`1 assistant:  count{} calculator{"expression":"1+1"} count{}`,
		"1 tool: " + in.ID + ": 1", "1 tool: 2", "1 tool: " + in.ID + ": 2",
		"2 assistant:  count{}", "2 tool: " + in.ID + ": 3",
		"3 assistant: 2",
	}
	if diff := cmp.Diff(want, lines(tr)); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	if tr.SandboxBackend != in.Backend || tr.SandboxImage != in.Image || !cmp.Equal(tr.SandboxEnforced, in.Enforced) {
		t.Errorf("recorded of the sandbox: %q, %q, %v", tr.SandboxBackend, tr.SandboxImage, tr.SandboxEnforced)
	}
}

// TestSandboxIsRecordedWithoutTools records the world's sandbox though no tool
// acts in it.
func TestSandboxIsRecordedWithoutTools(t *testing.T) {
	b := newBundle(t, say("2"))
	tr, err := b.runIn(t, &boxedWorld{box: box{id: "x"}})
	if err != nil || tr.SandboxBackend != "test" {
		t.Errorf("error %v, backend %q", err, tr.SandboxBackend)
	}
}

// TestToolsWithoutSandbox ends the attempt as no fault of the policy, before
// anything is paid for.
func TestToolsWithoutSandbox(t *testing.T) {
	for name, w := range map[string]env.Env{"no sandbox at all": new(world), "none this time": new(boxedWorld)} {
		t.Run(name, func(t *testing.T) {
			var bound atomic.Int64
			b := newBundle(t)
			b.options.Tools = append(b.options.Tools, counter(&bound))
			tr, err := b.runIn(t, w)
			if err == nil || tr.ExitReason != dataset.ExitInfraError || tr.SandboxBackend != "" {
				t.Errorf("exit reason %q, error %v, backend %q", tr.ExitReason, err, tr.SandboxBackend)
			}
			if n := len(b.script.seen); n != 0 || bound.Load() != 0 {
				t.Errorf("%d model calls, bound %d times", n, bound.Load())
			}
		})
	}
}

// TestResultIsRecorded puts what a tool tells of a call into the columns of the
// call and of its result.
func TestResultIsRecorded(t *testing.T) {
	b := newBundle(t, calls(call("run", "{}")), say("2"))
	b.world.tools = func() []env.Tool {
		return []env.Tool{testTool("run", func(context.Context) (env.ToolResult, error) {
			return env.ToolResult{Content: "no", IsError: true, BlockedBy: "somebody", ExitCode: new(7), Omitted: 11}, nil
		})}
	}
	tr, err := b.run(t)
	if err != nil {
		t.Fatal(err)
	}
	c, m := tr.Messages[1].ToolCalls[0], tr.Messages[2]
	if !c.IsError || c.BlockedBy != "somebody" || c.ExitCode == nil || *c.ExitCode != 7 {
		t.Errorf("call %+v", c)
	}
	if !m.IsError || m.TruncatedBytes != 11 || m.Content != "no" || m.InjectedBy != "" {
		t.Errorf("result %+v", m)
	}
}

// TestSandboxFails ends the attempt when a bound tool reports that its sandbox
// does not work.
func TestSandboxFails(t *testing.T) {
	b := newBundle(t, calls(call("run", "{}")))
	b.options.Tools = append(b.options.Tools, env.Tool{
		Name: "run", Parameters: json.RawMessage(`{"type":"object"}`),
		Bind: func(sandbox.Sandbox) env.ToolCall {
			return func(context.Context, json.RawMessage) (env.ToolResult, error) {
				return env.ToolResult{}, errors.New("the sandbox is gone")
			}
		},
	})
	tr, err := b.runIn(t, &boxedWorld{box: box{id: "x"}})
	if err == nil || tr.ExitReason != dataset.ExitInfraError || tr.Error != "the sandbox is gone" {
		t.Errorf("exit reason %q, error %v (%s)", tr.ExitReason, err, tr.Error)
	}
}
