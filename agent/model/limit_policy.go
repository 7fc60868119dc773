package model

import (
	"math"
	"time"
)

// policy says how many requests an endpoint gets at once. It is a function of
// what became of the requests before, and of nothing else: it has no clock and
// no lock.
//
// It starts with a few and grows with every answer until something stops it,
// the wall: a refusal (429, 503), timeouts, or latency that rises because
// requests wait inside the endpoint. From then on it goes up to the wall
// quickly and beyond it seldom, one request at first, twice as many each time
// that this went well. A refusal just beyond the wall brings it back to the
// wall; refusals below it, or timeouts, take a quarter off at a time.
//
// It grows only while calls wait for it, and step by step, so that a refusal
// is heard before many requests have earned one.
type policy struct {
	ceiling int

	limit  float64 // in force
	target float64 // what limit grows to, step by step
	wall   float64 // where growth was stopped, infinite before
	borne  float64 // that many at once were answered lately
	hold   int     // lets in no more than so many until the next answer; 0: no hold
	stepAt time.Time

	changed   time.Time // of the last cut: what was let in before tells nothing new
	answers   int       // since changed, to what was let in since then
	heat      float64   // grows with refusals, and shrinks with each request let in
	late      float64   // share of timeouts, on average lately
	raise     float64   // how far the next growth goes beyond the wall
	raised    time.Time // when it went beyond it; zero: it is not known to be too far
	refusals  int       // since then
	retryIn   time.Duration
	raiseAt   time.Time // not before then
	answersIn int       // and not before so many answers since the last trouble
	earned    int       // answers since the last trouble
	paused    time.Time // lets nobody in before then
	pausedBy  Reason
	resuming  bool      // a pause is to be ended
	backoff   int       // pauses of its own in a row
	heard     time.Time // when the last answer came, or the first refusal

	latency latency
	before  saved  // the last cut, if that was made to see whether latency follows
	why     Reason // of the last change
	status  int    // of the last refusal
}

const (
	firstLimit  = 4    // what the smallest server bears
	firstTarget = 16   // what it grows to before anything is known
	perAnswer   = 3    // growth with each answer before the wall is known
	approach    = 0.25 // and below the wall
	cutTo       = 0.75
	tooHot      = 2.0  // refusals beyond which they are no chance
	cooling     = 0.25 // of that, with each request
	lateShare   = 0.1  // of timeouts, over about lateOver requests
	lateOver    = 20

	minRaise, maxRaise     = time.Second, 15 * time.Second // between two growths beyond the wall
	pausesPerRaise         = 30                            // or so many times what the last refusal asked to wait
	minAnswers, maxAnswers = 100, 400                      // and at least so many answers
	minStep, maxStep       = time.Millisecond, 100 * time.Millisecond
	minOwn, maxOwn         = 100 * time.Millisecond, 8 * time.Second // pauses where the only request is refused
	alone                  = 3                                       // times in a row
	patience               = 10 * time.Minute                        // without any answer
	maxRetryAfter          = 10 * time.Minute
)

// event is the end of a request.
type event struct {
	slot
	result
	at     time.Time
	others int  // in flight
	full   bool // the limit kept calls waiting
}

func newPolicy(ceiling int) policy {
	c := float64(max(ceiling, 1))
	p := policy{
		ceiling: max(ceiling, 1),
		limit:   min(c, firstLimit), target: min(c, firstTarget), wall: math.Inf(1),
		raise: 1, retryIn: minRaise, answersIn: minAnswers, why: ReasonStart,
	}
	p.latency.restart(int(p.target))
	p.reached()
	return p
}

// reached notes that nothing but the ceiling bounds the endpoint.
func (p *policy) reached() {
	if p.limit >= float64(p.ceiling) {
		p.why = ReasonCeiling
	}
}

// allowed is the most that may be in flight.
func (p *policy) allowed() int {
	n := max(int(p.limit), 1)
	if p.hold > 0 {
		n = min(n, p.hold)
	}
	return n
}

// wait is how long a request has to wait when so many are in flight and none
// of them ends. A limit that may grow grows here: where it is needed.
func (p *policy) wait(now time.Time, inFlight int) time.Duration {
	if d := p.paused.Sub(now); d > 0 {
		return d
	}
	if p.resuming {
		p.resume(now, inFlight)
	}
	for inFlight >= p.allowed() {
		if p.hold > 0 || int(p.target) <= int(p.limit) {
			return forever
		}
		if d := p.stepAt.Sub(now); d > 0 {
			return d
		}
		p.step(now)
	}
	return 0
}

// step takes the limit a quarter nearer to its target, or doubles it where as
// much was borne before.
func (p *policy) step(now time.Time) {
	next := p.limit + max(1, p.limit/4)
	if p.limit < p.borne {
		next = max(next, min(2*p.limit, p.borne))
	}
	p.limit = min(next, p.target)
	p.stepAt = now.Add(maxStep)
	if typical := p.latency.typical(); typical > 0 {
		p.stepAt = now.Add(min(max(typical/2, minStep), maxStep))
	}
	p.reached()
}

// resume lets in a few after a pause, and then more, so that a server that has
// fewer slots now refuses few.
func (p *policy) resume(now time.Time, inFlight int) {
	p.resuming = false
	p.limit = min(p.limit, max(float64(inFlight), firstLimit))
	p.stepAt = now
}

// enter learns that a request is let in as the n-th in flight, and returns its
// cohort.
func (p *policy) enter(n int) uint32 {
	p.heat = max(p.heat-cooling, 0)
	return p.latency.enter(n)
}

// ended learns from the end of a request.
func (p *policy) ended(e event) {
	if c, ok := p.latency.leave(e); ok {
		p.judge(e.at, c)
	}
	if e.outcome != refused {
		p.hold = 0
	}
	switch e.outcome {
	case served:
		p.serve(e)
	case refused:
		p.refuse(e)
	case timedOut:
		p.expire(e)
	case rejected, broken:
		p.backoff, p.heard = 0, e.at
	case unsent, unheard:
	}
}

func (p *policy) serve(e event) {
	p.backoff, p.heard = 0, e.at
	p.late -= p.late / lateOver
	p.earned++
	if !e.since.Before(p.changed) {
		p.answers++
		p.borne = max(p.borne, float64(e.ahead))
	}
	if e.full && p.target < float64(p.ceiling) && p.latency.risen == 0 && p.latency.quick(e.at.Sub(e.since)) {
		p.grow(e)
	}
	p.reached()
}

func (p *policy) grow(e event) {
	switch {
	case math.IsInf(p.wall, 1):
		p.target = max(p.target, min(p.target+perAnswer, 4*p.limit))
		p.why = ReasonGrowing
	case p.limit < p.wall:
		p.limit = min(p.limit+approach, p.wall)
		p.target = max(p.target, p.limit)
	default:
		p.beyond(e)
	}
	p.target = min(p.target, float64(p.ceiling))
	p.limit = min(p.limit, p.target)
}

// beyond moves the wall, where the last move went well, or where one is due.
func (p *policy) beyond(e event) {
	switch {
	case p.raised.IsZero():
		if e.at.Before(p.raiseAt) || p.earned < p.answersIn {
			return
		}
	case e.since.Before(p.raised) || e.ahead < int(p.wall):
		return // it does not tell of the last move
	default:
		p.raise = min(2*p.raise, max(p.limit/4, 1))
		p.retryIn, p.answersIn = minRaise, minAnswers
		p.why = ReasonGrowing
	}
	p.wall = min(p.wall+p.raise, float64(p.ceiling))
	p.target, p.raised, p.refusals = p.wall, e.at, 0
}

func (p *policy) refuse(e event) {
	if p.heard.IsZero() {
		p.heard = e.at
	}
	p.heat++
	if p.refusals++; !p.raised.IsZero() && p.refusals >= tooHot {
		p.heat = max(p.heat, tooHot)
	}
	p.status = e.status
	p.pause(e)
	n := min(max(float64(e.others), 1), p.limit)
	switch {
	case e.since.Before(p.changed): // let in before the last cut
		p.lower(n)
	case p.heat < tooHot && e.retryAfter <= 0: // how many there are may have nothing to do with it
		p.hold = int(n)
	case p.answers == 0 && !p.changed.IsZero(): // the last cut was not enough
		p.cut(e.at, max(cutTo*n, 1), n, ReasonRefused)
		p.heat = tooHot - 0.5
	default:
		p.cut(e.at, n, n, ReasonRefused)
		p.heat = tooHot - 0.5
	}
}

// pause obeys Retry-After. Where the only request is refused, it makes a pause
// of its own, unless nothing has been answered for so long that calls had
// better fail.
func (p *policy) pause(e event) {
	d, why := min(e.retryAfter, maxRetryAfter), ReasonRetryAfter
	if d <= 0 {
		if e.others > 0 || e.at.Sub(p.heard) > patience {
			return
		}
		p.backoff++
		if p.backoff < alone {
			return
		}
		d = min(minOwn<<min(p.backoff-alone, 16), maxOwn)
		why = ReasonRefused
	}
	if until := e.at.Add(d); until.After(p.paused) {
		p.paused, p.pausedBy, p.resuming = until, why, true
	}
	p.raiseAt = later(p.raiseAt, e.at.Add(pausesPerRaise*d))
}

// expire takes timeouts for a sign of too many requests where they are more
// than a few.
func (p *policy) expire(e event) {
	if e.since.Before(p.changed) {
		return
	}
	p.late += (1 - p.late) / lateOver
	if p.late < lateShare {
		return
	}
	n := min(float64(e.others+1), p.limit)
	p.late = 0
	p.cut(e.at, max(cutTo*n, 1), n, ReasonTimeouts)
}

// lower brings the limit down to what was borne when growth went too far.
func (p *policy) lower(to float64) {
	if to < p.limit {
		p.limit, p.target, p.wall, p.borne = to, to, to, min(p.borne, to)
		p.before = saved{}
	}
}

// cut brings the limit down, and the wall with it.
func (p *policy) cut(at time.Time, to, wall float64, why Reason) {
	p.limit, p.target, p.wall, p.borne = to, to, wall, min(p.borne, to)
	p.why, p.changed, p.answers, p.earned, p.hold = why, at, 0, 0, 0
	if !p.raised.IsZero() { // it went too far: wait longer before the next time
		p.retryIn, p.answersIn = min(2*p.retryIn, maxRaise), min(2*p.answersIn, maxAnswers)
	}
	p.raise, p.raised = 1, time.Time{}
	p.raiseAt = later(p.raiseAt, at.Add(p.retryIn))
	p.before = saved{}
	p.latency.restart(int(to))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
