package model

import (
	"container/list"
	"context"
	"math"
	"sync"
	"time"
)

// LimiterOptions bound an endpoint where the user knows what it bears. The
// zero value bounds nothing.
type LimiterOptions struct {
	RequestsPerMinute int   // 0: no bound
	TokensPerMinute   int64 // of prompts and replies together; 0: no bound
}

// Limiter bounds what one endpoint gets at once. How many requests that is, it
// learns from what becomes of them: see [policy]. All variants that use the
// endpoint share it.
type Limiter struct {
	mu       sync.Mutex
	policy   policy
	rates    rates
	health   health
	inFlight int
	queue    list.List   // of *waiter, in the order in which they came
	timer    *time.Timer // lets in who waits for a time; nil before the first
}

// waiter is a call without a slot.
type waiter struct {
	tokens int64 // as estimated
	slot   slot
	let    chan struct{} // closed by admit, when slot is set
	place  *list.Element // in the queue, nil when it is let in
}

// slot is the right to one request.
type slot struct {
	since  time.Time
	ahead  int    // requests in flight when this one was let in, itself included
	cohort uint32 // of the requests whose latency is looked at, see latency
	tokens int64  // as estimated
}

// NewLimiter allows up to ceiling >= 1 requests at once, and fewer where the
// endpoint does not bear them.
func NewLimiter(ceiling int, o LimiterOptions) *Limiter {
	return &Limiter{policy: newPolicy(ceiling), rates: newRates(o)}
}

type limited struct {
	inner Model
	l     *Limiter
}

// Limit makes each call wait for a slot of l, first come first served. The
// wait stops the episode's clock and is recorded as a [Try] when it is longer
// than a millisecond.
func Limit(inner Model, l *Limiter) Model { return &limited{inner: inner, l: l} }

func (m *limited) Unwrap() Model { return m.inner }

func (m *limited) Generate(ctx context.Context, req Request) (resp Response, err error) {
	s, wait, err := m.l.acquire(ctx, &req)
	if err != nil {
		resp.waitedBefore(wait)
		return resp, err
	}
	end := result{outcome: unheard} // should the call panic
	defer func() { m.l.release(s, end) }()
	resp, err = m.inner.Generate(ctx, req)
	end = resultOf(&resp, err)
	resp.waitedBefore(wait)
	return resp, err
}

func (l *Limiter) acquire(ctx context.Context, req *Request) (slot, Try, error) {
	if ctx.Err() != nil {
		return slot{}, Try{}, cancelled(ctx, "a request slot")
	}
	s, w := l.enter(req)
	if w == nil { // a free slot: nobody waits
		return s, Try{}, nil
	}
	wait, err := stall(ctx, func() error {
		select {
		case <-w.let:
			return nil
		case <-ctx.Done():
			l.leave(w)
			return cancelled(ctx, "a request slot")
		}
	})
	return w.slot, wait, err
}

// enter takes a slot, or a place in the queue.
func (l *Limiter) enter(req *Request) (slot, *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, tokens := time.Now(), l.rates.estimate(req)
	if l.queue.Len() == 0 && l.wait(now, tokens) == 0 {
		return l.take(now, tokens), nil
	}
	w := &waiter{tokens: tokens, let: make(chan struct{})}
	w.place = l.queue.PushBack(w)
	l.admit(now)
	return slot{}, w
}

// leave takes a waiter whose context has ended out of the queue, and gives its
// slot back if it has just got one.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place == nil {
		l.end(w.slot, result{outcome: unsent})
		return
	}
	l.queue.Remove(w.place)
	l.admit(time.Now()) // those behind it may need less
}

func (l *Limiter) release(s slot, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(s, r)
}

// The methods below are called with mu held.

// end gives a slot back and learns from what became of its request.
func (l *Limiter) end(s slot, r result) {
	now := time.Now()
	full := l.queue.Len() > 0 || l.inFlight >= l.policy.allowed()
	l.inFlight--
	l.rates.settle(now, s.tokens, r)
	l.health.note(now, r.outcome)
	l.policy.ended(event{slot: s, result: r, at: now, others: l.inFlight, full: full})
	l.admit(now)
}

// take lets one request in.
func (l *Limiter) take(now time.Time, tokens int64) slot {
	l.inFlight++
	l.rates.take(now, tokens)
	return slot{since: now, ahead: l.inFlight, cohort: l.policy.enter(l.inFlight), tokens: tokens}
}

// forever is the wait of those whom only the end of another request lets in.
const forever time.Duration = math.MaxInt64

// wait is how long a request has to wait if nothing ends meanwhile.
func (l *Limiter) wait(now time.Time, tokens int64) time.Duration {
	if d := l.policy.wait(now, l.inFlight); d > 0 {
		return d
	}
	return l.rates.wait(now, tokens)
}

// admit lets in who may come in, and sets the timer for who comes next.
func (l *Limiter) admit(now time.Time) {
	for w, ok := l.first(); ok; w, ok = l.first() {
		if d := l.wait(now, w.tokens); d > 0 {
			l.wakeAfter(d)
			return
		}
		l.queue.Remove(w.place)
		w.slot, w.place = l.take(now, w.tokens), nil
		close(w.let)
	}
}

// first is who waits longest.
func (l *Limiter) first() (*waiter, bool) {
	e := l.queue.Front()
	if e == nil {
		return nil, false
	}
	w, ok := e.Value.(*waiter)
	return w, ok
}

func (l *Limiter) wakeAfter(d time.Duration) {
	switch {
	case d == forever:
	case l.timer == nil:
		l.timer = time.AfterFunc(d, l.wake)
	default:
		l.timer.Reset(d)
	}
}

func (l *Limiter) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admit(time.Now())
}
