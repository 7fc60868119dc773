package runner

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

func dollars(n int64) model.Spend { return model.Spend{NanoUSD: n} }

// TestBudgetIsNeverExceeded makes many callers reserve more than they spend.
func TestBudgetIsNeverExceeded(t *testing.T) {
	b := NewBudget(Limits{CostNanoUSD: 10_000, Tokens: 5_000}, model.Spend{NanoUSD: 100, Tokens: 100})
	var wg sync.WaitGroup
	for seed := range uint64(16) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			for spendOnce(t, b, rng) {
			}
		})
	}
	wg.Wait()
	if b.reserved != (model.Spend{}) || b.outstanding != 0 || len(b.waiting) != 0 {
		t.Errorf("left over: %+v reserved, %d outstanding, %d waiting", b.reserved, b.outstanding, len(b.waiting))
	}
	if b.usedUp() == "" {
		t.Error("the budget does not say that it is used up")
	}
}

// spendOnce makes one call and reports whether the budget let it.
func spendOnce(t *testing.T, b *Budget, rng *rand.Rand) bool {
	t.Helper()
	worst := model.Spend{NanoUSD: rng.Int64N(900), Tokens: rng.Int64N(400)}
	if err := b.Reserve(t.Context(), worst); err != nil {
		if !errors.Is(err, dataset.ErrRunBudget) {
			t.Errorf("got error %v", err)
		}
		return false
	}
	b.mu.Lock()
	if b.booked.NanoUSD+b.reserved.NanoUSD > b.limit.CostNanoUSD || b.booked.Tokens+b.reserved.Tokens > b.limit.Tokens {
		t.Errorf("booked %+v and reserved %+v exceed %+v", b.booked, b.reserved, b.limit)
	}
	b.mu.Unlock()
	b.Settle(worst, model.Spend{NanoUSD: rng.Int64N(worst.NanoUSD + 1), Tokens: rng.Int64N(worst.Tokens + 1)})
	return true
}

func TestReserveWaitsForWhatMayComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Limits{CostNanoUSD: 10}, model.Spend{})
		if err := b.Reserve(t.Context(), dollars(8)); err != nil {
			t.Fatal(err)
		}
		verdicts := make(chan string, 4)
		reserve := func(name string, worst model.Spend) {
			go func() {
				if err := b.Reserve(t.Context(), worst); err != nil {
					name += " refused"
				}
				verdicts <- name
			}()
			synctest.Wait()
		}
		reserve("first", dollars(5))
		reserve("second", dollars(1)) // would fit, and waits its turn
		wantVerdicts(t, verdicts)
		b.Settle(dollars(8), dollars(4)) // 4 booked: both fit
		wantVerdicts(t, verdicts, "first", "second")
		reserve("third", dollars(7))
		b.Settle(dollars(5), dollars(5)) // 9 booked, 1 reserved
		reserve("fourth", dollars(0))
		wantVerdicts(t, verdicts)
		b.Settle(dollars(1), dollars(0)) // nothing is outstanding: 7 never fits, and all is over
		wantVerdicts(t, verdicts, "fourth refused", "third refused")
		if got := b.Spent(); got != dollars(9) {
			t.Errorf("spent %+v, want 9", got)
		}
	})
}

// wantVerdicts wants these and no others by now, in any order.
func wantVerdicts(t *testing.T, verdicts <-chan string, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for len(verdicts) > 0 {
		got = append(got, <-verdicts)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestReserveGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Limits{Tokens: 10}, model.Spend{})
		if err := b.Reserve(t.Context(), model.Spend{Tokens: 8}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, dataset.ErrEpisodeTime)
		defer cancel()
		behind := make(chan error, 1)
		go func() {
			synctest.Wait()
			behind <- b.Reserve(t.Context(), model.Spend{Tokens: 2})
		}()
		if err := b.Reserve(ctx, model.Spend{Tokens: 3}); !errors.Is(err, dataset.ErrEpisodeTime) {
			t.Errorf("got error %v", err)
		}
		if err := <-behind; err != nil {
			t.Errorf("the one behind it got %v", err)
		}
	})
}

// TestAbandonGivesBack is the race of a grant with the end of the context.
func TestAbandonGivesBack(t *testing.T) {
	b := NewBudget(Limits{Tokens: 10}, model.Spend{})
	w := &waiter{worst: model.Spend{Tokens: 4}, verdict: make(chan error, 1)}
	b.waiting = append(b.waiting, w)
	b.serve()
	b.abandon(w)
	if b.reserved != (model.Spend{}) || b.outstanding != 0 {
		t.Errorf("%+v reserved, %d outstanding, want none", b.reserved, b.outstanding)
	}
}

func TestBudgetUsedUp(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit Limits
		spent model.Spend
		worst model.Spend
		want  Stop
	}{
		{"no limit", Limits{}, dollars(1 << 60), model.Spend{NanoUSD: math.MaxInt64, Tokens: math.MaxInt64}, ""},
		{"cost", Limits{CostNanoUSD: 5}, dollars(3), dollars(3), StopCost},
		{"cost, exactly", Limits{CostNanoUSD: 5}, dollars(3), dollars(2), ""},
		{"cost, spent before", Limits{CostNanoUSD: 5}, dollars(6), dollars(0), StopCost},
		{"tokens", Limits{CostNanoUSD: 5, Tokens: 9}, model.Spend{}, model.Spend{NanoUSD: 5, Tokens: 10}, StopTokens},
		{"beyond all numbers", Limits{Tokens: 9}, model.Spend{Tokens: 1}, model.Spend{Tokens: math.MaxInt64}, StopTokens},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := NewBudget(test.limit, test.spent)
			err := b.Reserve(t.Context(), test.worst)
			if errors.Is(err, dataset.ErrRunBudget) != (test.want != "") || b.usedUp() != test.want {
				t.Errorf("got error %v, used up %q, want %q", err, b.usedUp(), test.want)
			}
		})
	}
}

// buying plays one call of worst 10 that costs 1, under a budget.
func buying(b *Budget) Rollout {
	return rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		if err := b.Reserve(ctx, dollars(10)); err != nil {
			return err
		}
		defer b.Settle(dollars(10), dollars(1))
		cost := int64(1)
		tr.Books.Add(dataset.Call{Usage: &dataset.Usage{Output: 1}, CostNanoUSD: &cost})
		tr.ExitReason = dataset.ExitAnswered
		return nil
	})
}

func TestBudgetStopsTheRun(t *testing.T) {
	b := setup(1000)
	b.opts.Workers = 8
	b.opts.Budget = NewBudget(Limits{CostNanoUSD: 30}, Spent(b.opts.Index))
	b.cell().Rollout = buying(b.opts.Budget)
	s := b.run(t)
	if s.Stopped != StopCost || s.Interrupted || ExitCode(s, nil, 1) != CodeEarly {
		t.Errorf("stopped by %q, interrupted %v", s.Stopped, s.Interrupted)
	}
	// 21 calls are paid for: then 9 are left, and none is known to fit.
	if got := s.Total.Episodes; got[dataset.OutcomeModel] != 21 || got[dataset.OutcomeBudget] < 1 || got[dataset.OutcomeBudget] > 8 {
		t.Errorf("outcomes %v, want 21 of model, up to 8 of budget", got)
	}
	if s.Total.CostKnown != 21 || s.Total.Planned != 1000 {
		t.Errorf("cost %d of %d episodes, want 21 of 1000", s.Total.CostKnown, s.Total.Planned)
	}

	// More money: those refused run again, and all the others.
	b.opts.Budget = NewBudget(Limits{CostNanoUSD: 2000}, Spent(b.opts.Index))
	b.cell().Rollout = buying(b.opts.Budget)
	s = b.run(t)
	if s.Stopped != "" || s.Total.Episodes[dataset.OutcomeModel] != 1000 || s.Skipped != 21 {
		t.Errorf("stopped by %q, %v, %d skipped", s.Stopped, s.Total.Episodes, s.Skipped)
	}
}

// TestNoMoneyLeft begins nothing, and says so only if something is left to run.
func TestNoMoneyLeft(t *testing.T) {
	b := setup(2)
	b.run(t)
	b.opts.Budget = NewBudget(Limits{CostNanoUSD: 200}, Spent(b.opts.Index))
	if s := b.run(t); s.Stopped != "" || len(b.sink.rows) != 2 {
		t.Errorf("stopped by %q, %d rows, want none, 2", s.Stopped, len(b.sink.rows))
	}
	b.plan.Tasks, b.plan.Total = forever(), 0 // and reads no further
	if s := b.run(t); s.Stopped != StopCost || len(b.sink.rows) != 2 {
		t.Errorf("stopped by %q, %d rows, want cost, 2", s.Stopped, len(b.sink.rows))
	}
}
