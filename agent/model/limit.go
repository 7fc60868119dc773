package model

import "context"

// Limiter bounds the requests in flight to one endpoint. All variants that
// use the endpoint share it.
type Limiter struct {
	// slots holds a value per request in flight. Goroutines blocked on a full
	// channel are served in the order in which they came.
	slots chan struct{}
}

// NewLimiter allows n >= 1 requests at once.
func NewLimiter(n int) *Limiter { return &Limiter{slots: make(chan struct{}, max(n, 1))} }

type limited struct {
	inner Model
	l     *Limiter
}

// Limit makes each call wait for a slot of l, first come first served. The
// wait stops the episode's clock and is recorded as a [Try] when it is longer
// than a millisecond.
func Limit(inner Model, l *Limiter) Model { return &limited{inner: inner, l: l} }

func (m *limited) Unwrap() Model { return m.inner }

func (m *limited) Generate(ctx context.Context, req Request) (resp Response, err error) {
	wait, err := m.l.acquire(ctx)
	if err != nil {
		resp.waitedBefore(wait)
		return resp, err
	}
	defer m.l.release()
	resp, err = m.inner.Generate(ctx, req)
	resp.waitedBefore(wait)
	return resp, err
}

func (l *Limiter) acquire(ctx context.Context) (Try, error) {
	if ctx.Err() != nil {
		return Try{}, cancelled(ctx, "a request slot")
	}
	select {
	case l.slots <- struct{}{}: // a free slot: nobody waits
		return Try{}, nil
	default:
	}
	return stall(ctx, func() error {
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return cancelled(ctx, "a request slot")
		}
	})
}

func (l *Limiter) release() { <-l.slots }
