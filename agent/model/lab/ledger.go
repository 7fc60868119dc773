package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Entry is the ledger's line about one request, in the order in which they
// came. Usage is what the request would be billed: nil where nothing was made.
type Entry struct {
	Seq           int64      `json:"seq"`
	Time          time.Time  `json:"time"` // of its arrival
	CallID        string     `json:"call_id"`
	Seen          int        `json:"seen"` // how often the call id had come before
	Model         string     `json:"model"`
	Fault         string     `json:"fault"` // "" for none
	Status        int        `json:"status"`
	RequestSHA256 string     `json:"request_sha256"`
	Messages      int        `json:"messages"`
	Usage         *Usage     `json:"usage"`
	CostNanoUSD   int64      `json:"cost_nano_usd,omitempty"` // as the answer names it, of a server that does
	Answer        string     `json:"answer"`
	Reasoning     string     `json:"reasoning,omitempty"`
	ToolCalls     []ToolCall `json:"tool_calls,omitempty"`
	FinishReason  string     `json:"finish_reason"`
	RequestID     string     `json:"request_id"`
	InFlight      bool       `json:"in_flight,omitempty"` // no answer has been written yet
	ClientGone    bool       `json:"client_gone"`         // when the answer had been written
}

// ToolCall is a call that the lab made.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Gauge is how busy the lab is.
type Gauge struct {
	InFlight    int   `json:"in_flight"` // requests whose answer has not begun
	MaxInFlight int   `json:"max_in_flight"`
	Open        int   `json:"open"`     // requests that have not ended
	Requests    int64 `json:"requests"` // that ended: their entries are final and in the log
	Calls       int   `json:"calls"`    // distinct call ids

	Capacity CapacityGauge `json:"capacity"`
}

// ledger counts and keeps the requests. Its zero value is ready to use.
type ledger struct {
	mu      sync.Mutex
	seen    map[string]int
	gauge   Gauge
	entries []*Entry  // by Seq-1
	log     io.Writer // nil: memory only
	logErr  error     // the first failure to write
}

// arrive numbers a request. The entry that it returns is the handler's own.
func (l *ledger) arrive() *Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gauge.Open++
	l.gauge.InFlight++
	l.gauge.MaxInFlight = max(l.gauge.MaxInFlight, l.gauge.InFlight)
	e := Entry{Seq: int64(len(l.entries)) + 1, Time: time.Now().UTC(), InFlight: true}
	kept := e
	l.entries = append(l.entries, &kept)
	return &e
}

// publish shows what is known of a request that is about to be answered.
func (l *ledger) publish(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(e)
}

// set replaces a request's entry by one that is no longer in flight. The
// caller holds mu.
func (l *ledger) set(e *Entry) {
	if e.InFlight {
		e.InFlight = false
		l.gauge.InFlight--
	}
	*l.entries[e.Seq-1] = *e
}

// see counts a call id and returns how often it had come before.
func (l *ledger) see(callID string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = make(map[string]int)
	}
	n := l.seen[callID]
	l.seen[callID]++
	return n
}

// leave books a request that has ended.
func (l *ledger) leave(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(e)
	l.gauge.Open--
	l.gauge.Requests++
	if l.log == nil || l.logErr != nil {
		return
	}
	if _, err := l.log.Write(append(encode(e), '\n')); err != nil {
		l.logErr = fmt.Errorf("writing the ledger: %w", err)
	}
}

// Ledger returns the entries so far, in order of arrival; those in flight say
// so.
func (s *Server) Ledger() []Entry {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	entries := make([]Entry, len(s.ledger.entries))
	for i, e := range s.ledger.entries {
		entries[i] = *e
	}
	return entries
}

// Gauge returns how busy the lab is.
func (s *Server) Gauge() Gauge {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	g := s.ledger.gauge
	g.Calls = len(s.ledger.seen)
	g.Capacity = s.slots.gauge()
	return g
}

// LogTo appends each entry to w as a line of JSON when its request has ended,
// in one Write each. It is called before the first request; the caller closes
// w after the server.
func (s *Server) LogTo(w io.Writer) { s.ledger.log = w }

// Err is the first failure to write the log, nil if there was none.
func (s *Server) Err() error {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.logErr
}

func (s *Server) serveLedger(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc := json.NewEncoder(w)
	for _, e := range s.Ledger() {
		if enc.Encode(e) != nil {
			return // the reader has gone
		}
	}
}

func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.Gauge())
}
