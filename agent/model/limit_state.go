package model

import "time"

// Reason is why a limit is what it is, or why nobody is let in.
type Reason string

// The reasons.
const (
	ReasonCeiling    Reason = "ceiling"     // the user's
	ReasonStart      Reason = "start"       // nothing is known yet
	ReasonGrowing    Reason = "growing"     // it grows as far as calls need it
	ReasonRefused    Reason = "refused"     // 429, 503, 529: see Status
	ReasonTimeouts   Reason = "timeouts"    // requests were not answered in time
	ReasonLatency    Reason = "latency"     // requests wait for each other inside the endpoint
	ReasonRetryAfter Reason = "retry_after" // the endpoint asked to wait
	ReasonRate       Reason = "rate"        // requests or tokens per minute
)

// LimiterState is how a limiter stands. Its JSON keeps its meaning between
// releases.
type LimiterState struct {
	Limit    int    `json:"limit"` // in force
	Ceiling  int    `json:"ceiling"`
	Reason   Reason `json:"reason"`
	Status   int    `json:"status,omitempty"` // HTTP status of the last refusal
	InFlight int    `json:"in_flight"`
	Waiting  int    `json:"waiting"`
	// Pause is how long nobody is let in yet, 0 if somebody is; PauseReason is
	// why.
	Pause       time.Duration `json:"pause_ns,omitempty"`
	PauseReason Reason        `json:"pause_reason,omitempty"`
	Down        bool          `json:"down,omitempty"` // the last requests broke
}

// State tells how the limiter stands. It is safe for concurrent use.
func (l *Limiter) State() LimiterState {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, p := time.Now(), &l.policy
	s := LimiterState{
		Limit: p.allowed(), Ceiling: p.ceiling, Reason: p.why, Status: p.status,
		InFlight: l.inFlight, Waiting: l.queue.Len(), Down: l.health.down(),
	}
	if d := p.paused.Sub(now); d > 0 {
		s.Pause, s.PauseReason = d, p.pausedBy
		return s
	}
	if w, ok := l.first(); ok && l.inFlight < s.Limit {
		if d := l.rates.wait(now, w.tokens); d > 0 {
			s.Pause, s.PauseReason = d, ReasonRate
		}
	}
	return s
}
