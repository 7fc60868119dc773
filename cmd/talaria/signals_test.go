package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// drained is what came of the contexts of a drain.
type drained struct {
	Admit, Work bool // ended by an interrupt
	Notified    []int
	Released    bool
}

func TestDrain(t *testing.T) {
	tests := []struct {
		name    string
		signals int
		grace   time.Duration
		wait    time.Duration
		want    drained
	}{
		{name: "none", grace: time.Minute, wait: time.Hour},
		{name: "first", signals: 1, wait: time.Hour, want: drained{Admit: true, Notified: []int{1}}},
		{name: "within grace", signals: 1, grace: time.Minute, wait: 59 * time.Second, want: drained{Admit: true, Notified: []int{1}}},
		{name: "grace over", signals: 1, grace: time.Minute, wait: 61 * time.Second, want: drained{Admit: true, Work: true, Notified: []int{1}, Released: true}},
		{name: "second", signals: 2, wait: time.Second, want: drained{Admit: true, Work: true, Notified: []int{1, 2}, Released: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got drained
				signals := make(chan os.Signal)
				notify := func(n int) { got.Notified = append(got.Notified, n) }
				admit, work, stop := drain(t.Context(), signals, tt.grace, notify, func() { got.Released = true })
				for range tt.signals {
					signals <- os.Interrupt
				}
				<-time.After(tt.wait)
				synctest.Wait()
				got.Admit, got.Work = interrupted(admit), interrupted(work)
				stop()
				stop()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("drain (-want +got):\n%s", diff)
				}
				if work.Err() == nil {
					t.Error("stop left the work context alive")
				}
			})
		})
	}
}

func interrupted(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), dataset.ErrInterrupted)
}
