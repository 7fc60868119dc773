// Package model is the contract with language models. [Model] has one method;
// retries, limits, prices and the ledger are Models around a Model, found
// through each other with [As].
//
// From the outside in, the stack of a policy is
//
//	record ─ price ─ gate ─ retry ─ limit ─ provider
//
// With several endpoints behind one model, spread stands in the place of limit
// and has a limit and a provider for each.
//
// A provider package (openai, scripted) makes the innermost one and does one
// try per Generate.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Model generates one reply. Generate is safe for concurrent use and returns
// when ctx is done, with [context.Cause] in its error's chain.
//
// With an error the Response still tells what is known: its Tries, what is
// Unreported, and the usage of what was paid for.
type Model interface {
	Generate(ctx context.Context, req Request) (Response, error)
}

// Request is one logical model call. Models do not change what it points to.
type Request struct {
	Messages []dataset.Message
	Tools    []ToolSpec
	Sampling dataset.Sampling
	// CallID is "<episode_id>-<attempt>-<n>", sent as X-Client-Request-Id;
	// retries repeat it.
	CallID string
	Agent  string // who pays: dataset.AgentPolicy, ...
	// Episode is read by scripted models and by the ledger; it is never sent
	// to a provider.
	Episode *dataset.Episode
	// Try is the number of the try, 0 for the first; the retry wrapper counts it.
	Try int
	// Failed names the endpoint of each try that failed before, where a model
	// has several; the retry wrapper fills it in.
	Failed []string
}

// CallID names the n-th logical call of an attempt.
func CallID(ep *dataset.Episode, n int) string {
	return ep.ID + "-" + strconv.Itoa(ep.Attempt) + "-" + strconv.Itoa(n)
}

// ToolSpec is a tool as the provider gets it. Parameters is a JSON schema.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Finish reasons, as normalised from every dialect.
const (
	FinishStop          = "stop"
	FinishToolCalls     = "tool_calls"
	FinishLength        = "length"
	FinishContentFilter = "content_filter"
	FinishGaveUp        = "gave_up" // scripted models only: the policy gives up
)

// Response is a reply and what is known of its call. Message has role
// assistant; its Policy, Turn and SpanID are the loop's to set.
type Response struct {
	Message      dataset.Message
	Usage        *dataset.Usage // nil: not reported
	CostNanoUSD  *int64         // nil: not known; set by the provider where it reports cost, else by price
	PriceVersion string         // of the price table, or PriceReported; "" without a cost
	ModelServed  string
	Fingerprint  string
	Upstream     string
	RequestID    string
	TTFT         *time.Duration

	// Unreported counts tries that may have been paid for and whose usage
	// never came: cut off after the request had left, or answered without it.
	Unreported int
	Most       Spend         // what one try may have used at most, where a [Gate] is within [Record]
	Tries      []Try         // the failed ones and the pauses, in order
	Paused     time.Duration // time in Tries that was waiting, which stops the episode's clock
}

// PriceReported is the PriceVersion of a cost that the provider itself
// reported.
const PriceReported = "reported"

// SentArguments is what a provider gets back of a call that the model made:
// the arguments as sampled where they are JSON. Many servers refuse a history
// with others: they get what was made of them, or {} for none, or the text as
// a JSON string.
func SentArguments(c *dataset.ToolCall) string {
	switch {
	case json.Valid([]byte(c.Arguments)):
		return c.Arguments
	case c.Coerced != "" && json.Valid([]byte(c.Coerced)):
		return c.Coerced
	case strings.TrimSpace(c.Arguments) == "":
		return "{}"
	}
	text, _ := json.Marshal(c.Arguments) // a string always encodes
	return string(text)
}

// Try is a failed try or a pause within a model call.
type Try struct {
	Kind       string // dataset.SpanRetry or dataset.SpanLimiter
	Start      time.Time
	Duration   time.Duration
	ErrorClass string // of a failed try
	Status     int    // HTTP status, 0 if there was none
	RequestID  string
}

// Error classes: why a call failed. The row keeps them in error_class.
const (
	ClassAuth            = "auth"             // 401, 403
	ClassBilling         = "billing"          // 402, quota
	ClassRateLimit       = "rate_limit"       // 429
	ClassOverloaded      = "overloaded"       // 503, 529
	ClassServer          = "server_error"     // other 5xx
	ClassTimeout         = "timeout"          // no answer in time, or a silent connection
	ClassConnection      = "connection"       // refused, reset, name not found
	ClassBadResponse     = "bad_response"     // malformed or cut body, no choices
	ClassModelNotFound   = "model_not_found"  // 404, or a 400 that says so
	ClassContextOverflow = "context_overflow" // the prompt does not fit
	ClassFormat          = "format_error"     // other 4xx: the request itself is refused
	ClassCancelled       = "cancelled"        // by us
	ClassRunBudget       = "run_budget"       // the run's budget is used up; nothing was sent
	ClassTask            = "task"             // the task is at fault: a replay has no answer for it
	ClassUnknown         = "unknown"
)

// Error is a failed try. Retryable tells the retry wrapper to go on; Fatal
// tells the runner that no call can succeed until somebody changes the setup
// (auth, unknown model), so that the run stops instead of failing each episode.
type Error struct {
	Class      string
	Status     int           // HTTP status, 0 if there was none
	RetryAfter time.Duration // as the server asked, 0 if it did not
	Retryable  bool
	Fatal      bool
	// Sent tells that the request may have reached the model, and no answer
	// said that it was refused: it may have been paid for.
	Sent bool
	// Endpoint is where the try failed, where a model has several, and
	// Elsewhere that another one can take the call at once.
	Endpoint  string
	Elsewhere bool
	Err       error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP %d): %v", e.Class, e.Status, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Class, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ClassOf is the class of a failed call, "" for nil.
func ClassOf(err error) string {
	if err == nil {
		return ""
	}
	if e := new(Error); errors.As(err, &e) {
		return e.Class
	}
	switch {
	case errors.Is(err, dataset.ErrRunBudget):
		return ClassRunBudget
	case errors.Is(err, dataset.ErrTask):
		return ClassTask
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, dataset.ErrInterrupted), errors.Is(err, dataset.ErrEpisodeTime):
		return ClassCancelled
	}
	return ClassUnknown
}

// Wrapper is a Model around a Model.
type Wrapper interface{ Unwrap() Model }

// As finds the first Model of type T in a stack, from the outside in.
func As[T any](m Model) (T, bool) {
	for m != nil {
		if t, ok := m.(T); ok {
			return t, true
		}
		w, ok := m.(Wrapper)
		if !ok {
			break
		}
		m = w.Unwrap()
	}
	var zero T
	return zero, false
}
