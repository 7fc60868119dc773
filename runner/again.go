package runner

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// maxRetryPause bounds the pause before a further attempt: longer than a
// restart, shorter than a person's patience.
const maxRetryPause = time.Minute

// minWaiting is how many episodes may wait for a further attempt where workers
// are fewer: enough for a quick run of which a share fails.
const minWaiting = 1024

// retryPause is how long an episode waits after its n-th attempt that ended as
// infra: up to a bound that doubles from first, and at least half of it, so
// that episodes which failed together do not come back together.
func retryPause(first time.Duration, n int) time.Duration {
	bound := min(first<<min(max(n-1, 0), 16), maxRetryPause)
	return bound/2 + rand.N(bound/2+1)
}

// retries are the episodes that wait for a further attempt, without a worker.
// Workers put them in, the feed takes them out.
type retries struct {
	news chan struct{} // holds one value when something has changed; the feed receives

	mu      sync.Mutex
	waiting []waitingTicket // the first one due first
	playing int             // tickets that workers have or are offered
	closed  bool
}

type waitingTicket struct {
	*ticket
	due time.Time
}

func newRetries() *retries { return &retries{news: make(chan struct{}, 1)} }

func (q *retries) note() {
	select {
	case q.news <- struct{}{}:
	default: // the feed has not seen the last one yet
	}
}

// put lets t wait until due. It reports false when the feed has ended.
func (q *retries) put(t *ticket, due time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	i, _ := slices.BinarySearchFunc(q.waiting, due, func(w waitingTicket, at time.Time) int { return w.due.Compare(at) })
	q.waiting = slices.Insert(q.waiting, i, waitingTicket{t, due})
	q.note()
	return true
}

// take returns the ticket that is due, or how long until one is. None at all
// is idle if no worker can put one in any more.
func (q *retries) take() (t *ticket, ok bool, wait time.Duration, idle bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return t, false, maxRetryPause, q.playing == 0
	}
	if d := time.Until(q.waiting[0].due); d > 0 {
		return t, false, d, false
	}
	t = q.waiting[0].ticket
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return t, true, 0, false
}

func (q *retries) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// begin counts a ticket that a worker is offered, end one that it is done with.
func (q *retries) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.playing++
}

func (q *retries) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.playing--
	q.note()
}

// close returns how many wait in vain.
func (q *retries) close() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	return len(q.waiting)
}

// feedDue offers the episodes whose pause is over, and reports whether
// admission goes on. While as many wait as there are workers, or minWaiting, it
// waits for one of them: what fails fills no memory.
func (r *Runner) feedDue(admit context.Context, out chan<- *ticket) bool {
	for {
		t, ok, wait, _ := r.retries.take()
		switch {
		case ok && !r.send(admit, t, out):
			r.meter.leave()
			return false
		case ok:
		case r.retries.len() < max(r.opts.Workers, minWaiting):
			return true
		case !r.await(admit, wait):
			return false
		}
	}
}

// feedRest offers the episodes that are to be tried again when all others have
// been offered, until none is left.
func (r *Runner) feedRest(admit context.Context, out chan<- *ticket) {
	for !r.over(admit) {
		t, ok, wait, idle := r.retries.take()
		switch {
		case ok && !r.send(admit, t, out):
			r.meter.leave()
			return
		case !ok && idle:
			return
		case !ok && !r.await(admit, wait):
			return
		}
	}
}

// await waits for d, or for news of the retries, and reports whether admission
// goes on.
func (r *Runner) await(admit context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.retries.news:
		return !r.over(admit)
	case <-admit.Done():
		return false
	}
}

// over reports whether no episode may begin any more.
func (r *Runner) over(admit context.Context) bool {
	return admit.Err() != nil || r.halts.all() || r.opts.Budget.usedUp() != ""
}
