package agent

import (
	"context"
	"strconv"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// States of a span.
const (
	statusOK        = "ok"
	statusError     = "error"
	statusCancelled = "cancelled"
)

// begin appends a span and returns its index. Until it is finished it counts
// as an error, which is what it is when a panic keeps it from finishing.
func (a *attempt) begin(kind, id, name string) int {
	a.tr.Spans = append(a.tr.Spans, dataset.Span{
		ID: id, Kind: kind, Name: name, Turn: a.turn, Agent: agentOf(kind),
		Start: time.Since(a.tr.StartedAt), Status: statusError,
	})
	return len(a.tr.Spans) - 1
}

// spanID names a span by its turn, so that it does not depend on how many
// others there were.
func (a *attempt) spanID(kind string) string { return kind + "-" + strconv.Itoa(a.turn) }

func agentOf(kind string) string {
	if kind == dataset.SpanModel || kind == dataset.SpanTool {
		return dataset.AgentPolicy
	}
	return ""
}

// finish ends a span and returns how long it took.
func (a *attempt) finish(ctx context.Context, span int, err error) time.Duration {
	s := &a.tr.Spans[span]
	s.Duration = time.Since(a.tr.StartedAt) - s.Start
	switch {
	case err == nil:
		s.Status = statusOK
	case !panicked(err) && cut(ctx, err) != nil:
		s.Status = statusCancelled
	}
	return s.Duration
}
