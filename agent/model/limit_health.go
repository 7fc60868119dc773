package model

import (
	"errors"
	"time"
)

// outcome is what the end of a request tells of its endpoint.
type outcome uint8

const (
	unsent   outcome = iota // it never left
	unheard                 // nothing: we cut it off
	served                  // it was answered
	rejected                // it was answered, and refused for what it says
	refused                 // the endpoint has too much to do: 429, 503, 529
	timedOut                // no answer in time
	broken                  // no answer that could be read: reset, cut, 5xx
)

// result is what became of a request.
type result struct {
	outcome        outcome
	status         int
	retryAfter     time.Duration
	tokens, output int64 // as reported: all, and those of the reply
}

func resultOf(resp *Response, err error) result {
	var r result
	if u := resp.Usage; u != nil {
		r.tokens, r.output = u.Total(), u.Output
	}
	if err == nil {
		r.outcome = served
		return r
	}
	e := new(Error)
	if !errors.As(err, &e) {
		r.outcome = unheard
		return r
	}
	r.outcome, r.status, r.retryAfter = outcomeOf(e), e.Status, e.RetryAfter
	return r
}

func outcomeOf(e *Error) outcome {
	switch e.Class {
	case ClassRateLimit, ClassOverloaded:
		return refused
	case ClassTimeout:
		return timedOut
	case ClassServer, ClassConnection, ClassBadResponse:
		return broken
	case ClassCancelled:
		return unheard
	default:
		return rejected
	}
}

// health tells whether an endpoint is down, from what its requests say.
type health struct {
	failures int // in a row
	pause    time.Duration
	probeAt  time.Time
	probing  bool // a request is finding out
}

const (
	downAfter  = 3 // failures in a row: one or two are a connection that broke
	firstProbe = time.Second
	lastProbe  = 30 * time.Second
)

// note learns from the end of a request. Each probe that fails doubles the
// time until the next one.
func (h *health) note(now time.Time, o outcome) {
	probed := h.probing
	h.probing = false
	switch o {
	case served, rejected, refused:
		*h = health{}
		return
	case unsent, unheard:
		return
	case broken, timedOut:
	}
	h.failures++
	switch {
	case h.failures == downAfter:
		h.pause = firstProbe
	case probed:
		h.pause = min(2*h.pause, lastProbe)
	default:
		return
	}
	h.probeAt = now.Add(h.pause)
}

func (h *health) down() bool { return h.failures >= downAfter }

// probe reports whether a request may find out whether an endpoint that is
// down is up again: one at a time, after a pause.
func (h *health) probe(now time.Time) bool {
	if h.probing || now.Before(h.probeAt) {
		return false
	}
	h.probing = true
	return true
}

// ready reports whether the endpoint takes requests as far as is known.
func (l *Limiter) ready(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.health.down() && !l.policy.paused.After(now)
}

// open is ready, and lets a request in that finds out whether an endpoint that
// is down is up again.
func (l *Limiter) open(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.policy.paused.After(now) && (!l.health.down() || l.health.probe(now))
}
