package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// elsewhere are the exit reasons that the loop does not give.
var elsewhere = map[dataset.ExitReason]string{
	dataset.ExitGuardrail:     "loop detection",
	dataset.ExitVerifierError: "the runner, of an env's Score",
	dataset.ExitPanic:         "the runner",
	dataset.ExitGroupStopped:  "the runner",
	dataset.ExitKilled:        "the store, when it opens the run again",
}

func every() []dataset.ExitReason {
	return []dataset.ExitReason{
		dataset.ExitAnswered, dataset.ExitSubmitted, dataset.ExitEnvDone, dataset.ExitGaveUp, dataset.ExitRefused,
		dataset.ExitEmpty, dataset.ExitInvalidTools, dataset.ExitCutArguments, dataset.ExitLength,
		dataset.ExitContextFull, dataset.ExitGuardrail, dataset.ExitTurnLimit, dataset.ExitTokenLimit,
		dataset.ExitCostLimit, dataset.ExitTimeLimit, dataset.ExitBytesLimit, dataset.ExitResetError,
		dataset.ExitEnvError, dataset.ExitVerifierError, dataset.ExitEnvPanic, dataset.ExitToolPanic,
		dataset.ExitProviderError, dataset.ExitInfraError, dataset.ExitPanic, dataset.ExitRunBudget,
		dataset.ExitGroupStopped, dataset.ExitInterrupted, dataset.ExitKilled,
	}
}

// ended is what a row says of the end.
type ended struct {
	Reason   dataset.ExitReason
	Class    string
	Error    string // first line
	Answer   string // "-" for none
	Returned bool   // an error from Run
}

// stopped cancels the context of an episode with a cause while the model is at
// work.
func stopped(b *bundle, cause error) {
	ctx, cancel := context.WithCancelCause(b.ctx)
	b.ctx = ctx
	b.script.turns = []turn{func(ctx context.Context, req model.Request) (model.Response, error) {
		cancel(cause)
		return hang(ctx, req)
	}}
}

func exitTests() []exitTest {
	boom := errors.New("boom")
	atFault := fmt.Errorf("%w: no such file", dataset.ErrTask)
	return []exitTest{
		{"text answers", []turn{say("4")}, nil, ended{dataset.ExitAnswered, "", "", "4", false}},
		{"the env goes on, then is done", []turn{say("3"), say("4")}, func(b *bundle) {
			b.world.step = func(_ context.Context, m dataset.Message) (env.Result, error) {
				if m.Content == "4" {
					return env.Result{Done: true}, nil
				}
				return env.Result{Messages: []dataset.Message{{Role: dataset.User, Content: "no"}}}, nil
			}
		}, ended{dataset.ExitAnswered, "", "", "4", false}},
		{"submitted", []turn{calls(submit("4"))}, nil, ended{dataset.ExitSubmitted, "", "", "4", false}},
		{"a tool ends without an answer", []turn{calls(call("leave", "{}"))}, withTool("leave", func(context.Context) (env.ToolResult, error) {
			return env.ToolResult{Content: "bye", Done: true}, nil
		}), ended{dataset.ExitEnvDone, "", "", "-", false}},
		{"gave up", []turn{ending("", model.FinishGaveUp)}, nil, ended{dataset.ExitGaveUp, "", "", "-", false}},
		{"refused", []turn{ending("I can't", model.FinishContentFilter)}, nil, ended{dataset.ExitRefused, "", "", "-", false}},
		{"empty", []turn{say(""), say(" \n"), say("")}, nil, ended{dataset.ExitEmpty, "", "", "-", false}},
		{"unknown tools", []turn{calls(call("a", "{}")), calls(call("b", "{}")), calls(call("c", "{}"))}, nil, ended{dataset.ExitInvalidTools, "", "", "-", false}},
		{"cut by length", []turn{ending("", model.FinishLength, submit("4"))}, nil, ended{dataset.ExitCutArguments, "", "", "-", false}},
		{"cut in the arguments", []turn{calls(call("submit_answer", `{"answer": "4`))}, nil, ended{dataset.ExitCutArguments, "", "", "-", false}},
		{"length", []turn{ending("the answer", model.FinishLength)}, nil, ended{dataset.ExitLength, "", "", "-", false}},
		{"length without text", []turn{ending("", model.FinishLength)}, nil, ended{dataset.ExitLength, "", "", "-", false}},
		{
			"context full",
			[]turn{fail(&model.Error{Class: model.ClassContextOverflow, Status: 400, Err: boom})},
			nil,
			ended{dataset.ExitContextFull, model.ClassContextOverflow, "context_overflow (HTTP 400): boom", "-", false},
		},
		{"turns", []turn{calls(calc("1")), calls(calc("2"))}, limits(Limits{Turns: 2}), ended{dataset.ExitTurnLimit, "", "", "-", false}},
		{"discarded replies are turns", []turn{say(""), say("")}, limits(Limits{Turns: 2}), ended{dataset.ExitTurnLimit, "", "", "-", false}},
		{"tokens", []turn{calls(calc("1")), calls(calc("2"))}, limits(Limits{Tokens: 2 * (inTokens + outTokens)}), ended{dataset.ExitTokenLimit, "", "", "-", false}},
		{"cost", []turn{calls(calc("1")), calls(calc("2"))}, limits(Limits{CostNanoUSD: 2*nanoUSD - 1}), ended{dataset.ExitCostLimit, "", "", "-", false}},
		{"an answer goes before a limit", []turn{say("4")}, limits(Limits{CostNanoUSD: 1, Turns: 1, Tokens: 1}), ended{dataset.ExitAnswered, "", "", "4", false}},
		{"price not known", []turn{unpriced}, limits(Limits{CostNanoUSD: 1 << 40}), ended{dataset.ExitInfraError, "", errUnpriced.Error(), "-", true}},
		{"bytes", []turn{calls(calc("1"))}, limits(Limits{Bytes: 30}), ended{dataset.ExitBytesLimit, "", "", "-", false}},
		{"bytes of the prompt", nil, limits(Limits{Bytes: 8}), ended{dataset.ExitBytesLimit, "", "", "-", false}},
		{"time in a call", []turn{hang}, limits(Limits{Time: time.Minute}), ended{dataset.ExitTimeLimit, "", "", "-", false}},
		{"time in a tool", []turn{calls(call("wait", "{}"))}, both(limits(Limits{Time: time.Minute}), withTool("wait", func(ctx context.Context) (env.ToolResult, error) {
			<-ctx.Done()
			return env.ToolResult{}, ctx.Err()
		})), ended{dataset.ExitTimeLimit, "", "", "-", false}},
		{"time in a step", []turn{say("4")}, both(limits(Limits{Time: time.Minute}), func(b *bundle) {
			b.world.step = func(ctx context.Context, _ dataset.Message) (env.Result, error) {
				<-ctx.Done()
				return env.Result{}, context.Cause(ctx)
			}
		}), ended{dataset.ExitTimeLimit, "", "", "-", false}},
		{"reset at fault", nil, resets(atFault), ended{dataset.ExitResetError, "", "task at fault: no such file", "-", false}},
		{"reset fails", nil, resets(boom), ended{dataset.ExitInfraError, "", "boom", "-", true}},
		{"reset says nothing", nil, resets(nil), ended{dataset.ExitInfraError, "", "the env began with no message", "-", true}},
		{"step at fault", []turn{say("4")}, steps(atFault), ended{dataset.ExitEnvError, "", "task at fault: no such file", "-", false}},
		{"step fails", []turn{say("4")}, steps(boom), ended{dataset.ExitInfraError, "", "boom", "-", true}},
		{"step fails by a model of its own", []turn{say("4")}, steps(&model.Error{Class: model.ClassServer, Err: boom}), ended{dataset.ExitInfraError, model.ClassServer, "server_error: boom", "-", true}},
		{"step says nothing", []turn{say("4")}, steps(nil), ended{dataset.ExitInfraError, "", "the env said nothing and was not done", "-", true}},
		{
			"tool at fault",
			[]turn{calls(call("dig", "{}"))},
			withTool("dig", func(context.Context) (env.ToolResult, error) { return env.ToolResult{}, atFault }),
			ended{dataset.ExitEnvError, "", "task at fault: no such file", "-", false},
		},
		{
			"tool fails",
			[]turn{calls(call("dig", "{}"))},
			withTool("dig", func(context.Context) (env.ToolResult, error) { return env.ToolResult{}, boom }),
			ended{dataset.ExitInfraError, "", "boom", "-", true},
		},
		{"reset panics", nil, func(b *bundle) {
			b.world.reset = func(context.Context) ([]dataset.Message, error) { panic("boom") }
		}, ended{dataset.ExitEnvPanic, "", "panic: boom", "-", false}},
		{"step panics", []turn{say("4")}, func(b *bundle) {
			b.world.step = func(context.Context, dataset.Message) (env.Result, error) { panic("boom") }
		}, ended{dataset.ExitEnvPanic, "", "panic: boom", "-", false}},
		{"listing tools panics", nil, func(b *bundle) { b.world.tools = func() []env.Tool { panic("boom") } }, ended{dataset.ExitEnvPanic, "", "panic: boom", "-", false}},
		{
			"tool panics",
			[]turn{calls(call("dig", "{}"))},
			withTool("dig", func(context.Context) (env.ToolResult, error) { panic("boom") }),
			ended{dataset.ExitToolPanic, "", "panic: boom", "-", false},
		},
		{"tool panics after its time", []turn{calls(call("wait", "{}"))}, both(limits(Limits{Time: time.Minute}), withTool("wait", func(ctx context.Context) (env.ToolResult, error) {
			<-ctx.Done()
			panic("late")
		})), ended{dataset.ExitToolPanic, "", "panic: late", "-", false}},
		{"tool names clash", nil, withTool("calculator", nil), ended{dataset.ExitInfraError, "", `adding the env's tools: two tools are named "calculator"`, "-", true}},
		{
			"provider",
			[]turn{fail(&model.Error{Class: model.ClassAuth, Status: 401, Fatal: true, Err: boom})},
			nil,
			ended{dataset.ExitProviderError, model.ClassAuth, "auth (HTTP 401): boom", "-", true},
		},
		{"ledger", []turn{fail(boom)}, nil, ended{dataset.ExitInfraError, model.ClassUnknown, "boom", "-", true}},
		{
			"replay without an answer",
			[]turn{fail(&model.Error{Class: model.ClassTask, Err: atFault})},
			nil,
			ended{dataset.ExitEnvError, model.ClassTask, "task: task at fault: no such file", "-", false},
		},
		{"budget refuses the call", []turn{fail(fmt.Errorf("call e-2-0: %w", dataset.ErrRunBudget))}, nil, ended{dataset.ExitRunBudget, "", "", "-", false}},
		{"budget ends the run", nil, func(b *bundle) { stopped(b, dataset.ErrRunBudget) }, ended{dataset.ExitRunBudget, "", "", "-", false}},
		{"interrupted", nil, func(b *bundle) { stopped(b, dataset.ErrInterrupted) }, ended{dataset.ExitInterrupted, "", "", "-", false}},
		{"cancelled without a cause", nil, func(b *bundle) { stopped(b, nil) }, ended{dataset.ExitInterrupted, "", "", "-", false}},
		{"interrupted before it began", nil, func(b *bundle) {
			ctx, cancel := context.WithCancelCause(b.ctx)
			cancel(dataset.ErrInterrupted)
			b.ctx = ctx
		}, ended{dataset.ExitInterrupted, "", "", "-", false}},
	}
}

type exitTest struct {
	name  string
	turns []turn
	with  func(*bundle)
	want  ended
}

func limits(l Limits) func(*bundle) { return func(b *bundle) { b.options.Limits = l } }

func both(f, g func(*bundle)) func(*bundle) {
	return func(b *bundle) { f(b); g(b) }
}

func withTool(name string, f func(context.Context) (env.ToolResult, error)) func(*bundle) {
	return func(b *bundle) { b.world.tools = func() []env.Tool { return []env.Tool{testTool(name, f)} } }
}

func resets(err error) func(*bundle) {
	return func(b *bundle) {
		b.world.reset = func(context.Context) ([]dataset.Message, error) { return nil, err }
	}
}

func steps(err error) func(*bundle) {
	return func(b *bundle) {
		b.world.step = func(context.Context, dataset.Message) (env.Result, error) { return env.Result{}, err }
	}
}

func unpriced(context.Context, model.Request) (model.Response, error) {
	return model.Response{
		Message: dataset.Message{ToolCalls: []dataset.ToolCall{calc("1")}},
		Usage:   &dataset.Usage{Output: 1},
	}, nil
}

func TestExits(t *testing.T) {
	for _, tt := range exitTests() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBundle(t, tt.turns...)
				if tt.with != nil {
					tt.with(b)
				}
				tr, err := b.run(t)
				got := ended{tr.ExitReason, tr.ErrorClass, firstLine(tr.Error), "-", err != nil}
				if tr.Answer != nil {
					got.Answer = *tr.Answer
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("end (-want +got):\n%s\n%s", diff, strings.Join(lines(tr), "\n"))
				}
			})
		})
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func TestEachReasonIsTested(t *testing.T) {
	tested := map[dataset.ExitReason]bool{}
	for _, tt := range exitTests() {
		tested[tt.want.Reason] = true
	}
	for _, reason := range every() {
		if _, other := elsewhere[reason]; tested[reason] == other {
			t.Errorf("%s: tested is %v, given elsewhere is %v", reason, tested[reason], other)
		}
	}
}
