package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Script is what a lab does. The zero Script answers every call at once with a
// short text.
type Script struct {
	Seed   int64    `json:"seed"`
	Models []string `json:"models"`  // the models that it has, others are 404; empty: any
	APIKey string   `json:"api_key"` // the key that it wants, others are 401; empty: none

	// Server is whose ways the lab has where servers of one protocol differ;
	// default [ServerOpenAI].
	Server string `json:"server"`
	// NoTools is a server that was started without what calls of tools need.
	NoTools bool `json:"no_tools"`
	// ContextTokens is how long a prompt may be, 0: any length.
	ContextTokens int64 `json:"context_tokens"`

	// Each answer takes from LatencyMinMS to LatencyMaxMS milliseconds.
	LatencyMinMS int64 `json:"latency_min_ms"`
	LatencyMaxMS int64 `json:"latency_max_ms"`

	// Turns is how many replies call Tool before the final answer, where the
	// request offers it.
	Turns int  `json:"turns"`
	Tool  Tool `json:"tool"`
	// Answer is the template of the final answer; empty: the text of a reply.
	Answer string `json:"answer"`
	// ReplyBytes is the least length of the text of a reply; default 80.
	ReplyBytes int `json:"reply_bytes"`
	// ReasoningBytes is the least length of the reasoning of a reply, 0: none.
	ReasoningBytes int `json:"reasoning_bytes"`

	Faults   []Fault  `json:"faults"`
	Capacity Capacity `json:"capacity"`
}

// Tool is the tool that the lab calls. In Arguments, and in Answer, {a} and
// {b} stand for numbers of the call's own, {turn} for how many tool calls came
// before, {n} for the number of messages.
type Tool struct {
	Name      string `json:"name"`      // default "calculator"
	Arguments string `json:"arguments"` // default {"expression": "{a} + {b}"}
}

// Whose ways a lab has.
const (
	ServerOpenAI     = "openai"
	ServerVLLM       = "vllm"
	ServerSGLang     = "sglang"
	ServerLlamaCpp   = "llamacpp"
	ServerOpenRouter = "openrouter" // names the cost of a call
	ServerOllama     = "ollama"     // as openai; its own protocol is at /api whatever the server
)

// Servers lists whose ways a lab can have.
func Servers() []string {
	return []string{ServerOpenAI, ServerVLLM, ServerSGLang, ServerLlamaCpp, ServerOpenRouter, ServerOllama}
}

// Kinds of fault.
const (
	FaultStatus       = "status"        // an HTTP error, before anything is made: not paid for
	FaultHang         = "hang"          // no byte until the client leaves
	FaultCut          = "cut"           // half the answer, then the connection ends
	FaultReset        = "reset"         // the answer is made and the connection reset instead
	FaultMalformed    = "malformed"     // an answer that is not JSON
	FaultEmptyChoices = "empty_choices" // an answer without choices, with usage
	FaultNoUsage      = "no_usage"      // an answer without usage
	FaultStall        = "stall"         // the headers of an answer, then no byte until the client leaves
	FaultDrip         = "drip"          // an answer in twenty pieces, with a pause before each
	FaultArguments    = "arguments"     // an answer whose tool calls have arguments that are not JSON
)

// Faults lists the kinds of fault.
func Faults() []string {
	return []string{
		FaultStatus, FaultHang, FaultCut, FaultReset, FaultMalformed, FaultEmptyChoices, FaultNoUsage,
		FaultStall, FaultDrip, FaultArguments,
	}
}

// Fault is something that goes wrong for a share of the call ids, and then for
// the first Times requests of each.
type Fault struct {
	Kind       string  `json:"kind"`
	Status     int     `json:"status"`      // of FaultStatus; default 500
	RetryAfter int     `json:"retry_after"` // seconds, of FaultStatus; 0: none
	Rate       float64 `json:"rate"`        // share of the call ids, 0 to 1
	Times      int     `json:"times"`       // default 1
	PauseMS    int64   `json:"pause_ms"`    // of FaultDrip; default 50
}

// ReadScript reads a script from JSON; an unknown key is an error.
func ReadScript(r io.Reader) (Script, error) {
	var s Script
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("reading lab script: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return s, errors.New("reading lab script: more than one JSON value")
	}
	return s, s.validate()
}

func (s *Script) applyDefaults() {
	s.Server = cmp.Or(s.Server, ServerOpenAI)
	s.Tool.Name = cmp.Or(s.Tool.Name, "calculator")
	s.Tool.Arguments = cmp.Or(s.Tool.Arguments, `{"expression": "{a} + {b}"}`)
	s.ReplyBytes = cmp.Or(s.ReplyBytes, 80)
	s.LatencyMaxMS = max(s.LatencyMaxMS, s.LatencyMinMS)
	s.Capacity.applyDefaults()
	s.Faults = slices.Clone(s.Faults)
	for i := range s.Faults {
		s.Faults[i].Times = cmp.Or(s.Faults[i].Times, 1)
		s.Faults[i].Status = cmp.Or(s.Faults[i].Status, 500)
		s.Faults[i].PauseMS = cmp.Or(s.Faults[i].PauseMS, 50)
	}
}

// maxSize bounds each number of a script: a day in milliseconds, 82 MiB.
const maxSize = 24 * 60 * 60 * 1000

func (s *Script) validate() error {
	var errs []error
	for _, size := range []struct {
		name string
		n    int64
	}{
		{"latency_min_ms", s.LatencyMinMS},
		{"latency_max_ms", s.LatencyMaxMS},
		{"turns", int64(s.Turns)},
		{"reply_bytes", int64(s.ReplyBytes)},
		{"reasoning_bytes", int64(s.ReasoningBytes)},
		{"context_tokens", s.ContextTokens},
	} {
		if size.n < 0 || size.n > maxSize {
			errs = append(errs, fmt.Errorf("lab script: %s is %d: want 0 to %d", size.name, size.n, maxSize))
		}
	}
	if s.Server != "" && !slices.Contains(Servers(), s.Server) {
		errs = append(errs, fmt.Errorf("lab script: unknown server %q", s.Server))
	}
	for i, f := range s.Faults {
		if err := f.validate(); err != nil {
			errs = append(errs, fmt.Errorf("lab script: faults[%d]: %w", i, err))
		}
	}
	return errors.Join(append(errs, s.Capacity.validate())...)
}

func (f Fault) validate() error {
	if !slices.Contains(Faults(), f.Kind) {
		return fmt.Errorf("unknown kind %q", f.Kind)
	}
	switch {
	case f.Rate < 0 || f.Rate > 1:
		return fmt.Errorf("rate %v is not between 0 and 1", f.Rate)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status %d is not between 400 and 599", f.Status)
	case f.Times < 0 || f.RetryAfter < 0 || f.PauseMS < 0 || f.PauseMS > maxSize:
		return errors.New("times, retry_after and pause_ms are not negative, and no pause is longer than a day")
	}
	return nil
}
