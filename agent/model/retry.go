package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/talaria-run/talaria/dataset"
)

// RetryOptions say how patient a call is. The zero value is the default.
type RetryOptions struct {
	// Tries is the most tries of a call; default 5, which outlasts a restart
	// behind a load balancer and gives up on a dead endpoint within a minute.
	Tries int
	// Base bounds the wait after the first failure; the bound doubles with
	// each further one. Default 1s.
	Base time.Duration
	// Cap bounds every wait that the server did not ask for; default 60s.
	Cap time.Duration
	// MaxRetryAfter bounds the wait that a server asks for; default 10m.
	MaxRetryAfter time.Duration
}

func (o *RetryOptions) applyDefaults() {
	o.Tries = cmp.Or(o.Tries, 5)
	o.Base = cmp.Or(o.Base, time.Second)
	o.Cap = cmp.Or(o.Cap, time.Minute)
	o.MaxRetryAfter = cmp.Or(o.MaxRetryAfter, 10*time.Minute)
}

type retrying struct {
	inner Model
	o     RetryOptions
}

// Retry tries a call again when its [Error] is retryable: after a wait drawn
// from zero to a bound that doubles (full jitter), or after what the server
// asked for in Retry-After; at once where another endpoint can take the call.
// Waits stop the episode's clock and end when ctx is done.
//
// The Response, also that of a call which failed in the end, adds up all
// tries: their usage and cost where they reported it, and otherwise whether
// they may have been paid for.
func Retry(inner Model, o RetryOptions) Model {
	o.applyDefaults()
	return &retrying{inner: inner, o: o}
}

func (m *retrying) Unwrap() Model { return m.inner }

func (m *retrying) Generate(ctx context.Context, req Request) (resp Response, err error) {
	req.Try = 0
	start := time.Now()
	resp, err = m.inner.Generate(ctx, req)
	if err != nil {
		err = m.again(ctx, &req, &resp, err, start)
	}
	return resp, err
}

// again goes on after a first try that failed; resp becomes the sum of all.
func (m *retrying) again(ctx context.Context, req *Request, resp *Response, err error, start time.Time) error {
	first := *resp
	*resp = Response{}
	resp.addTry(&first, err, start)
	schedule := m.schedule()
	for {
		failed := retryable(err)
		if failed == nil || req.Try+1 >= m.o.Tries {
			return tried(err, req.Try+1)
		}
		if failed.Endpoint != "" {
			req.Failed = append(req.Failed, failed.Endpoint)
		}
		if !failed.Elsewhere {
			if err := resp.pause(ctx, m.wait(schedule, failed)); err != nil {
				return err
			}
		}
		req.Try++
		start = time.Now()
		var try Response
		try, err = m.inner.Generate(ctx, *req)
		resp.addTry(&try, err, start)
		if err == nil {
			return nil
		}
	}
}

// schedule draws from [0, 2 x interval]: the interval is half the bound.
func (m *retrying) schedule() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: m.o.Base / 2, MaxInterval: m.o.Cap / 2,
		RandomizationFactor: 1, Multiplier: 2,
	}
}

// wait is how long to wait after failed. Calls that were sent away together
// with one Retry-After do not come back together.
func (m *retrying) wait(schedule *backoff.ExponentialBackOff, failed *Error) time.Duration {
	own := min(schedule.NextBackOff(), m.o.Cap)
	if failed.RetryAfter <= 0 {
		return own
	}
	return min(failed.RetryAfter, m.o.MaxRetryAfter) + rand.N(m.o.Base)
}

// addTry adds the end of a try that began at start to the sum; the last try's
// reply is the sum's.
func (r *Response) addTry(try *Response, err error, start time.Time) {
	tries, paused := append(r.Tries, try.Tries...), r.Paused+try.Paused
	unreported := r.Unreported + unreportedBy(try, err)
	usage, cost := sumPaid(r, try)
	*r = *try
	r.Tries, r.Paused, r.Unreported, r.Usage, r.CostNanoUSD = tries, paused, unreported, usage, cost
	if err == nil {
		return
	}
	failed := Try{
		Kind: dataset.SpanRetry, Start: start.Add(try.Paused), Duration: time.Since(start) - try.Paused,
		ErrorClass: ClassOf(err), RequestID: try.RequestID,
	}
	if e := new(Error); errors.As(err, &e) {
		failed.Status = e.Status
	}
	r.Tries = append(r.Tries, failed)
}

func unreportedBy(try *Response, err error) int {
	if e := new(Error); errors.As(err, &e) && e.Sent && try.Usage == nil {
		return max(try.Unreported, 1)
	}
	return try.Unreported
}

// sumPaid adds up what two tries reported. The cost stays known only if each
// that used tokens reported one.
func sumPaid(a, b *Response) (*dataset.Usage, *int64) {
	if a.Usage == nil {
		return b.Usage, b.CostNanoUSD
	}
	if b.Usage == nil {
		return a.Usage, a.CostNanoUSD
	}
	usage := *a.Usage
	usage.Add(*b.Usage)
	if a.CostNanoUSD == nil || b.CostNanoUSD == nil {
		return &usage, nil
	}
	cost := *a.CostNanoUSD + *b.CostNanoUSD
	return &usage, &cost
}

// pause waits for d with the clock stopped and records it.
func (r *Response) pause(ctx context.Context, d time.Duration) error {
	wait, err := stall(ctx, func() error {
		if ctx.Err() != nil {
			return cancelled(ctx, "the next try")
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return cancelled(ctx, "the next try")
		}
	})
	if wait.Duration >= minPause {
		r.Tries = append(r.Tries, wait)
		r.Paused += wait.Duration
	}
	return err
}

// retryable is the Error in err's chain that says to go on, nil if none does.
func retryable(err error) *Error {
	if e := new(Error); errors.As(err, &e) && e.Retryable {
		return e
	}
	return nil
}

func tried(err error, tries int) error {
	if err == nil || tries == 1 {
		return err
	}
	return fmt.Errorf("after %d tries: %w", tries, err)
}

// RetryAfter is how long a server asks to wait, 0 if it does not: Retry-After
// in seconds or as an HTTP date, or the finer retry-after-ms.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// seconds bounds s to what is worth asking: negative, infinite and NaN are 0
// or a day.
func seconds(s float64) time.Duration {
	const day = 24 * 60 * 60
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, day) * float64(time.Second))
}
