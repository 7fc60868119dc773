package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// interruptible returns a context that the first SIGINT or SIGTERM cancels
// with cause [dataset.ErrInterrupted]. Calling stop gives the signals back.
func interruptible(ctx context.Context) (_ context.Context, stop func()) {
	admit, _, stop := drainOnSignals(ctx, 0, func(int) {})
	return admit, stop
}

// drainOnSignals returns two contexts for a run. The first SIGINT or SIGTERM
// cancels admit: episodes in flight finish. The second, or grace after the
// first unless grace is 0, cancels work. Both have the cause
// [dataset.ErrInterrupted]. A third signal kills the process. Each signal is
// told to notify with its number, from 1. Calling stop gives the signals back.
func drainOnSignals(ctx context.Context, grace time.Duration, notify func(n int)) (admit, work context.Context, stop func()) {
	signals := make(chan os.Signal, 2) // written by the runtime, read by drain, never closed
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	admit, work, ended := drain(ctx, signals, grace, notify, func() { signal.Stop(signals) })
	return admit, work, func() {
		signal.Stop(signals)
		ended()
	}
}

// drain is drainOnSignals over any source of signals. It calls release before
// it cancels work.
func drain(ctx context.Context, signals <-chan os.Signal, grace time.Duration, notify func(n int), release func()) (admit, work context.Context, stop func()) {
	work, cancelWork := context.WithCancelCause(ctx)
	admit, cancelAdmit := context.WithCancelCause(work)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stopped:
			return
		case <-signals:
			notify(1)
			cancelAdmit(dataset.ErrInterrupted)
		}
		select {
		case <-stopped:
			return
		case <-signals:
			notify(2)
		case <-after(grace):
		}
		release()
		cancelWork(dataset.ErrInterrupted)
	}()
	return admit, work, sync.OnceFunc(func() {
		close(stopped)
		<-done
		cancelWork(context.Canceled)
	})
}

// after is time.After, but never for 0.
func after(d time.Duration) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.After(d)
}
