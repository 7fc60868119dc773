package lab

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// FaultCapacity is in the ledger where a request was beyond the capacity. It is
// no kind of a scripted fault.
const FaultCapacity = "capacity"

// Capacity is how much a lab does at once. A request holds a slot for as long as
// its latency, and gives it back before it is answered. The zero Capacity has slots for all.
//
// Which requests wait or are refused depends on when they come. What those get
// that are served does not: a refusal does not count as a time that the call id
// was seen.
type Capacity struct {
	Slots      int              `json:"slots"`       // requests served at once; 0: all
	Queue      int              `json:"queue"`       // requests that wait for a slot, in order; -1: any number
	Status     int              `json:"status"`      // of the refusal of what is beyond; default 429
	RetryAfter int              `json:"retry_after"` // seconds, sent with it; 0: none
	Changes    []CapacityChange `json:"changes"`     // in order
}

// CapacityChange changes the slots when so many requests have come, or so much
// time has passed since the first one. Requests that hold a slot keep it.
type CapacityChange struct {
	AfterRequests int64 `json:"after_requests"`
	AfterMS       int64 `json:"after_ms"`
	Slots         int   `json:"slots"`
}

// CapacityGauge is how much of the capacity is in use.
type CapacityGauge struct {
	Slots       int     `json:"slots"` // 0: for all
	Busy        int     `json:"busy"`
	Waiting     int     `json:"waiting"`
	Refused     int64   `json:"refused"`      // so far
	BusySeconds float64 `json:"busy_seconds"` // so far, of all slots together
}

func (c *Capacity) applyDefaults() {
	c.Status = cmp.Or(c.Status, http.StatusTooManyRequests)
	c.Changes = slices.Clone(c.Changes)
}

func (c *Capacity) validate() error {
	var errs []error
	if c.Slots < 0 || c.Queue < -1 || c.RetryAfter < 0 {
		errs = append(errs, errors.New("lab script: capacity: slots and retry_after are not negative, queue is -1 or more"))
	}
	if c.Status != 0 && (c.Status < 400 || c.Status > 599) {
		errs = append(errs, fmt.Errorf("lab script: capacity: status %d is not between 400 and 599", c.Status))
	}
	for i, change := range c.Changes {
		if change.Slots < 0 || (change.AfterRequests > 0) == (change.AfterMS > 0) || change.AfterRequests < 0 || change.AfterMS < 0 {
			errs = append(errs, fmt.Errorf("lab script: capacity.changes[%d]: want slots, and one of after_requests and after_ms above 0", i))
		}
	}
	return errors.Join(errs...)
}

// slots are the capacity in use.
type slots struct {
	script Capacity

	mu       sync.Mutex
	began    time.Time // of the first request
	requests int64
	now      int             // slots, 0: for all
	changed  int             // changes that were made
	busy     int             // requests that hold one
	waiting  []chan struct{} // closed by leave, in order
	refusals map[string]int  // by call id
	refused  int64
	used     time.Duration // by slots together, up to at
	at       time.Time
}

func newSlots(c Capacity) *slots { return &slots{script: c, now: c.Slots, refusals: map[string]int{}} }

// enter takes a slot, after it has waited for one, and returns how often the
// call id was seen but for refusals. ok is false if the request is refused.
// It panics with [http.ErrAbortHandler] when the client leaves or the lab
// closes.
func (s *slots) enter(r *http.Request, closed <-chan struct{}, callID string, seen int) (nth int, ok bool) {
	turn, nth, ok := s.arrive(callID, seen)
	if turn == nil {
		return nth, ok
	}
	select {
	case <-turn:
		return nth, true
	case <-r.Context().Done():
	case <-closed:
	}
	s.abandon(turn)
	panic(http.ErrAbortHandler)
}

// arrive takes a slot, a place in the queue, which is turn, or neither.
func (s *slots) arrive(callID string, seen int) (turn chan struct{}, nth int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.tick()
	nth = seen - s.refusals[callID]
	switch {
	case s.free():
		s.busy++
		return nil, nth, true
	case s.script.Queue < 0 || len(s.waiting) < s.script.Queue:
		turn = make(chan struct{})
		s.waiting = append(s.waiting, turn)
		return turn, nth, true
	}
	s.refused++
	s.refusals[callID]++
	return nil, nth, false
}

// leave gives a slot back.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	s.busy--
	s.serve()
}

// abandon gives a place in the queue back, or the slot that came of it.
func (s *slots) abandon(turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	if i := slices.Index(s.waiting, turn); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.busy--
	s.serve()
}

// The methods below are called with mu held.

func (s *slots) free() bool { return s.now == 0 || s.busy < s.now }

func (s *slots) serve() {
	for len(s.waiting) > 0 && s.free() {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.busy++
	}
}

// tick books what the slots did until now, and makes the changes that are due.
func (s *slots) tick() {
	now := time.Now()
	if s.began.IsZero() {
		s.began, s.at = now, now
	}
	s.used += time.Duration(s.busy) * now.Sub(s.at)
	s.at = now
	for s.changed < len(s.script.Changes) {
		c := s.script.Changes[s.changed]
		came := c.AfterRequests > 0 && s.requests > c.AfterRequests
		passed := c.AfterMS > 0 && now.Sub(s.began) >= time.Duration(c.AfterMS)*time.Millisecond
		if !came && !passed {
			return
		}
		s.now = c.Slots
		s.changed++
		s.serve()
	}
}

func (s *slots) gauge() CapacityGauge {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began.IsZero() {
		s.tick()
	}
	return CapacityGauge{
		Slots: s.now, Busy: s.busy, Waiting: len(s.waiting), Refused: s.refused, BusySeconds: s.used.Seconds(),
	}
}

// refuseBeyond answers a request that is beyond the capacity.
func (s *Server) refuseBeyond(x *exchange) {
	c := s.script.Capacity
	x.entry.Fault = FaultCapacity
	if c.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(c.RetryAfter))
	}
	s.refuse(x, c.Status, "rate_limit_exceeded", "all slots are taken")
}
