package agent

import (
	"context"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// The patience with defective replies.
const (
	maxRecalls      = 2 // calls again in place of a reply that nothing can be done with
	maxUnknownTools = 3 // replies in a row that name a tool which there is not
)

// take acts on a reply, by how it ended and what is in it.
func (a *attempt) take(ctx context.Context, reply dataset.Message) *end {
	called := len(reply.ToolCalls) > 0
	switch {
	case reply.FinishReason == model.FinishContentFilter:
		return a.leave(reply, over(dataset.ExitRefused))
	case reply.FinishReason == model.FinishGaveUp:
		return a.leave(reply, over(dataset.ExitGaveUp))
	case reply.FinishReason == model.FinishLength && called:
		return a.leave(reply, over(dataset.ExitCutArguments))
	case reply.FinishReason == model.FinishLength:
		return a.leave(reply, over(dataset.ExitLength))
	case called:
		return a.takeCalls(ctx, reply)
	case blank(reply):
		return a.takeBlank(reply)
	default:
		a.forgive()
		return a.step(ctx, a.keep(reply))
	}
}

// forgive ends the count of defective replies in a row.
func (a *attempt) forgive() { a.emptyReplies, a.badArguments, a.unknownTools = 0, 0, 0 }

// leave keeps a last reply without acting on it: its calls are answered, not
// run.
func (a *attempt) leave(reply dataset.Message, stop *end) *end {
	position := a.keep(reply)
	for i := range reply.ToolCalls {
		a.refuse(position, i, notRun(stop))
	}
	return stop
}

func blank(m dataset.Message) bool {
	return strings.TrimSpace(m.Content) == "" && m.Parts == nil
}

// takeBlank asks again instead of an empty reply, then keeps it.
func (a *attempt) takeBlank(reply dataset.Message) *end {
	if a.emptyReplies < maxRecalls {
		a.emptyReplies++
		a.discard("empty")
		return nil
	}
	return a.leave(reply, over(dataset.ExitEmpty))
}
