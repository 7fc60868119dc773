package dataset

import "time"

// Kinds of span.
const (
	SpanQueue   = "queue"   // waiting for a worker
	SpanSetup   = "setup"   // Env.Reset
	SpanModel   = "model"   // one logical model call, with its retries and pauses
	SpanRetry   = "retry"   // one try of a model call that failed
	SpanLimiter = "limiter" // waiting for a request slot, Retry-After or backoff
	SpanTool    = "tool"
	SpanEnv     = "env" // Env.Step
	SpanScore   = "score"
)

// Span is one thing that took time within an attempt. Start counts from
// Trajectory.StartedAt, except for a queue span, whose Start is negative.
type Span struct {
	ID       string
	ParentID string
	Kind     string
	Name     string
	Turn     int
	Agent    string
	Start    time.Duration
	Duration time.Duration
	Status   string // ok, error, cancelled
	Retry    int    // number of the try, 0 for the first

	ErrorClass    string
	TTFT          *time.Duration // time to first token, where streamed
	CallID        string         // "<episode_id>-<attempt>-<n>"
	RequestID     string         // the server's
	ModelServed   string         // as the response named it
	PolicyVersion *int64
	Usage         *Usage // nil: not reported
	CostNanoUSD   *int64 // nil: not known
	Attrs         map[string]any
}
