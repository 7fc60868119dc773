package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// sleep waits in a synctest bubble.
func sleep(d time.Duration) { <-time.After(d) }

// TestRecord fixes everything that an attempt records: in the bubble, times
// are exact.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t,
			func(ctx context.Context, req model.Request) (model.Response, error) {
				start := time.Now()
				resume := model.Pause(ctx)
				sleep(3 * time.Second)
				resume()
				sleep(2 * time.Second)
				resp, err := calls(call("look", " "))(ctx, req)
				resp.Paused = 3 * time.Second
				resp.Unreported = 1
				resp.Tries = []model.Try{
					{Kind: dataset.SpanRetry, Start: start, ErrorClass: model.ClassServer, Status: 503, RequestID: "r0"},
					{Kind: dataset.SpanLimiter, Start: start, Duration: 3 * time.Second},
				}
				return resp, err
			},
			say("2"),
		)
		b.options.Tools = nil
		b.options.Limits.Time = 9 * time.Second // 14 pass, 3 of them paused, 2 after the last call
		b.world.reset = func(context.Context) ([]dataset.Message, error) {
			sleep(time.Second)
			return []dataset.Message{{Role: dataset.User, Content: "question"}}, nil
		}
		b.world.step = func(context.Context, dataset.Message) (env.Result, error) {
			sleep(time.Second)
			return env.Result{Done: true}, nil
		}
		exit := 3
		b.world.tools = func() []env.Tool {
			return []env.Tool{testTool("look", func(context.Context) (env.ToolResult, error) {
				sleep(4 * time.Second)
				return env.ToolResult{Content: "dark", IsError: true, ExitCode: &exit}, nil
			})}
		}
		tr, err := b.run(t)
		if err != nil {
			t.Fatal(err)
		}

		usage := &dataset.Usage{Input: inTokens, Output: outTokens}
		cost := new(int64(nanoUSD))
		want := &dataset.Trajectory{
			Episode: episode(), StartedAt: tr.StartedAt, ExitReason: dataset.ExitAnswered, Answer: new("2"),
			Messages: []dataset.Message{
				{Role: dataset.User, Content: "question", CreatedAt: tr.StartedAt.Add(time.Second)},
				{
					Role: dataset.Assistant, Policy: true, Agent: dataset.AgentPolicy, Turn: 1, SpanID: "model-1",
					FinishReason: model.FinishToolCalls, CreatedAt: tr.StartedAt.Add(6 * time.Second),
					ToolCalls: []dataset.ToolCall{{
						ID: "id-look", Name: "look", Arguments: " ", Coerced: "{}", ResultPosition: 2, IsError: true,
						ExitCode: &exit, Duration: 4 * time.Second, SpanID: "tool-1-0",
					}},
				},
				{
					Role: dataset.ToolRole, Content: "dark", ToolCallID: "id-look", ToolName: "look", IsError: true,
					Turn: 1, SpanID: "tool-1-0", CreatedAt: tr.StartedAt.Add(10 * time.Second),
				},
				{
					Role: dataset.Assistant, Content: "2", Policy: true, Agent: dataset.AgentPolicy, Turn: 2, SpanID: "model-2",
					FinishReason: model.FinishStop, CreatedAt: tr.StartedAt.Add(10 * time.Second),
				},
			},
			Spans: []dataset.Span{
				{ID: "setup", Kind: dataset.SpanSetup, Name: "setup", Duration: time.Second, Status: "ok"},
				{
					ID: "model-1", Kind: dataset.SpanModel, Name: "generate", Turn: 1, Agent: dataset.AgentPolicy,
					Start: time.Second, Duration: 5 * time.Second, Status: "ok", CallID: "e-2-0", RequestID: "r",
					ModelServed: "m-1", Usage: usage, CostNanoUSD: cost,
				},
				{
					ID: "model-1-retry-0", ParentID: "model-1", Kind: dataset.SpanRetry, Name: "retry", Turn: 1, Agent: dataset.AgentPolicy,
					Start: time.Second, Status: "error", ErrorClass: model.ClassServer, CallID: "e-2-0", RequestID: "r0",
					Attrs: map[string]any{"http_status": 503},
				},
				{
					ID: "model-1-limiter-0", ParentID: "model-1", Kind: dataset.SpanLimiter, Name: "limiter", Turn: 1, Agent: dataset.AgentPolicy,
					Start: time.Second, Duration: 3 * time.Second, Status: "ok", CallID: "e-2-0",
				},
				{
					ID: "tool-1-0", Kind: dataset.SpanTool, Name: "look", Turn: 1, Agent: dataset.AgentPolicy,
					Start: 6 * time.Second, Duration: 4 * time.Second, Status: "error",
				},
				{
					ID: "model-2", Kind: dataset.SpanModel, Name: "generate", Turn: 2, Agent: dataset.AgentPolicy,
					Start: 10 * time.Second, Status: "ok", CallID: "e-2-1", RequestID: "r", ModelServed: "m-1", Usage: usage, CostNanoUSD: cost,
				},
				{ID: "env-2", Kind: dataset.SpanEnv, Name: "step", Turn: 2, Start: 10 * time.Second, Duration: time.Second, Status: "ok"},
			},
			Books: dataset.Books{
				Requests: 2, Usage: dataset.Usage{Input: 2 * inTokens, Output: 2 * outTokens}, CostKnown: 2 * nanoUSD, Unreported: 1,
			},
			ModelsServed: []string{"m-1"}, Fingerprints: []string{"f"}, Upstream: []string{"u"}, PriceVersion: "2026-01",
			Setup: time.Second, Model: 2 * time.Second, Throttle: 3 * time.Second, Tool: 5 * time.Second, Working: 8 * time.Second,
		}
		if diff := cmp.Diff(want, tr, cmpopts.IgnoreUnexported(dataset.Books{})); diff != "" {
			t.Errorf("trajectory (-want +got):\n%s", diff)
		}
	})
}

// TestPauseStopsTheTime checks that a limit of working time outlasts a wait for
// the provider.
func TestPauseStopsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, func(ctx context.Context, req model.Request) (model.Response, error) {
			resume := model.Pause(ctx)
			sleep(time.Hour)
			resume()
			return say("2")(ctx, req)
		})
		b.options.Limits.Time = time.Minute
		tr, err := b.run(t)
		if err != nil || tr.ExitReason != dataset.ExitAnswered {
			t.Errorf("got %s, error %v, want answered", tr.ExitReason, err)
		}
		if tr.Working != 0 {
			t.Errorf("working time: got %v, want 0", tr.Working)
		}
	})
}

// TestCutCallIsUnreported checks what is known of a call that a limit cut off,
// through the wrapper that every policy has.
func TestCutCallIsUnreported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, func(ctx context.Context, _ model.Request) (model.Response, error) {
			<-ctx.Done()
			return model.Response{}, &model.Error{Class: model.ClassCancelled, Sent: true, Err: context.Cause(ctx)}
		})
		b.options.Model = model.Retry(b.script, model.RetryOptions{})
		b.options.Limits.Time = time.Minute
		tr, err := b.run(t)
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.Books; got.Unreported != 1 || got.Requests != 1 || got.Cost() != nil {
			t.Errorf("books: got %+v, want one unreported call of unknown cost", got)
		}
		if got := tr.Spans[1]; got.Status != "cancelled" || got.ErrorClass != model.ClassCancelled || got.Duration != time.Minute {
			t.Errorf("span: got %+v, want it cancelled after a minute", got)
		}
		if got := tr.Working; got != time.Minute {
			t.Errorf("working time: got %v, want a minute", got)
		}
	})
}

// TestModelPanicGoesThrough checks that a panic that is nobody's of the
// episode reaches the caller, and that what was paid for is on record.
func TestModelPanicGoesThrough(t *testing.T) {
	b := newBundle(t, calls(calc("1")), func(context.Context, model.Request) (model.Response, error) { panic("boom") })
	l, err := New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	tr := &dataset.Trajectory{Episode: episode(), StartedAt: time.Now()}
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v, want boom", v)
			}
		}()
		_ = l.Run(t.Context(), b.world, tr.Episode, tr)
	}()
	want := []string{"0 user: question", `1 assistant:  calculator{"expression":"1"}`, "1 tool: 1"}
	if diff := cmp.Diff(want, lines(tr)); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	if got := tr.Books; got.Requests != 2 || got.Unreported != 1 || got.CostKnown != nanoUSD {
		t.Errorf("books: got %+v, want two calls, one of them unreported", got)
	}
	if got := tr.Spans[len(tr.Spans)-1]; got.CallID != "e-2-1" || got.Status != "error" {
		t.Errorf("last span: got %+v, want the second call's, in error", got)
	}
}

// TestRecordedBeforeActing checks that a call is in the trajectory before the
// tool sees it.
func TestRecordedBeforeActing(t *testing.T) {
	tr := &dataset.Trajectory{Episode: episode(), StartedAt: time.Now()}
	var seen []string
	b := newBundle(t, calls(call("look", "{}")), say("2"))
	b.world.tools = func() []env.Tool {
		return []env.Tool{testTool("look", func(context.Context) (env.ToolResult, error) {
			seen = lines(tr)
			return env.ToolResult{Content: "dark"}, nil
		})}
	}
	l, err := New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context(), b.world, tr.Episode, tr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0 user: question", "1 assistant:  look{}"}, seen); diff != "" {
		t.Errorf("conversation within the tool (-want +got):\n%s", diff)
	}
}

// TestPanicText checks that the text of a panic is the same each time and says
// where it happened.
func TestPanicText(t *testing.T) {
	text := func() string {
		b := newBundle(t)
		b.world.reset = explode
		tr, err := b.run(t)
		if err != nil {
			t.Fatal(err)
		}
		return tr.Error
	}
	first := text()
	done := make(chan string)
	go func() { done <- text() }()
	if got := <-done; got != first {
		t.Errorf("two panics of one place differ:\n%s\n%s", first, got)
	}
	var places []string
	for line := range strings.Lines(first) {
		place, _, _ := strings.Cut(strings.TrimSpace(line), ".go:")
		places = append(places, place)
	}
	want := []string{
		"panic: runtime error: slice bounds out of range [3:0]",
		"github.com/talaria-run/talaria/agent.explode record_test",
		"github.com/talaria-run/talaria/agent.(*world).Reset bundle_test",
		"github.com/talaria-run/talaria/agent.(*attempt).setup.func1 attempt",
	}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func explode(context.Context) ([]dataset.Message, error) {
	var none []dataset.Message
	i := 3
	return none[i:], nil
}

// TestCarriedPanic checks that a panic which was caught in another goroutine
// keeps the stack that it had there.
func TestCarriedPanic(t *testing.T) {
	const carried = "panic: boom\nplace.of.it file.go:1\n"
	err := guard(func() error { panic(errors.New(carried)) })
	if err == nil || err.Error() != carried {
		t.Errorf("got %v, want %q", err, carried)
	}
}

func TestCutResult(t *testing.T) {
	tests := []struct {
		name    string
		content string
		missing int64
		want    string // of the middle, with the characters around it
	}{
		{"short", "abc", 0, ""},
		{"just fits", strings.Repeat("x", maxResult), 0, ""},
		{"fits in characters", strings.Repeat("é", maxResult), 0, ""},
		{
			"one too many", strings.Repeat("x", resultHead-1) + "hAB" + strings.Repeat("m", maxResult+1-resultHead-resultTail-2) + "t" + strings.Repeat("x", resultTail-1),
			101, "xh\n[... 101 characters left out ...]\ntx",
		},
		{
			"other characters", strings.Repeat("é", 200_000), 2 * (200_000 - resultHead - resultTail),
			"éé\n[... 100100 characters left out ...]\néé",
		},
		{"no characters at all", strings.Repeat("\xff", maxResult+1), 101, "\xff\n[... 101 characters left out ...]\n\xff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, missing := cutResult(tt.content)
			if missing != tt.missing {
				t.Errorf("missing: got %d, want %d", missing, tt.missing)
			}
			if tt.missing == 0 && got != tt.content {
				t.Error("changed")
			}
			if n := utf8.RuneCountInString(got); n > maxResult {
				t.Errorf("%d characters are left, want at most %d", n, maxResult)
			}
			if !strings.Contains(got, tt.want) {
				i := strings.IndexByte(got, '\n')
				t.Errorf("got %q in the middle, want %q", got[max(i-4, 0):i+44], tt.want)
			}
		})
	}
}

// TestLongResultIsCut checks that the cut is on record.
func TestLongResultIsCut(t *testing.T) {
	b := newBundle(t, calls(call("dump", "{}")), say("2"))
	b.world.tools = func() []env.Tool {
		return []env.Tool{testTool("dump", func(context.Context) (env.ToolResult, error) {
			return env.ToolResult{Content: strings.Repeat("x", 2*maxResult)}, nil
		})}
	}
	tr, err := b.run(t)
	if err != nil {
		t.Fatal(err)
	}
	m := tr.Messages[2]
	if got, want := m.TruncatedBytes, int64(2*maxResult-resultHead-resultTail); got != want || len(m.Content) > maxResult {
		t.Errorf("got %d bytes of %d cut, want %d", got, len(m.Content), want)
	}
}

// BenchmarkEpisode is an episode of three calls and two tools.
func BenchmarkEpisode(b *testing.B) {
	echo := env.Tool{
		Name: "echo", Parameters: json.RawMessage(`{"type":"object"}`),
		Call: func(context.Context, json.RawMessage) (env.ToolResult, error) {
			return env.ToolResult{Content: "ok"}, nil
		},
	}
	l, err := New(Options{Model: twoCalls{}, Tools: []env.Tool{echo}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		tr := &dataset.Trajectory{Episode: episode(), StartedAt: time.Now()}
		if err := l.Run(b.Context(), new(world), tr.Episode, tr); err != nil || tr.ExitReason != dataset.ExitAnswered {
			b.Fatalf("%s, %v", tr.ExitReason, err)
		}
	}
}

// twoCalls is a model that calls a tool twice, then answers.
type twoCalls struct{}

func (twoCalls) Generate(_ context.Context, req model.Request) (model.Response, error) {
	m := dataset.Message{Content: "done", FinishReason: model.FinishStop}
	if len(req.Messages) < 5 {
		m = dataset.Message{FinishReason: model.FinishToolCalls, ToolCalls: []dataset.ToolCall{call("echo", `{"text":"hello"}`)}}
	}
	return model.Response{Message: m, Usage: &dataset.Usage{Input: 1, Output: 1}}, nil
}
