package model

import (
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
	risen bool          // and it is above what base allows
}

// point is a cohort's requests in flight, on average, and its median.
type point struct {
	n    float64
	took time.Duration
}

const (
	minCohort, maxCohort = 10, 128
	stragglers           = 10 // one in so many is not waited for

	rise      = 1.5  // of latency, that is no chance
	growth    = 1.2  // of requests in flight, that tells two cohorts apart
	queueing  = 0.65 // share of a growth that is lost to waiting, where it is not worth it
	following = 0.5  // share of a cut by which latency falls, where requests did wait
	headroom  = 1.25 // beyond what keeps the endpoint busy
)

// restart begins a new cohort, where up to limit are in flight.
func (l *latency) restart(limit int) {
	l.id = max(l.id+1, 1)
	l.size = min(max(limit, minCohort), maxCohort)
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
	}
	if l.ended < l.size-l.size/stragglers {
		return point{}, false
	}
	c := point{n: float64(l.ahead) / float64(l.let)}
	told := len(l.took) > l.size/2 // those that did not come count as the slowest
	if told {
		slices.Sort(l.took)
		c.took = l.took[l.size/2]
		l.last = c.took
	}
	l.restart(int(c.n))
	return c, told
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
	case float64(c.took) <= rise*float64(l.base):
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
			l.base, l.edge, l.risen = b.took, b.point, false
			return
		}
	}
	if l.risen = l.compare(c); !l.risen {
		return
	}
	keeps := headroom * float64(l.base) / float64(c.took)
	n := min(p.limit, c.n)
	to := n * min(max(keeps, 0.5), 0.8)
	if to < 2 {
		return // so few are no crowd
	}
	b := saved{point: c, limit: p.limit, target: p.target, wall: p.wall}
	p.cut(at, to, ReasonLatency)
	p.before = b
}
