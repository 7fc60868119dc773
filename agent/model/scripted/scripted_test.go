package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	submitTool = model.ToolSpec{Name: "submit_answer", Parameters: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)}
	calcTool   = model.ToolSpec{Name: "calculator", Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)}
	shellTool  = model.ToolSpec{Name: "terminal", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"]}`)}
)

func open(t *testing.T, name string, o Options) *Model {
	t.Helper()
	m, err := New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask is the first call of an episode.
func ask(ep dataset.Episode, tools ...model.ToolSpec) model.Request {
	return model.Request{
		Messages: []dataset.Message{
			{Role: dataset.User, Content: "An example?"},
			{Role: dataset.Assistant, Content: "An example."},
			{Role: dataset.User, Content: "How much?"},
		},
		Tools: tools, CallID: model.CallID(&ep, 0), Episode: &ep,
	}
}

// promptBytes is what ask says with one tool.
func promptBytes(tool model.ToolSpec) int {
	return len("An example?An example.How much?") + len(tool.Name) + len(tool.Parameters)
}

// play talks with m until it calls no tool or has replied n times, and returns
// its replies.
func play(t *testing.T, m model.Model, req model.Request, n int) []dataset.Message {
	t.Helper()
	var replies []dataset.Message
	for range n {
		resp, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		reply := resp.Message
		replies = append(replies, reply)
		if len(reply.ToolCalls) == 0 {
			break
		}
		reply.Policy = true
		req.Messages = append(req.Messages, reply)
		for _, c := range reply.ToolCalls {
			req.Messages = append(req.Messages, dataset.Message{Role: dataset.ToolRole, ToolCallID: c.ID, Content: "2"})
		}
		req.CallID = model.CallID(req.Episode, len(replies))
	}
	return replies
}

func TestNew(t *testing.T) {
	for _, name := range Names() {
		if _, err := New(name, Options{Replay: new(Replay)}); err != nil {
			t.Error(err)
		}
	}
	for name, o := range map[string]Options{
		"oracel": {}, "replay": {}, "null": {LatencyMin: -1}, "random": {FailureRate: 1.5}, "loop": {FailureRate: -0.1},
	} {
		if _, err := New(name, o); err == nil {
			t.Errorf("%s with %+v is taken", name, o)
		}
	}
}

func TestOracle(t *testing.T) {
	task := dataset.Task{ID: "t", Target: "18"}
	text := dataset.Message{Role: dataset.Assistant, Content: "18", FinishReason: model.FinishStop}
	submit := dataset.Message{Role: dataset.Assistant, FinishReason: model.FinishToolCalls, ToolCalls: []dataset.ToolCall{
		{ID: "call_0", Name: "submit_answer", Arguments: `{"answer":"18"}`},
	}}
	tests := []struct {
		name  string
		tools []model.ToolSpec
		want  []dataset.Message
	}{
		{"no tools", nil, []dataset.Message{text}},
		{"another tool", []model.ToolSpec{calcTool}, []dataset.Message{text}},
		{"a tool to submit with", []model.ToolSpec{calcTool, submitTool}, []dataset.Message{submit, text}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := play(t, open(t, "oracle", Options{}), ask(dataset.Episode{Task: task}, tt.tools...), 5)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("replies (-want +got):\n%s", diff)
			}
		})
	}
	m := open(t, "oracle", Options{Solution: func(t *dataset.Task) string { return "the answer to " + t.ID }})
	if got := play(t, m, ask(dataset.Episode{Task: task}), 1)[0].Content; got != "the answer to t" {
		t.Errorf("with a solution of its own: %q", got)
	}
	_, err := open(t, "oracle", Options{}).Generate(t.Context(), ask(dataset.Episode{Task: dataset.Task{ID: "t"}}))
	if !errors.Is(err, dataset.ErrTask) || model.ClassOf(err) != model.ClassTask {
		t.Errorf("a task without target: %v", err)
	}
}

func TestNull(t *testing.T) {
	got, err := open(t, "null", Options{}).Generate(t.Context(), ask(dataset.Episode{}, submitTool))
	if err != nil {
		t.Fatal(err)
	}
	want := model.Response{
		Message: dataset.Message{Role: dataset.Assistant, FinishReason: model.FinishGaveUp},
		Usage:   &dataset.Usage{Input: int64(promptBytes(submitTool)+3) / 4}, ModelServed: "scripted/null",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestLoop(t *testing.T) {
	m := open(t, "loop", Options{})
	if got := play(t, m, ask(dataset.Episode{}, submitTool), 3); len(got) != 1 || got[0].Content != "..." {
		t.Errorf("with no harmless tool: %+v", got)
	}
	for _, tools := range [][]model.ToolSpec{{submitTool, calcTool}, {shellTool, submitTool}, {shellTool, calcTool}} {
		seen := map[string]bool{}
		replies := play(t, m, ask(dataset.Episode{}, tools...), 50)
		for _, r := range replies {
			c := r.ToolCalls[0]
			if c.Name == "submit_answer" || (c.Name != "calculator" && slices.ContainsFunc(tools, func(s model.ToolSpec) bool { return s.Name == "calculator" })) {
				t.Fatalf("calls %s", c.Name)
			}
			seen[c.Arguments] = true
		}
		if len(replies) != 50 || len(seen) != 50 {
			t.Errorf("%d replies with %d different arguments, want 50", len(replies), len(seen))
		}
	}
}

// TestRandom wants equal replies for equal seeds whatever the variant, an end
// to every episode, and some of everything.
func TestRandom(t *testing.T) {
	m := open(t, "random", Options{})
	kinds := map[string]int{}
	answers := map[string]bool{}
	for seed := range int64(300) {
		ep := dataset.Episode{ID: "a", Seed: seed}
		got := play(t, m, ask(ep, shellTool, submitTool), 10)
		ep.ID, ep.Variant = "b", "other"
		if diff := cmp.Diff(got, play(t, m, ask(ep, shellTool, submitTool), 10)); diff != "" {
			t.Fatalf("another variant, another reply (-want +got):\n%s", diff)
		}
		if len(got) > maxToolTurns+10 || len(got) == 0 {
			t.Fatalf("seed %d: %d replies", seed, len(got))
		}
		answers[got[len(got)-1].Content] = true
		for _, r := range got {
			kinds[kindOf(t, r)]++
		}
	}
	if want := []string{"number", "submit_answer", "terminal", "word"}; !slices.Equal(slices.Sorted(maps.Keys(kinds)), want) {
		t.Errorf("kinds %v, want some of each of %v", kinds, want)
	}
	if len(answers) < 50 {
		t.Errorf("%d different answers of 300", len(answers))
	}
	if got := play(t, m, ask(dataset.Episode{}), 5); len(got) != 1 || got[0].Content == "" {
		t.Errorf("without tools: %+v", got)
	}
}

// kindOf is the tool that a reply calls, or what its text is.
func kindOf(t *testing.T, reply dataset.Message) string {
	t.Helper()
	if len(reply.ToolCalls) == 1 {
		if args := reply.ToolCalls[0].Arguments; !json.Valid([]byte(args)) {
			t.Errorf("arguments %s", args)
		}
		return reply.ToolCalls[0].Name
	}
	if _, err := strconv.Atoi(reply.Content); err == nil {
		return "number"
	}
	return "word"
}

func TestArguments(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"string", `{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"x"}`},
		{"only what is required", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, `{"b":"x"}`},
		{"nothing required", `{"properties":{"b":{"type":"string"},"a":{}}}`, `{"a":"x"}`},
		{"each type", `{"properties":{"i":{"type":"integer"},"n":{"type":["number","null"]},"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"},"z":{"type":"null"},"e":{"type":"string","enum":["on","off"]}},"required":["i","n","b","l","o","z","e","u"]}`, `{"b":true,"e":"on","i":1,"l":[],"n":1,"o":{},"u":"x","z":null}`},
		{"no parameters", `{"type":"object"}`, `{}`},
		{"no schema", ``, `{}`},
	}
	for _, tt := range tests {
		if got := arguments(json.RawMessage(tt.schema), "x"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestUsage(t *testing.T) {
	req := ask(dataset.Episode{Task: dataset.Task{Target: "eighteen!"}}, calcTool)
	resp, err := open(t, "oracle", Options{}).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&dataset.Usage{Input: int64(promptBytes(calcTool)+3) / 4, Output: 3}); !cmp.Equal(want, resp.Usage) {
		t.Errorf("usage %+v, want %+v", resp.Usage, want)
	}
	rates, _ := model.EmbeddedPrices().Rates(Provider, "oracle")
	if cost, known := rates.Cost(*resp.Usage); cost != 0 || !known {
		t.Errorf("costs %d, known %v", cost, known)
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, "null", Options{LatencyMin: time.Second, LatencyMax: 3 * time.Second})
		took := func(ep dataset.Episode) time.Duration {
			start := time.Now()
			if _, err := m.Generate(t.Context(), ask(ep)); err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		seen := map[time.Duration]bool{}
		for i := range 50 {
			ep := dataset.Episode{ID: strconv.Itoa(i)}
			d := took(ep)
			if d < time.Second || d > 3*time.Second || d != took(ep) {
				t.Errorf("episode %d took %v, and then %v", i, d, took(ep))
			}
			seen[d] = true
		}
		if len(seen) < 40 {
			t.Errorf("%d different latencies of 50", len(seen))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(dataset.ErrInterrupted) })
		start := time.Now()
		_, err := m.Generate(ctx, ask(dataset.Episode{}))
		if !errors.Is(err, dataset.ErrInterrupted) || model.ClassOf(err) != model.ClassCancelled || time.Since(start) != time.Millisecond {
			t.Errorf("cancelled after %v: %v", time.Since(start), err)
		}
	})
}

// TestFailures wants failures by call id and try alone, so that a retry may
// pass and concurrency changes nothing.
func TestFailures(t *testing.T) {
	m := open(t, "oracle", Options{FailureRate: 0.4, Seed: 3})
	const n = 400
	failed := func(i, try int) bool {
		req := ask(dataset.Episode{ID: strconv.Itoa(i), Task: dataset.Task{Target: "x"}})
		req.Try = try
		_, err := m.Generate(t.Context(), req)
		e := new(model.Error)
		if err != nil && (!errors.As(err, &e) || !e.Retryable || e.Sent) {
			t.Errorf("error %v", err)
		}
		return err != nil
	}
	var want, got [n][2]bool
	failures, passed := 0, 0
	for i := range n {
		want[i] = [2]bool{failed(i, 0), failed(i, 1)}
		if want[i][0] {
			failures++
			if !want[i][1] {
				passed++
			}
		}
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { got[i] = [2]bool{failed(i, 0), failed(i, 1)} })
	}
	wg.Wait()
	if got != want {
		t.Error("concurrency changes which calls fail")
	}
	if failures < n/4 || failures > n*11/20 || passed == 0 {
		t.Errorf("%d of %d calls fail, %d of them once", failures, n, passed)
	}
}

// In a task with files the oracle runs its solution in the terminal, and random
// runs only what harms nothing; both then end.
func TestInATerminal(t *testing.T) {
	for _, name := range []string{"oracle", "random"} {
		m, err := New(name, Options{Solution: func(*dataset.Task) string { return "make it so" }})
		if err != nil {
			t.Fatal(err)
		}
		for seed := range int64(50) {
			calls := playTerminal(t, m, seed)
			if len(calls) == 0 || len(calls) > maxToolTurns {
				t.Fatalf("%s made %d calls", name, len(calls))
			}
			for _, c := range calls {
				if c.Name != "terminal" {
					t.Errorf("%s called %s", name, c.Name)
				}
			}
			if want := `{"command":"make it so"}`; name == "oracle" && calls[0].Arguments != want {
				t.Errorf("the oracle ran %s, want %s", calls[0].Arguments, want)
			}
		}
	}
}

// playTerminal plays a task with files until the model says something, and
// returns the calls before that.
func playTerminal(t *testing.T, m *Model, seed int64) (calls []dataset.ToolCall) {
	t.Helper()
	req := model.Request{
		Episode: &dataset.Episode{Seed: seed, Task: dataset.Task{Files: fstest.MapFS{}}},
		Tools: []model.ToolSpec{
			{Name: "submit_answer", Parameters: []byte(`{"properties":{"answer":{"type":"string"}},"required":["answer"]}`)},
			{Name: "terminal", Parameters: []byte(`{"properties":{"command":{"type":"string"}},"required":["command"]}`)},
			{Name: "write_file", Parameters: []byte(`{"properties":{"path":{"type":"string"}},"required":["path"]}`)},
		},
	}
	for range maxToolTurns + 2 {
		resp, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Message.ToolCalls) == 0 {
			return calls
		}
		calls = append(calls, resp.Message.ToolCalls...)
		resp.Message.Policy = true
		req.Messages = append(req.Messages, resp.Message)
	}
	t.Fatalf("the model goes on after %d calls", len(calls))
	return nil
}
