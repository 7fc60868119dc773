package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-run/talaria/agent/tool/args"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// takeCalls answers the calls of a reply: each gets exactly one result, in the
// order of the calls, whether it ran or not.
func (a *attempt) takeCalls(ctx context.Context, reply dataset.Message) *end {
	if slices.ContainsFunc(reply.ToolCalls, a.tools.unknown) {
		return a.takeUnknown(reply)
	}
	arguments, problems := parse(reply.ToolCalls)
	switch {
	case slices.ContainsFunc(problems, cutOff):
		return a.leave(reply, over(dataset.ExitCutArguments))
	case problems != nil:
		return a.takeInvalid(reply, problems)
	}
	a.forgive()
	return a.runAll(ctx, a.keep(reply), arguments)
}

func cutOff(err error) bool { return errors.Is(err, args.ErrCut) }

// parse reads the arguments of the calls. Problems is nil if there are none.
func parse(calls []dataset.ToolCall) (arguments []json.RawMessage, problems []error) {
	arguments = make([]json.RawMessage, len(calls))
	for i := range calls {
		object, err := args.Parse(calls[i].Arguments)
		if err != nil {
			if problems == nil {
				problems = make([]error, len(calls))
			}
			problems[i] = err
			continue
		}
		arguments[i] = object
	}
	return arguments, problems
}

// takeUnknown tells the model which tools there are. It does not run the calls
// beside the unknown one: the model planned them together.
func (a *attempt) takeUnknown(reply dataset.Message) *end {
	position := a.keep(reply)
	a.unknownTools++
	a.emptyReplies, a.badArguments = 0, 0
	for i, call := range reply.ToolCalls {
		switch {
		case call.Name == "":
			a.refuse(position, i, noName())
		case a.tools.unknown(call):
			a.refuse(position, i, noTool(call.Name, a.tools.names))
		default:
			a.refuse(position, i, skipped())
		}
	}
	if a.unknownTools >= maxUnknownTools {
		return over(dataset.ExitInvalidTools)
	}
	return nil
}

// takeInvalid asks again instead of a reply whose arguments are no JSON
// objects, then keeps it and says what is wrong.
func (a *attempt) takeInvalid(reply dataset.Message, problems []error) *end {
	if a.badArguments < maxRecalls {
		a.badArguments++
		a.discard("invalid_arguments")
		return nil
	}
	a.forgive()
	position := a.keep(reply)
	for i, err := range problems {
		if err == nil {
			a.refuse(position, i, skipped())
			continue
		}
		a.tr.Messages[position].ToolCalls[i].SchemaError = err.Error()
		a.refuse(position, i, badArguments(err))
	}
	return nil
}

// runAll runs the calls one after another. What ends the episode between two
// of them leaves the rest to be answered without being run.
func (a *attempt) runAll(ctx context.Context, position int, arguments []json.RawMessage) *end {
	var stop *end
	for i := range arguments {
		if stop == nil {
			stop = a.limitBetweenCalls(ctx)
		}
		if stop != nil {
			a.refuse(position, i, notRun(stop))
			continue
		}
		stop = a.run(ctx, position, i, arguments[i])
	}
	return stop
}

// limitBetweenCalls is the end by what tools can use up.
func (a *attempt) limitBetweenCalls(ctx context.Context) *end {
	if stop := cut(ctx, nil); stop != nil {
		return stop
	}
	if reached(a.bytes, a.loop.limits.Bytes) {
		return over(dataset.ExitBytesLimit)
	}
	return nil
}

// run runs one call and appends its result.
func (a *attempt) run(ctx context.Context, position, index int, arguments json.RawMessage) *end {
	call := &a.tr.Messages[position].ToolCalls[index] // stays valid: it lies in an array of its own
	if strings.TrimSpace(call.Arguments) == "" {
		call.Coerced = string(arguments)
	}
	call.SpanID = a.spanID(dataset.SpanTool) + "-" + strconv.Itoa(index)
	span := a.begin(dataset.SpanTool, call.SpanID, call.Name)
	var result env.ToolResult
	err := guard(func() (err error) {
		result, err = a.tools.byName[call.Name].Call(ctx, arguments)
		return err
	})
	call.Duration = a.finish(ctx, span, err)
	a.tr.Tool += call.Duration
	if err != nil {
		stop := failure(ctx, err, dataset.ExitEnvError, dataset.ExitToolPanic)
		a.answer(call, broken(stop).message())
		return stop
	}
	if result.IsError {
		a.tr.Spans[span].Status = statusError
	}
	call.ExitCode, call.BlockedBy = result.ExitCode, result.BlockedBy
	content, missing := cutResult(result.Content)
	a.answer(call, dataset.Message{Content: content, TruncatedBytes: missing + result.Omitted, IsError: result.IsError})
	return a.doneBy(result)
}

// doneBy is the end by a tool, nil if the result is none.
func (a *attempt) doneBy(result env.ToolResult) *end {
	if !result.Done {
		return nil
	}
	if result.Answer == nil {
		return over(dataset.ExitEnvDone)
	}
	answer := *result.Answer
	a.tr.Answer = &answer
	return over(dataset.ExitSubmitted)
}

// refuse answers a call that is not run.
func (a *attempt) refuse(position, index int, r refusal) {
	call := &a.tr.Messages[position].ToolCalls[index]
	call.BlockedBy = r.by
	a.answer(call, r.message())
}

// answer appends the one result of a call.
func (a *attempt) answer(call *dataset.ToolCall, m dataset.Message) {
	m.Role, m.ToolCallID, m.ToolName = dataset.ToolRole, call.ID, call.Name
	m.Turn, m.SpanID, m.CreatedAt = a.turn, call.SpanID, time.Now()
	call.IsError = m.IsError
	call.ResultPosition = a.keep(m)
}
