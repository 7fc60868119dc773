package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

// hotel counts its guests.
type hotel struct {
	sandbox.Backend

	full         error // what Start returns
	alive, most  atomic.Int64
	closesFailed error
}

func (h *hotel) Start(context.Context, sandbox.Spec) (sandbox.Sandbox, error) {
	if h.full != nil {
		return nil, h.full
	}
	n := h.alive.Add(1)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
	return &guest{hotel: h}, nil
}

type guest struct {
	sandbox.Sandbox

	hotel *hotel
}

func (g *guest) Close(context.Context) error {
	g.hotel.alive.Add(-1)
	return g.hotel.closesFailed
}

// TestLimit has ten sandboxes live for a second each, three at a time.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hotel{closesFailed: errors.New("it did not end")}
		var paused, resumed atomic.Int64
		b := sandbox.Limit(h, 3, func(context.Context) func() {
			paused.Add(1)
			return func() { resumed.Add(1) }
		})
		begin := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				s, err := b.Start(t.Context(), sandbox.Spec{})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble
				if err := s.Close(t.Context()); !errors.Is(err, h.closesFailed) {
					t.Errorf("Close returned %v", err)
				}
			})
		}
		all.Wait()
		got := fmt.Sprintf("%d at once, %v, %d pauses, %d ends", h.most.Load(), time.Since(begin), paused.Load(), resumed.Load())
		if diff := cmp.Diff("3 at once, 4s, 7 pauses, 7 ends", got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestLimitGivesBack sees that neither a start that failed nor a wait that was
// given up takes a place.
func TestLimitGivesBack(t *testing.T) {
	h := &hotel{full: errors.New("no room")}
	b := sandbox.Limit(h, 1, nil)
	for range 3 {
		if _, err := b.Start(t.Context(), sandbox.Spec{}); !errors.Is(err, h.full) {
			t.Fatal(err)
		}
	}
	h.full = nil
	first, err := b.Start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := b.Start(ctx, sandbox.Spec{}); !errors.Is(err, why) {
		t.Errorf("a second one while there is room for one: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(t.Context(), sandbox.Spec{}); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
}
