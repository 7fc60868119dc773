package runner

import (
	"context"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// worker plays one attempt after the other until the feed closes in.
func (r *Runner) worker(admit, work context.Context, in <-chan *ticket) {
	for t := range in {
		if r.ending(admit, work, t.variant) {
			r.meter.leave()
		} else {
			r.meter.begin(t.variant)
			r.once(admit, work, t)
			r.meter.end(t.variant)
		}
		r.retries.end()
	}
}

// ending reports whether no further attempt of the variant may begin. The end
// of work ends admission too, but a moment later.
func (r *Runner) ending(admit, work context.Context, variant int) bool {
	return admit.Err() != nil || work.Err() != nil || r.halts.stopped(variant) || r.opts.Budget.usedUp() != ""
}

// once plays one attempt and hands it over. Where it ended as infra and a
// further one is allowed, the episode waits for that without the worker.
func (r *Runner) once(admit, work context.Context, t *ticket) {
	cell := &r.plan.Cells[t.variant][t.episode.Task.Source]
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
	if !r.retries.put(t, time.Now().Add(retryPause(r.opts.RetryPause, t.infra))) {
		r.meter.leave()
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
