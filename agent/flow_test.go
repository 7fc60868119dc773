package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

const syntaxProblem = "Not run: the arguments are not valid JSON: invalid character '}' looking for beginning of object key string."

// TestConversation fixes what stands in the history, and so what the model
// sees and what is trained on.
func TestConversation(t *testing.T) {
	unknown := call("abacus", "{}")
	broken := call("calculator", `{"expression":"1+1",}`)
	tests := []struct {
		name      string
		turns     []turn
		with      func(*bundle)
		want      []string
		discarded int
	}{
		{
			name:  "tools, then an answer",
			turns: []turn{ending("Let me see.", model.FinishToolCalls, calc("1+1"), calc("2/0")), say("2")},
			want: []string{
				"0 user: question",
				`1 assistant: Let me see. calculator{"expression":"1+1"} calculator{"expression":"2/0"}`,
				"1 tool: 2",
				"1 tool error: division by zero",
				"2 assistant: 2",
			},
		},
		{
			name:  "system prompt first, env's words after",
			turns: []turn{say("3"), say("2")},
			with: func(b *bundle) {
				b.options.SystemPrompt = "Be brief."
				b.world.reset = func(context.Context) ([]dataset.Message, error) {
					return []dataset.Message{{Role: dataset.User, Content: "0+1?"}, {Role: dataset.Assistant, Content: "1"}, {Role: dataset.User, Content: "1+1?", Policy: true}}, nil
				}
				b.world.step = func(_ context.Context, m dataset.Message) (env.Result, error) {
					return env.Result{Done: m.Content == "2", Messages: []dataset.Message{{Role: dataset.User, Content: "heard " + m.Content}}}, nil
				}
			},
			want: []string{
				"0 system: Be brief.", "0 user: 0+1?", "0 assistant: 1", "0 user: 1+1?",
				"1 assistant: 3", "1 user: heard 3", "2 assistant: 2", "2 user: heard 2",
			},
		},
		{
			name:  "no arguments are an empty object",
			turns: []turn{calls(call("look", "")), say("2")},
			with: withTool("look", func(context.Context) (env.ToolResult, error) {
				return env.ToolResult{Content: "nothing"}, nil
			}),
			want: []string{"0 user: question", "1 assistant:  look", "1 tool: nothing", "2 assistant: 2"},
		},
		{
			name:  "calls after a submission are not run",
			turns: []turn{calls(calc("1"), submit("4"), calc("2"), submit("5"))},
			want: []string{
				"0 user: question",
				`1 assistant:  calculator{"expression":"1"} submit_answer{"answer":"4"} calculator{"expression":"2"} [episode_end] submit_answer{"answer":"5"} [episode_end]`,
				"1 tool: 1",
				"1 tool: The answer is submitted.",
				"1 tool (synthetic) error: Not run: the episode ended (submitted).",
				"1 tool (synthetic) error: Not run: the episode ended (submitted).",
			},
		},
		{
			name:  "an unknown tool beside known ones",
			turns: []turn{calls(calc("1"), unknown, call("", "{}")), say("2")},
			want: []string{
				"0 user: question",
				`1 assistant:  calculator{"expression":"1"} [skipped] abacus{} [unknown_tool] {} [unknown_tool]`,
				"1 tool (repair) error: Skipped: another tool call of the same reply was invalid.",
				`1 tool (repair) error: There is no tool "abacus". Valid tools: calculator, submit_answer.`,
				"1 tool (repair) error: A tool call needs a name.",
				"2 assistant: 2",
			},
		},
		{
			name:  "a call where there are no tools",
			turns: []turn{calls(unknown), say("2")},
			with:  func(b *bundle) { b.options.Tools = nil },
			want: []string{
				"0 user: question", "1 assistant:  abacus{} [unknown_tool]",
				`1 tool (repair) error: There is no tool "abacus". There are no tools.`, "2 assistant: 2",
			},
		},
		{
			name:  "a known tool ends the row of unknown ones",
			turns: []turn{calls(unknown), calls(unknown), calls(calc("1")), calls(unknown), calls(unknown), say("2")},
			want: []string{
				"0 user: question",
				"1 assistant:  abacus{} [unknown_tool]", `1 tool (repair) error: There is no tool "abacus". Valid tools: calculator, submit_answer.`,
				"2 assistant:  abacus{} [unknown_tool]", `2 tool (repair) error: There is no tool "abacus". Valid tools: calculator, submit_answer.`,
				`3 assistant:  calculator{"expression":"1"}`, "3 tool: 1",
				"4 assistant:  abacus{} [unknown_tool]", `4 tool (repair) error: There is no tool "abacus". Valid tools: calculator, submit_answer.`,
				"5 assistant:  abacus{} [unknown_tool]", `5 tool (repair) error: There is no tool "abacus". Valid tools: calculator, submit_answer.`,
				"6 assistant: 2",
			},
		},
		{
			name:      "invalid arguments are asked for again",
			turns:     []turn{calls(broken), calls(broken), calls(calc("1+1")), say("2")},
			discarded: 2,
			want:      []string{"0 user: question", `3 assistant:  calculator{"expression":"1+1"}`, "3 tool: 2", "4 assistant: 2"},
		},
		{
			name:      "invalid arguments, three times",
			turns:     []turn{calls(broken), calls(broken), calls(calc("1"), broken), say("2")},
			discarded: 2,
			want: []string{
				"0 user: question",
				`3 assistant:  calculator{"expression":"1"} [skipped] calculator{"expression":"1+1",} [invalid_arguments]`,
				"3 tool (repair) error: Skipped: another tool call of the same reply was invalid.",
				"3 tool (repair) error: " + syntaxProblem,
				"4 assistant: 2",
			},
		},
		{
			name:      "invalid arguments again after they were kept",
			turns:     []turn{calls(broken), calls(broken), calls(broken), calls(broken), say("2")},
			discarded: 3,
			want: []string{
				"0 user: question",
				`3 assistant:  calculator{"expression":"1+1",} [invalid_arguments]`,
				"3 tool (repair) error: " + syntaxProblem,
				"5 assistant: 2",
			},
		},
		{
			name:      "empty replies and invalid arguments do not excuse each other",
			turns:     []turn{say(""), calls(broken), say(""), calls(broken), say("")},
			discarded: 4,
			want:      []string{"0 user: question", "5 assistant: "},
		},
		{
			name:      "an empty reply is asked for again",
			turns:     []turn{say(" "), say("2")},
			discarded: 1,
			want:      []string{"0 user: question", "2 assistant: 2"},
		},
		{
			name:  "cut arguments are never run",
			turns: []turn{calls(calc("1"), call("submit_answer", `{"answer":"`))},
			want: []string{
				"0 user: question",
				`1 assistant:  calculator{"expression":"1"} [episode_end] submit_answer{"answer":" [episode_end]`,
				"1 tool (synthetic) error: Not run: the episode ended (truncated_arguments).",
				"1 tool (synthetic) error: Not run: the episode ended (truncated_arguments).",
			},
		},
		{
			name:  "calls of a refusal are not run",
			turns: []turn{ending("no", model.FinishContentFilter, submit("4"))},
			want: []string{
				"0 user: question", `1 assistant: no submit_answer{"answer":"4"} [episode_end]`,
				"1 tool (synthetic) error: Not run: the episode ended (refused).",
			},
		},
		{
			name:  "the time is over between two calls",
			turns: []turn{calls(call("slow", "{}"), call("slow", "{}"), submit("4"))},
			with: both(limits(Limits{Time: 90 * time.Second}), withTool("slow", func(ctx context.Context) (env.ToolResult, error) {
				wait := time.NewTimer(time.Minute)
				defer wait.Stop()
				select {
				case <-wait.C:
					return env.ToolResult{Content: "slept"}, nil
				case <-ctx.Done():
					return env.ToolResult{}, context.Cause(ctx)
				}
			})),
			want: []string{
				"0 user: question",
				`1 assistant:  slow{} slow{} submit_answer{"answer":"4"} [episode_end]`,
				"1 tool: slept",
				"1 tool (synthetic) error: The tool did not return: the episode ended (time_limit).",
				"1 tool (synthetic) error: Not run: the episode ended (time_limit).",
			},
		},
		{
			name:  "the bytes are used up between two calls",
			turns: []turn{calls(call("dump", "{}"), submit("4"))},
			with: both(limits(Limits{Bytes: 100}), withTool("dump", func(context.Context) (env.ToolResult, error) {
				return env.ToolResult{Content: strings.Repeat("x", 100)}, nil
			})),
			want: []string{
				"0 user: question", `1 assistant:  dump{} submit_answer{"answer":"4"} [episode_end]`,
				"1 tool: " + strings.Repeat("x", 100),
				"1 tool (synthetic) error: Not run: the episode ended (bytes_limit).",
			},
		},
		{
			name:  "a panic in the middle of the calls",
			turns: []turn{calls(calc("1"), call("dig", "{}"), calc("2"))},
			with:  withTool("dig", func(context.Context) (env.ToolResult, error) { panic("boom") }),
			want: []string{
				"0 user: question",
				`1 assistant:  calculator{"expression":"1"} dig{} calculator{"expression":"2"} [episode_end]`,
				"1 tool: 1",
				"1 tool (synthetic) error: The tool did not return: the episode ended (tool_panic).",
				"1 tool (synthetic) error: Not run: the episode ended (tool_panic).",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBundle(t, tt.turns...)
				if tt.with != nil {
					tt.with(b)
				}
				tr, err := b.run(t)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, lines(tr)); diff != "" {
					t.Errorf("conversation (-want +got):\n%s", diff)
				}
				if got := tr.DiscardedGenerations; got != tt.discarded {
					t.Errorf("discarded: got %d, want %d", got, tt.discarded)
				}
			})
		})
	}
}

// TestRecallLeavesTheHistory checks that a discarded reply is not shown to the
// model.
func TestRecallLeavesTheHistory(t *testing.T) {
	b := newBundle(t, calls(call("calculator", "[1]")), say(""), say("2"))
	if _, err := b.run(t); err != nil {
		t.Fatal(err)
	}
	for n, req := range b.script.seen {
		if got := len(req.Messages); got != 1 {
			t.Errorf("call %d sees %d messages, want 1", n, got)
		}
	}
}

func TestRequests(t *testing.T) {
	b := newBundle(t, calls(calc("1+1")), say("2"))
	b.options.Sampling = dataset.Sampling{Temperature: new(0.5)}
	b.options.SystemPrompt = "Be brief."
	b.world.tools = func() []env.Tool { return []env.Tool{testTool("adder", nil)} }
	if _, err := b.run(t); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		CallID, Agent, Episode string
		Temperature            float64
		Tools                  []string
		Messages               int
	}
	got := make([]seen, 0, len(b.script.seen))
	for _, req := range b.script.seen {
		s := seen{CallID: req.CallID, Agent: req.Agent, Episode: req.Episode.ID, Temperature: *req.Sampling.Temperature, Messages: len(req.Messages)}
		for _, spec := range req.Tools {
			s.Tools = append(s.Tools, spec.Name)
		}
		got = append(got, s)
	}
	tools := []string{"adder", "calculator", "submit_answer"}
	want := []seen{
		{"e-2-0", "policy", "e", 0.5, tools, 2},
		{"e-2-1", "policy", "e", 0.5, tools, 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRewardsOfTheEnv(t *testing.T) {
	b := newBundle(t, say("3"), say("4"))
	b.world.step = func(_ context.Context, m dataset.Message) (env.Result, error) {
		r := env.Result{Done: m.Content == "4", Rewards: []dataset.Reward{{Name: "step"}}}
		if !r.Done {
			r.Messages = []dataset.Message{{Role: dataset.User, Content: "no"}}
		}
		return r, nil
	}
	tr, err := b.run(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []dataset.Reward{
		{Name: "step", Source: dataset.FromEnv, Turn: new(1)},
		{Name: "step", Source: dataset.FromEnv, Turn: new(2)},
	}
	if diff := cmp.Diff(want, tr.Rewards); diff != "" {
		t.Errorf("rewards (-want +got):\n%s", diff)
	}
}

// TestScriptIsNotChanged guards models that share their replies between
// episodes.
func TestScriptIsNotChanged(t *testing.T) {
	shared := []dataset.ToolCall{submit("4")}
	b := newBundle(t, calls(shared...))
	if _, err := b.run(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]dataset.ToolCall{submit("4")}, shared); diff != "" {
		t.Errorf("the model's own call (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	sound := testTool("a", nil)
	with := func(change func(*env.Tool)) Options {
		bad := sound
		change(&bad)
		return Options{Model: &script{}, Tools: []env.Tool{bad}}
	}
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"no model", Options{}, "agent: no model"},
		{"two of a name", Options{Model: &script{}, Tools: []env.Tool{sound, sound}}, `two tools are named "a"`},
		{"no name", with(func(t *env.Tool) { t.Name = "" }), `a tool has no name: ""`},
		{"no function", with(func(t *env.Tool) { t.Call = nil }), `tool "a" needs one of Call and Bind`},
		{"no schema", with(func(t *env.Tool) { t.Parameters = nil }), `tool "a": its parameters are not JSON`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.o); err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}
