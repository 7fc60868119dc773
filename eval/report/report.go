// Package report makes the standard tables of one or many runs: pass rates
// with intervals and bounds, pass@k, cost, tokens, latency, outcomes, failures,
// tools and where the time went.
//
// [Build] computes a [Report] and [Report.Write] prints it. The names of its
// JSON fields are a contract: they keep their meaning between releases.
//
// # What the numbers mean
//
// Episodes are the current attempts of the view "episodes", delegated ones
// left out. An episode is scored if its outcome is model and it has a reward;
// every other one is missing. Observed values are over scored episodes alone;
// bounds say what the value would be were every missing episode a failure, or
// a pass. Cost, tokens and time are over all attempts, since each was paid
// for, and cost and tokens over delegated episodes too.
package report

import (
	"encoding/json"
	"time"

	"github.com/talaria-run/talaria/eval/metric"
)

// Report is the standard tables. Rows are sorted by run, oldest first, and
// variant.
type Report struct {
	Runs []Run `json:"runs"`
	// RewardRange is what a missing reward is taken to lie in: 0 to 1, or what
	// was observed where that is wider.
	RewardRange metric.Interval `json:"reward_range"`
	Total       Variant         `json:"total"` // over all runs and variants
	Variants    []Variant       `json:"variants"`
	Sources     []Source        `json:"sources"` // of each variant
	Outcomes    []Outcome       `json:"outcomes"`
	Unscored    []Unscored      `json:"unscored"`
	Failures    []Failure       `json:"failures"`
	Tools       []Tool          `json:"tools"`
	Turns       []Turns         `json:"turns"`
	Latency     []Latency       `json:"latency"`
	Time        []Time          `json:"time"`
}

// Run is a run that the report is about.
type Run struct {
	RunID     string     `json:"run_id"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	CreatedAt *time.Time `json:"created_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Version   string     `json:"version"`
	Samples   *int       `json:"samples"` // episodes per task
	Total     *int64     `json:"total"`   // episodes planned, null if not known beforehand
}

// Key names a variant of a run. In the row of the total all three are empty.
type Key struct {
	RunID       string `json:"run_id"`
	Variant     string `json:"variant"`
	VariantHash string `json:"variant_hash"`
}

// Variant is how one variant of one run did.
type Variant struct {
	Key
	Env    string          `json:"env"`    // empty for the total
	Model  string          `json:"model"`  // empty for the total
	Params json.RawMessage `json:"params"` // the swept keys; null for the total

	Episodes  int     `json:"episodes"`
	Scored    int     `json:"scored"`
	Passed    int     `json:"passed"`
	Missing   Missing `json:"missing"`
	Truncated int     `json:"truncated"` // cut short by a limit; they stay in every denominator
	Attempts  int     `json:"attempts"`  // retries included

	PassRate       *float64         `json:"pass_rate"`
	PassRateStdErr *float64         `json:"pass_rate_stderr"`
	PassRateCI95   *metric.Interval `json:"pass_rate_ci95"`
	IntervalMethod string           `json:"interval_method"` // wilson, or wilson_clustered by task
	PassRateBounds *metric.Interval `json:"pass_rate_bounds"`
	RewardMean     *float64         `json:"reward_mean"`
	RewardStdErr   *float64         `json:"reward_stderr"` // clustered by task
	RewardBounds   *metric.Interval `json:"reward_bounds"`
	PassAtK        []metric.Power   `json:"pass_at_k"` // averaged over groups, not over episodes
	PassHatK       []metric.Power   `json:"pass_hat_k"`

	CostUSD         *float64 `json:"cost_usd"` // null if any part of it is not known
	CostKnownUSD    float64  `json:"cost_known_usd"`
	CostPerPassUSD  *float64 `json:"cost_per_pass_usd"`
	UnpricedCalls   int64    `json:"unpriced_calls"`
	UnreportedCalls int64    `json:"unreported_calls"`
	Tokens          Tokens   `json:"tokens"`

	WorkingMS Quantiles `json:"working_ms"` // without queue, throttle and backoff
	TotalMS   Quantiles `json:"total_ms"`
}

// Missing counts the episodes without a reward, by what they lack it for.
type Missing struct {
	Task     int `json:"task"`
	Infra    int `json:"infra"`
	Budget   int `json:"budget"`
	Operator int `json:"operator"`
	Unscored int `json:"unscored"` // outcome model, and no scorer gave a value
}

// All is their sum.
func (m Missing) All() int { return m.Task + m.Infra + m.Budget + m.Operator + m.Unscored }

// Tokens are the four disjoint counters of the policy's calls, and the calls
// of judges and simulated users.
type Tokens struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
	AuxInput   int64 `json:"aux_input"`
	AuxOutput  int64 `json:"aux_output"`
}

// Quantiles are over the episodes of outcome model; null if there is none.
type Quantiles struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
}

// Outcome counts the episodes that ended for one reason.
type Outcome struct {
	Key
	Outcome    string `json:"outcome"`
	ExitReason string `json:"exit_reason"`
	Truncated  bool   `json:"truncated"`
	Episodes   int    `json:"episodes"`
}

// Failure counts what went wrong under one error class, over all attempts:
// those that a retry made good again are among them.
type Failure struct {
	Key
	ErrorClass string `json:"error_class"`
	Outcome    string `json:"outcome"`
	Attempts   int    `json:"attempts"`
	Episodes   int    `json:"episodes"` // that had such an attempt
	Final      int    `json:"final"`    // whose current attempt it is
	// Message is of one of them; Examples are ids of episodes, the first few.
	Message  *string  `json:"message"`
	Examples []string `json:"examples"`
}

// Tool is how the calls of one tool went, in the current attempts.
type Tool struct {
	Key
	Tool         string    `json:"tool"`
	Calls        int       `json:"calls"`
	Errors       int       `json:"errors"`
	ErrorRate    float64   `json:"error_rate"`
	SchemaErrors int       `json:"schema_errors"`
	Blocked      int       `json:"blocked"`
	Repaired     int       `json:"repaired"`
	TotalMS      int64     `json:"total_ms"`
	DurationMS   Quantiles `json:"duration_ms"`
}

// Time is where the time of all attempts went, in milliseconds. The total is
// from start to end, so that it has all but the queue.
type Time struct {
	Key
	Attempts   int   `json:"attempts"`
	QueuedMS   int64 `json:"queued_ms"`
	SetupMS    int64 `json:"setup_ms"`
	ModelMS    int64 `json:"model_ms"`
	ThrottleMS int64 `json:"throttle_ms"`
	ToolMS     int64 `json:"tool_ms"`
	ScoreMS    int64 `json:"score_ms"`
	OtherMS    int64 `json:"other_ms"`
	TotalMS    int64 `json:"total_ms"`
}
