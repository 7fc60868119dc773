package sandbox

import (
	"context"
	"fmt"
	"sync"
)

// Limit is b with at most n >= 1 sandboxes alive at once: Start waits until there
// is room, first come first served. While one waits, pause has been called, and
// what that returned is called when the waiting is over, so that an episode's
// clock can stand still; nil: nobody is told.
func Limit(b Backend, n int, pause func(context.Context) (resume func())) Backend {
	if pause == nil {
		pause = func(context.Context) func() { return func() {} }
	}
	return &limited{Backend: b, pause: pause, slots: make(chan struct{}, max(n, 1))}
}

type limited struct {
	Backend

	pause func(context.Context) (resume func())
	// slots holds a value per sandbox alive. Goroutines blocked on a full channel
	// are served in the order in which they came.
	slots chan struct{}
}

// Start implements [Backend].
func (l *limited) Start(ctx context.Context, spec Spec) (Sandbox, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, fmt.Errorf("waiting for other sandboxes to end: %w", err)
	}
	s, err := l.Backend.Start(ctx, spec)
	if err != nil {
		l.release()
		return nil, err
	}
	return &lent{Sandbox: s, release: sync.OnceFunc(l.release)}, nil
}

func (l *limited) acquire(ctx context.Context) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	defer l.pause(ctx)()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *limited) release() { <-l.slots }

// lent is a sandbox that makes room for another when it is closed.
type lent struct {
	Sandbox

	release func()
}

// Close implements [Sandbox]. What could not be ended does not hold up others:
// the error is its caller's to tell.
func (s *lent) Close(ctx context.Context) error {
	defer s.release()
	return s.Sandbox.Close(ctx)
}
