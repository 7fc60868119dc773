package runner

import "time"

const (
	rateTicks = 256                    // a window of a minute in a fast run, of 256 episodes in a slow one
	rateTick  = 250 * time.Millisecond // what ends within one tick of another counts with it
)

// rate measures how many episodes end a second, over a recent window. The zero
// rate is ready to use.
type rate struct {
	ticks [rateTicks]tick // a ring
	next  int             // where the next tick goes
	n     int             // ticks in use
	sum   int             // of all ticks but the oldest, which ended before the window
}

type tick struct {
	at time.Time
	n  int
}

// add counts n that ended at now, which never goes back. The first call opens
// the window.
func (r *rate) add(now time.Time, n int) {
	if r.n > 1 {
		if last := &r.ticks[(r.next+rateTicks-1)%rateTicks]; now.Sub(last.at) < rateTick {
			last.n += n
			r.sum += n
			return
		}
	}
	if r.n == rateTicks {
		r.sum -= r.ticks[(r.next+1)%rateTicks].n // it becomes the oldest
	}
	if r.n > 0 {
		r.sum += n
	}
	r.ticks[r.next] = tick{at: now, n: n}
	r.next = (r.next + 1) % rateTicks
	r.n = min(r.n+1, rateTicks)
}

// at is the rate per second as seen at now: it falls while nothing ends.
func (r *rate) at(now time.Time) float64 {
	if r.n == 0 {
		return 0
	}
	oldest := r.ticks[(r.next-r.n+rateTicks)%rateTicks]
	window := now.Sub(oldest.at).Seconds()
	if window <= 0 {
		return 0
	}
	return float64(r.sum) / window
}
