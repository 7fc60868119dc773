package runner

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

var errNetwork = errors.New("network on fire")

// begun notes which attempts began, and when; an episode of task 0 fails for so
// many attempts.
type begun struct {
	fails int

	mu   sync.Mutex
	keys []string // task and attempt
	at   []time.Time
}

func (b *begun) play(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	b.mu.Lock()
	b.keys = append(b.keys, ep.Task.Input+"/"+string(rune('0'+ep.Attempt)))
	b.at = append(b.at, time.Now())
	b.mu.Unlock()
	if ep.Task.Input == "0" && ep.Attempt < b.fails {
		return errNetwork
	}
	return playOnce(ctx, e, ep, tr)
}

// TestRetryHoldsNoWorker lets the only worker play the other episodes while one
// waits for its next attempt, and waits longer each time.
func TestRetryHoldsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(3)
		b.opts.Workers, b.opts.InfraRetries, b.opts.RetryPause = 2, 3, 0
		played := &begun{fails: 3}
		b.cell().Rollout = rolloutFunc(played.play)
		s := b.run(t)
		if want := []string{"0/1", "0/2", "0/3"}; !cmp.Equal(played.keys[3:], want) {
			t.Errorf("began %v, want the others before %v", played.keys, want)
		}
		for i := 1; i < 3; i++ {
			bound := time.Second << i
			if d := played.at[3+i].Sub(played.at[2+i]); d < bound/2 || d > bound {
				t.Errorf("pause %d took %v, want %v to %v", i, d, bound/2, bound)
			}
		}
		if s.Total.Episodes[dataset.OutcomeModel] != 3 || len(b.sink.rows) != 6 {
			t.Errorf("outcomes %v in %d rows", s.Total.Episodes, len(b.sink.rows))
		}
	})
}

// TestRetryAdmitsNoMore keeps an outage from filling memory: while many
// episodes wait for another attempt, no other begins.
func TestRetryAdmitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(2500)
		b.opts.InfraRetries, b.opts.RetryPause = 9, 0
		first := map[string]bool{}
		var mu sync.Mutex
		begin := time.Now()
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			if time.Since(begin) < 10*time.Second {
				mu.Lock()
				defer mu.Unlock()
				first[ep.Task.Input] = true
				return errNetwork
			}
			return playOnce(ctx, e, ep, tr)
		})
		s := b.run(t)
		if most := minWaiting + 2*b.opts.Workers; len(first) > most {
			t.Errorf("%d episodes began in the outage, want %d at most", len(first), most)
		}
		if s.Total.Episodes[dataset.OutcomeModel] != 2500 {
			t.Errorf("outcomes %v, want 2500 of the model", s.Total.Episodes)
		}
	})
}

// TestRetryWaitsInVain ends admission while an episode waits: it is left to a
// later invocation.
func TestRetryWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(1)
		b.opts.InfraRetries, b.opts.RetryPause = 3, time.Minute
		b.cell().Rollout = rolloutFunc((&begun{fails: 9}).play)
		admit, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		begin := time.Now()
		s, err := b.runner(t).Run(admit, t.Context())
		if err != nil || !s.Interrupted || time.Since(begin) != time.Second {
			t.Errorf("ended after %v, interrupted %v, error %v; want it to be interrupted at once", time.Since(begin), s.Interrupted, err)
		}
		if st := b.opts.Index.State(dataset.EpisodeID(dataset.GroupID(7, b.sink.rows[0].Episode.Task, "hash of v", 0), 0)); !due(st, b.opts) {
			t.Errorf("the episode is not due any more: %+v", st)
		}
	})
}
