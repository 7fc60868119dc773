package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// minPause is the shortest wait that is recorded: below it a slot was free.
const minPause = time.Millisecond

// stall runs wait with the clock of ctx stopped, for what is not the
// episode's doing, and returns it as a Try.
func stall(ctx context.Context, wait func() error) (Try, error) {
	c := clockOf(ctx)
	start := time.Now()
	c.pause(start)
	err := wait()
	end := time.Now()
	c.resume(end)
	return Try{Kind: dataset.SpanLimiter, Start: start, Duration: end.Sub(start)}, err
}

// waitedBefore records a pause that came before all that r holds.
func (r *Response) waitedBefore(t Try) {
	if t.Duration < minPause {
		return
	}
	r.Tries = slices.Insert(r.Tries, 0, t)
	r.Paused += t.Duration
}

// cancelled is the error of a call that was cut off while it waited, before
// its request left.
func cancelled(ctx context.Context, waitingFor string) error {
	err := fmt.Errorf("waiting for %s: %w", waitingFor, context.Cause(ctx))
	return &Error{Class: ClassCancelled, Err: err}
}
