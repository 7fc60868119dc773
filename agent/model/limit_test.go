package model_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// TestLimitIsFair sends ten calls, one after the other, through two slots of
// two models of one endpoint; each takes a second.
func TestLimitIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu    sync.Mutex
			order []string
			at    []time.Duration
			wg    sync.WaitGroup
		)
		begin := time.Now()
		inner := generator(func(_ context.Context, req model.Request) (model.Response, error) {
			mu.Lock()
			order, at = append(order, req.CallID), append(at, time.Since(begin))
			mu.Unlock()
			pass(time.Second)
			return reply(1), nil
		})
		shared := model.NewLimiter(2, model.LimiterOptions{})
		models := []model.Model{model.Limit(inner, shared), model.Limit(inner, shared)}
		for i := range 10 {
			wg.Go(func() {
				// The limit on working time is shorter than the longest wait.
				ctx, clock, cancel := model.WithClock(t.Context(), 1500*time.Millisecond)
				defer cancel()
				resp, err := models[i%2].Generate(ctx, model.Request{CallID: string(rune('a' + i))})
				if err != nil {
					t.Error(err)
				}
				wait := time.Duration(i/2) * time.Second
				wantWorked(t, clock, time.Second)
				wantPause(t, resp, begin, wait)
			})
			synctest.Wait() // it has a slot or its place in the queue
		}
		wg.Wait()
		for pair := range slices.Chunk(order, 2) {
			slices.Sort(pair) // two are let in together
		}
		if want := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}; !slices.Equal(order, want) {
			t.Errorf("served in order %v, want %v", order, want)
		}
		for i, d := range at {
			if want := time.Duration(i/2) * time.Second; d != want {
				t.Errorf("call %d was let in after %v, want %v", i, d, want)
			}
		}
	})
}

// wantPause wants the response to tell of one wait that began at start, or of
// none for 0.
func wantPause(t *testing.T, resp model.Response, start time.Time, wait time.Duration) {
	t.Helper()
	var want []model.Try
	if wait > 0 {
		want = []model.Try{{Kind: dataset.SpanLimiter, Start: start, Duration: wait}}
	}
	if diff := cmp.Diff(want, resp.Tries); diff != "" || resp.Paused != wait {
		t.Errorf("paused %v, want %v; tries (-want +got):\n%s", resp.Paused, wait, diff)
	}
}

// TestLimitCancelled takes waiting calls out of the queue: those behind them
// move up, and no slot is lost.
func TestLimitCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		inner := generator(func(context.Context, model.Request) (model.Response, error) {
			<-release
			return reply(1), nil
		})
		m := model.Limit(inner, model.NewLimiter(1, model.LimiterOptions{}))
		var wg sync.WaitGroup
		call := func(ctx context.Context, check func(model.Response, error)) {
			wg.Go(func() { check(m.Generate(ctx, model.Request{})) })
			synctest.Wait()
		}
		served := func(_ model.Response, err error) {
			if err != nil {
				t.Errorf("a call behind a cancelled one: %v", err)
			}
		}
		call(t.Context(), served) // holds the slot
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		call(ctx, func(resp model.Response, err error) {
			wantClass(t, err, model.ClassCancelled, dataset.ErrInterrupted)
			wantPause(t, resp, begin, time.Minute)
		})
		call(t.Context(), served)
		pass(time.Minute)
		cancel(dataset.ErrInterrupted)
		synctest.Wait()
		close(release)
		wg.Wait()
		if _, err := m.Generate(t.Context(), model.Request{}); err != nil { // the slot is free again
			t.Error(err)
		}
		if _, err := m.Generate(ctx, model.Request{}); err == nil {
			t.Error("a cancelled context was let through")
		}
	})
}

func TestLimitAfterPanic(t *testing.T) {
	m := model.Limit(generator(func(_ context.Context, req model.Request) (model.Response, error) {
		if req.CallID == "panic" {
			panic("provider")
		}
		return reply(1), nil
	}), model.NewLimiter(1, model.LimiterOptions{}))
	func() {
		defer func() { _ = recover() }()
		_, _ = m.Generate(t.Context(), model.Request{CallID: "panic"})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := m.Generate(ctx, model.Request{}); err != nil {
		t.Errorf("the slot of a call that panicked is lost: %v", err)
	}
}
