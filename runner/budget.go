package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// Stop is which of a run's limits ended it early.
type Stop string

// The limits of a run.
const (
	StopCost   Stop = "cost"
	StopTokens Stop = "tokens"
	StopTime   Stop = "time"
)

// Limits of a run's budget; 0 is none.
type Limits struct{ CostNanoUSD, Tokens int64 }

// Budget is what a run may spend, over all invocations. What is spent and what
// is reserved never exceed its limits together, as long as no call costs more
// than it reserved. Its methods are safe for concurrent use.
//
// Requests that have to wait are served in the order in which they came. The
// first one that nothing can make fit uses the budget up: from then on all are
// refused, so that the run ends soon and its end does not depend on which small
// calls still slip through.
type Budget struct {
	limit Limits

	mu          sync.Mutex
	booked      model.Spend
	reserved    model.Spend
	outstanding int // reservations not yet settled
	waiting     []*waiter
	stop        Stop // "" until it is used up
}

var _ model.Budget = (*Budget)(nil)

// waiter is a Reserve that waits. Its verdict has room for the one answer.
type waiter struct {
	worst   model.Spend
	verdict chan error
}

// NewBudget returns a budget of which spent is gone already; see [Spent].
func NewBudget(limit Limits, spent model.Spend) *Budget {
	return &Budget{limit: limit, booked: spent}
}

// Reserve sets worst aside. It waits while reservations of others may still be
// given back, and returns an error that wraps [dataset.ErrRunBudget] when none
// is outstanding and worst still does not fit, or the budget is used up. When
// ctx ends first, the error wraps its cause.
func (b *Budget) Reserve(ctx context.Context, worst model.Spend) error {
	w := &waiter{worst: worst, verdict: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.serve()
	b.mu.Unlock()
	select {
	case err := <-w.verdict:
		return err
	default:
	}
	select {
	case err := <-w.verdict:
		return err
	case <-ctx.Done():
		b.abandon(w)
		return fmt.Errorf("waiting for the run's budget: %w", context.Cause(ctx))
	}
}

// Settle gives worst back and books actual.
func (b *Budget) Settle(worst, actual model.Spend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outstanding--
	b.reserved.NanoUSD -= worst.NanoUSD
	b.reserved.Tokens -= worst.Tokens
	b.booked.NanoUSD += actual.NanoUSD
	b.booked.Tokens += actual.Tokens
	b.serve()
}

// Spent is what is booked so far, over all invocations.
func (b *Budget) Spent() model.Spend {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.booked
}

// serve answers whom it can, in order. The caller holds mu.
func (b *Budget) serve() {
	for len(b.waiting) > 0 {
		w := b.waiting[0]
		short := b.shortOf(w.worst)
		switch {
		case b.stop != "":
			w.verdict <- refusal(b.stop)
		case short == "":
			b.outstanding++
			b.reserved.NanoUSD += w.worst.NanoUSD
			b.reserved.Tokens += w.worst.Tokens
			w.verdict <- nil
		case b.outstanding > 0:
			return
		default:
			b.stop = short
			continue
		}
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

func refusal(s Stop) error { return fmt.Errorf("%s limit of the run: %w", s, dataset.ErrRunBudget) }

// shortOf is the limit that worst does not fit into, "" if it fits.
func (b *Budget) shortOf(worst model.Spend) Stop {
	switch {
	case b.limit.CostNanoUSD > 0 && worst.NanoUSD > b.limit.CostNanoUSD-b.booked.NanoUSD-b.reserved.NanoUSD:
		return StopCost
	case b.limit.Tokens > 0 && worst.Tokens > b.limit.Tokens-b.booked.Tokens-b.reserved.Tokens:
		return StopTokens
	default:
		return ""
	}
}

// end refuses every further reservation, for a reason that is not the budget's
// own.
func (b *Budget) end(s Stop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stop = cmp.Or(b.stop, s)
	b.serve()
}

// abandon takes back a request whose caller does not wait any more, and what
// was granted to it meanwhile.
func (b *Budget) abandon(w *waiter) {
	b.mu.Lock()
	i := slices.Index(b.waiting, w)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.serve()
	}
	b.mu.Unlock()
	if i < 0 && <-w.verdict == nil {
		b.Settle(w.worst, model.Spend{})
	}
}

// usedUp is the limit that is reached, "" while something may still fit.
func (b *Budget) usedUp() Stop {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.stop != "":
		return b.stop
	case b.limit.CostNanoUSD > 0 && b.booked.NanoUSD >= b.limit.CostNanoUSD:
		return StopCost
	case b.limit.Tokens > 0 && b.booked.Tokens >= b.limit.Tokens:
		return StopTokens
	default:
		return ""
	}
}
