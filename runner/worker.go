package runner

import (
	"context"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// worker plays one episode after the other until the feed closes in.
func (r *Runner) worker(admit, work context.Context, in <-chan *ticket) {
	for t := range in {
		if r.ending(admit, work, t.variant) {
			r.meter.leave()
			continue
		}
		r.meter.begin(t.variant)
		r.episode(admit, work, t)
		r.meter.end(t.variant)
	}
}

// ending reports whether no further attempt of the variant may begin. The end
// of work ends admission too, but a moment later.
func (r *Runner) ending(admit, work context.Context, variant int) bool {
	return admit.Err() != nil || work.Err() != nil || r.halts.stopped(variant) || r.opts.Budget.usedUp() != ""
}

// episode plays attempts, each with a world of its own, until one is not infra
// or none is left. Each is handed over, so that its cost stays in the books.
func (r *Runner) episode(admit, work context.Context, t *ticket) {
	cell := &r.plan.Cells[t.variant][t.episode.Task.Source]
	for {
		tr, err := r.attempt(work, cell, t.episode, t.offeredAt)
		r.halts.note(t.variant, err)
		rec := newRecord(tr, cell, t.variant)
		again := r.next(t, rec.outcome)
		rec.last = !again || r.ending(admit, work, t.variant)
		// One that would be tried again, and is not now, has not ended.
		rec.ended = rec.last && !again && settled(rec.outcome)
		r.log.ended(work, tr)
		r.hand.over(work, rec) // tr is the drain's now
		if rec.last {
			return
		}
		t.offeredAt = time.Now()
	}
}

// next makes t the next attempt and reports whether it is allowed.
func (r *Runner) next(t *ticket, outcome dataset.Outcome) bool {
	if outcome != dataset.OutcomeInfra {
		return false
	}
	t.infra++
	t.episode.Attempt++
	return t.infra <= r.opts.InfraRetries
}

// settled reports whether an attempt of this outcome ends its episode when
// nothing is left to retry.
func settled(o dataset.Outcome) bool {
	return o != dataset.OutcomeOperator && o != dataset.OutcomeBudget
}
