package model

import (
	"context"
	"sync"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Clock counts an episode's working time: it stands still while the episode
// waits for something that is not its doing (a request slot, Retry-After,
// backoff). Its methods are safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	worked  time.Duration // before since
	since   time.Time     // when it began to run, zero while it is paused
	pauses  int
	limit   time.Duration // 0: none
	timer   *time.Timer   // nil without limit
	expired func()
}

type clockKey struct{}

// WithClock starts a clock. The context it returns carries the clock and is
// cancelled with cause [dataset.ErrEpisodeTime] when the working time reaches
// limit; a limit of 0 is none. The caller calls cancel, which stops the clock.
func WithClock(ctx context.Context, limit time.Duration) (_ context.Context, _ *Clock, cancel context.CancelFunc) {
	ctx, cancelCause := context.WithCancelCause(ctx)
	c := &Clock{since: time.Now(), limit: limit}
	if limit > 0 {
		c.expired = func() { cancelCause(dataset.ErrEpisodeTime) }
		c.timer = time.AfterFunc(limit, c.expired)
	}
	stop := func() {
		c.Stop()
		cancelCause(context.Canceled)
	}
	return context.WithValue(ctx, clockKey{}, c), c, stop
}

// Pause stops the clock of ctx, if it has one, until resume is called. Pauses
// may overlap.
func Pause(ctx context.Context) (resume func()) {
	c := clockOf(ctx)
	c.pause(time.Now())
	return sync.OnceFunc(func() { c.resume(time.Now()) })
}

// clockOf is the clock of ctx, nil if it has none.
func clockOf(ctx context.Context) *Clock {
	c, _ := ctx.Value(clockKey{}).(*Clock)
	return c
}

// Worked is the working time so far.
func (c *Clock) Worked() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workedAt(time.Now())
}

// Stop ends the count. It is idempotent.
func (c *Clock) Stop() { c.pause(time.Now()) }

// workedAt is the working time at now; the caller holds mu.
func (c *Clock) workedAt(now time.Time) time.Duration {
	if c.since.IsZero() {
		return c.worked
	}
	return c.worked + max(now.Sub(c.since), 0) // now may be from before another's resume
}

// pause and resume do nothing to a nil Clock: there is none to stop.
func (c *Clock) pause(now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses++
	if c.pauses > 1 {
		return
	}
	c.worked = c.workedAt(now)
	c.since = time.Time{}
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *Clock) resume(now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses--
	if c.pauses > 0 {
		return
	}
	c.since = now
	if c.timer != nil {
		c.timer.Reset(max(c.limit-c.worked, 0))
	}
}
