package model_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// pass lets d of a bubble's time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a synctest bubble
}

func wantWorked(t *testing.T, c *model.Clock, want time.Duration) {
	t.Helper()
	if got := c.Worked(); got != want {
		t.Errorf("worked %v, want %v", got, want)
	}
}

func TestClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c, cancel := model.WithClock(t.Context(), 0)
		defer cancel()
		pass(time.Second)
		outer := model.Pause(ctx)
		pass(time.Hour)
		inner := model.Pause(ctx)
		pass(time.Hour)
		outer()
		outer() // a second time does nothing
		pass(time.Hour)
		wantWorked(t, c, time.Second)
		inner()
		pass(2 * time.Second)
		wantWorked(t, c, 3*time.Second)
		c.Stop()
		c.Stop()
		pass(time.Hour)
		wantWorked(t, c, 3*time.Second)
		if ctx.Err() != nil {
			t.Errorf("a clock without limit ended its context: %v", context.Cause(ctx))
		}
	})
}

func TestClockStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c, cancel := model.WithClock(t.Context(), time.Minute)
		resume := model.Pause(ctx)
		cancel()
		cancel()
		resume()
		pass(time.Hour)
		wantWorked(t, c, 0)
		if got := context.Cause(ctx); !errors.Is(got, context.Canceled) {
			t.Errorf("cause %v, want %v", got, context.Canceled)
		}
	})
}

// TestClockLimit cuts an episode off when it has worked for the limit, and
// not a nanosecond sooner, however often it was paused.
func TestClockLimit(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			const limit = time.Minute
			ctx, c, cancel := model.WithClock(t.Context(), limit)
			defer cancel()
			var worked time.Duration
			for worked < limit {
				if r.IntN(2) == 0 {
					resume := model.Pause(ctx)
					pass(time.Duration(r.Int64N(2 * int64(limit))))
					resume()
				}
				work := min(time.Duration(r.Int64N(int64(limit/4))), limit-worked)
				pass(work)
				worked += work
				synctest.Wait()
				wantWorked(t, c, worked)
				if got := ctx.Err() != nil; got != (worked == limit) {
					t.Fatalf("seed %d: after %v of work the context is done: %v", seed, worked, got)
				}
			}
			if got := context.Cause(ctx); !errors.Is(got, dataset.ErrEpisodeTime) {
				t.Errorf("cause %v, want %v", got, dataset.ErrEpisodeTime)
			}
		})
	}
}

func TestPauseWithoutClock(t *testing.T) {
	resume := model.Pause(t.Context())
	resume()
	resume()
}
