package model

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// latency follows cohorts: requests let in one after the other, all of which
// are waited for, so that a cohort's median tells what its requests met and not
// which of them were quick. One cohort is followed at a time. The first one
// begins with restart.
type latency struct {
	id               uint32 // of the cohort; a slot's 0 is none
	size, let, ended int
	ahead            int             // summed up
	took             []time.Duration // of the answers

	base  time.Duration // the median where requests do not wait for each other; 0: not known
	edge  point         // of the largest limit at which that is so
	last  time.Duration // the median of the last cohort
	least time.Duration // of all answers
	risen int           // cohorts in a row whose median is above what base allows
}

// point is a cohort's requests in flight, on average, and its median.
type point struct {
	n    float64
	took time.Duration
	sure float64 // standard error of the median's logarithm
}

const (
	firstCohort          = 10 // before many are let in
	minCohort, maxCohort = 20, 128
	stragglers           = 10 // one in so many is not waited for

	rise      = 1.5  // of the median, beside three times its error
	risenFor  = 2    // cohorts in a row: one may be chance, or a change that goes on
	slow      = 2    // times what an answer takes: it earns no growth
	growth    = 1.2  // of requests in flight, that tells two cohorts apart
	queueing  = 0.5  // share of a growth that is lost to waiting, where it is not worth it
	following = 0.5  // share of a cut by which latency falls, where requests did wait
	headroom  = 1.25 // beyond what keeps the endpoint busy
)

// restart begins a new cohort, where up to limit are in flight.
func (l *latency) restart(limit int) {
	l.id = max(l.id+1, 1)
	l.size = min(max(limit, minCohort), maxCohort)
	if l.base == 0 {
		l.size = firstCohort
	}
	l.let, l.ended, l.ahead, l.took = 0, 0, 0, l.took[:0]
}

// enter takes a request that is let in as the n-th in flight into the cohort,
// if that is not whole; 0: it is.
func (l *latency) enter(n int) uint32 {
	if l.let == l.size {
		return 0
	}
	l.let++
	l.ahead += n
	return l.id
}

// leave returns the cohort that e completes.
func (l *latency) leave(e event) (point, bool) {
	if e.cohort != l.id {
		return point{}, false
	}
	l.ended++
	if e.outcome == served {
		l.took = append(l.took, e.at.Sub(e.since))
		if l.least == 0 {
			l.least = l.took[0]
		}
		l.least = min(l.least, e.at.Sub(e.since))
	}
	if l.ended < l.size-l.size/stragglers {
		return point{}, false
	}
	c := point{n: float64(l.ahead) / float64(l.let)}
	told := len(l.took) > l.size/2 // those that did not come count as the slowest
	if told {
		slices.Sort(l.took)
		c.took, c.sure = l.took[l.size/2], l.sure()
		l.last = c.took
	}
	l.restart(int(c.n))
	return c, told
}

// sure is the standard error of the logarithm of the median of took, which is
// sorted: from its quartiles, as if that logarithm were normal.
func (l *latency) sure() float64 {
	const quartiles, median = 1.35, 1.25 // of a normal distribution, in its deviations
	first, third := l.took[l.size/4], l.took[min(3*l.size/4, len(l.took)-1)]
	spread := math.Log(float64(max(third, 1)) / float64(max(first, 1)))
	return median * spread / quartiles / math.Sqrt(float64(l.size))
}

// quick reports whether an answer after d shows that requests do not wait for
// each other much.
func (l *latency) quick(d time.Duration) bool {
	return d <= slow*cmp.Or(l.base, l.least, d)
}

// typical is what a request takes, 0 if that is not known.
func (l *latency) typical() time.Duration { return l.last }

// compare tells whether requests of c waited for each other: whether the median
// has risen, and not because more in flight get more done.
func (l *latency) compare(c point) (risen bool) {
	switch {
	case l.base == 0:
		l.base, l.edge = c.took, c
	case c.took < l.base:
		l.base -= (l.base - c.took) / 3 // half of the cohorts are below the truth
		l.widen(c)
	case math.Log(float64(c.took)/float64(l.base)) <= math.Log(rise)+3*c.sure:
		l.widen(c)
	case c.n > growth*l.edge.n && elasticity(l.edge, c) < queueing:
		l.base, l.edge = c.took, c
	default:
		return true
	}
	return false
}

func (l *latency) widen(c point) {
	if c.n >= l.edge.n/growth {
		l.edge = c
	}
}

// elasticity is by how much latency grew from a to b beside the requests in
// flight: 0 if each took as long as before, 1 if no more were answered.
func elasticity(a, b point) float64 {
	return math.Log(float64(b.took)/float64(a.took)) / math.Log(b.n/a.n)
}

// saved is what a limit was before it was lowered for latency.
type saved struct {
	point
	limit, target, wall float64
}

// judge learns from a cohort. Where its latency has risen, the limit is
// lowered; if latency does not follow, then it rose for another reason, such as
// longer prompts, and the limit is what it was before.
func (p *policy) judge(at time.Time, c point) {
	l := &p.latency
	if b := p.before; b.n > 0 {
		p.before = saved{}
		if c.n < b.n && elasticity(c, b.point) < following {
			p.limit, p.target, p.wall = b.limit, b.target, b.wall
			l.base, l.edge, l.risen = b.took, b.point, 0
			return
		}
	}
	if !l.compare(c) {
		l.risen = 0
		return
	}
	if l.risen++; l.risen < risenFor && c.n < growth*l.edge.n {
		return
	}
	keeps := headroom * float64(l.base) / float64(c.took)
	to := min(p.limit, c.n) * min(max(keeps, 0.5), 0.8)
	if to < 2 {
		return // so few are no crowd
	}
	b := saved{point: c, limit: p.limit, target: p.target, wall: p.wall}
	p.cut(at, to, b.limit, ReasonLatency)
	p.before = b
}
