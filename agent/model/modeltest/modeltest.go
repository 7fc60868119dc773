// Package modeltest is the conformance suite that every provider of package
// model passes against the lab.
//
//	func TestConformance(t *testing.T) {
//		modeltest.Run(t, lab.ServerOpenAI, func(url string) model.Model { ... })
//	}
package modeltest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
)

// The model and the key that the lab of the suite knows.
const (
	ModelName = "lab-small"
	APIKey    = "sk-lab-0123456789abcdef"
)

// Run checks the provider that open makes: a model [ModelName] with [APIKey]
// of the server at url, which ends in /v1. The lab there has the ways of server,
// see [lab.Script]. The provider does one try per Generate, and waits for an
// answer longer than the suite lets it.
func Run(t *testing.T, server string, open func(url string) model.Model) {
	t.Helper()
	s := suite{server: server, open: open}
	for _, c := range []struct {
		name string
		test func(suite, *testing.T)
	}{
		{"reply", suite.testReply},
		{"tools", suite.testTools},
		{"broken arguments", suite.testBrokenArguments},
		{"length", suite.testLength},
		{"errors", suite.testErrors},
		{"slow", suite.testSlow},
		{"prompt too long", suite.testTooLong},
		{"no usage", suite.testNoUsage},
		{"wrong key", suite.testWrongKey},
		{"unknown model", suite.testUnknownModel},
		{"cancelled", suite.testCancelled},
		{"cancelled before", suite.testCancelledBefore},
		{"concurrent", suite.testConcurrent},
		{"request", suite.testRequest},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(s, t) })
	}
}

// suite is the checks of one provider.
type suite struct {
	server string
	open   func(url string) model.Model
}

func (s suite) serve(t *testing.T, script lab.Script) (l *lab.Server, url string) {
	t.Helper()
	script.Server = s.server
	return Serve(t, script)
}

// Serve starts a lab that knows the suite's model and key on loopback. The
// test's end closes it.
func Serve(t *testing.T, s lab.Script) (l *lab.Server, url string) {
	t.Helper()
	s.Models, s.APIKey = append(s.Models, ModelName), APIKey
	l, err := lab.New(s)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	t.Cleanup(l.Close) // before srv.Close, which waits for what hangs
	return l, srv.URL + "/v1"
}

// Calculator is a tool to offer: the one that the lab calls.
func Calculator() model.ToolSpec {
	return model.ToolSpec{
		Name: "calculator", Description: "Evaluates an arithmetic expression.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`),
	}
}

// Ask is a request with a system prompt and a question.
func Ask(callID string, tools ...model.ToolSpec) model.Request {
	return model.Request{
		Messages: []dataset.Message{
			{Role: dataset.System, Content: "You are a \"careful\" clerk.\nAnswer briefly – in français, 日本語 or 🙂."},
			{Role: dataset.User, Content: "What is 17 + 25?\t<b>&amp;</b>"},
		},
		Tools: tools, CallID: callID, Agent: dataset.AgentPolicy,
	}
}

// closeIdle closes what a provider keeps open, if it says how.
func closeIdle(t *testing.T, m model.Model) model.Model {
	t.Helper()
	if c, ok := model.As[interface{ CloseIdleConnections() }](m); ok {
		t.Cleanup(c.CloseIdleConnections)
	}
	return m
}

func generate(t *testing.T, m model.Model, req model.Request) model.Response {
	t.Helper()
	resp, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatalf("call %s: %v", req.CallID, err)
	}
	return resp
}

// compare wants a response to be what the ledger's entry says.
func (s suite) compare(t *testing.T, e lab.Entry, got model.Response) {
	t.Helper()
	want := dataset.Message{Role: dataset.Assistant, Content: e.Answer, Reasoning: e.Reasoning, FinishReason: e.FinishReason}
	for _, c := range e.ToolCalls {
		if s.server == lab.ServerOllama { // arguments are an object there, and the lab writes it without spaces
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(c.Arguments)); err == nil {
				c.Arguments = compact.String()
			}
		}
		want.ToolCalls = append(want.ToolCalls, dataset.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	if s.server == lab.ServerOpenRouter && e.Reasoning != "" {
		if !json.Valid([]byte(got.Message.ReasoningSignature)) {
			t.Errorf("call %s: reasoning_details %q were not kept", e.CallID, got.Message.ReasoningSignature)
		}
		want.ReasoningSignature = got.Message.ReasoningSignature
	}
	if diff := gocmp.Diff(want, got.Message); diff != "" {
		t.Errorf("call %s: message (-ledger +got):\n%s", e.CallID, diff)
	}
	if diff := gocmp.Diff(s.billed(e), got.Usage); diff != "" {
		t.Errorf("call %s: usage (-ledger +got):\n%s", e.CallID, diff)
	}
	if cost := got.CostNanoUSD; (cost != nil) != (e.CostNanoUSD != 0) || cost != nil && *cost != e.CostNanoUSD {
		t.Errorf("call %s: cost %v, want %d", e.CallID, cost, e.CostNanoUSD)
	}
	if got.ModelServed != e.Model || got.RequestID != e.RequestID {
		t.Errorf("call %s: served by %q as %q, want %q as %q", e.CallID, got.ModelServed, got.RequestID, e.Model, e.RequestID)
	}
}

// billed is an entry's usage in four disjoint counters, as far as the server's
// protocol tells them apart.
func (s suite) billed(e lab.Entry) *dataset.Usage {
	u := e.Usage
	if u == nil {
		return nil
	}
	if s.server == lab.ServerOllama {
		return &dataset.Usage{Input: u.PromptTokens, Output: u.CompletionTokens}
	}
	cached := u.PromptTokensDetails.CachedTokens
	return &dataset.Usage{
		Input: u.PromptTokens - cached, CacheRead: cached, Output: u.CompletionTokens,
		Reasoning: &u.CompletionTokensDetails.ReasoningTokens,
	}
}

func (s suite) testReply(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{Seed: 1, ReasoningBytes: 60})
	got := generate(t, closeIdle(t, s.open(url)), Ask("e-0-0"))
	entries := l.Ledger()
	if len(entries) != 1 {
		t.Fatalf("%d requests, want 1", len(entries))
	}
	s.compare(t, entries[0], got)
	if entries[0].CallID != "e-0-0" {
		t.Errorf("call id %q arrived", entries[0].CallID)
	}
	if got.Unreported != 0 || got.Fingerprint == "" && s.server != lab.ServerOllama {
		t.Errorf("unreported %d, fingerprint %q", got.Unreported, got.Fingerprint)
	}
}

func (s suite) testTools(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{Seed: 2, Turns: 2, Answer: "It is {a}."})
	m := closeIdle(t, s.open(url))
	req := Ask("", Calculator())
	for turn := range 3 {
		req.CallID = "e-0-" + strconv.Itoa(turn)
		got := generate(t, m, req)
		s.compare(t, l.Ledger()[turn], got)
		if want := min(1, 2-turn); len(got.Message.ToolCalls) != want {
			t.Fatalf("turn %d: %d tool calls, want %d", turn, len(got.Message.ToolCalls), want)
		}
		req.Messages = append(req.Messages, got.Message)
		for _, c := range got.Message.ToolCalls {
			req.Messages = append(req.Messages, dataset.Message{Role: dataset.ToolRole, Content: "42", ToolCallID: c.ID, ToolName: c.Name})
		}
	}
}

// testBrokenArguments wants arguments that are no JSON as they came, and the
// history with them accepted.
func (s suite) testBrokenArguments(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{Turns: 1, Faults: []lab.Fault{{Kind: lab.FaultArguments, Rate: 1}}})
	m := closeIdle(t, s.open(url))
	req := Ask("e-0-0", Calculator())
	got := generate(t, m, req)
	if s.server != lab.ServerOllama { // where there is no text to break
		s.compare(t, l.Ledger()[0], got)
	}
	call := got.Message.ToolCalls[0]
	for i, arguments := range []string{call.Arguments, "", "not JSON \"", "\n"} {
		got.Message.ToolCalls[0].Arguments = arguments
		next := req
		next.CallID = "e-0-" + strconv.Itoa(i+1)
		next.Messages = append(slices.Clone(req.Messages), got.Message,
			dataset.Message{Role: dataset.ToolRole, Content: "no", ToolCallID: call.ID, ToolName: call.Name})
		generate(t, m, next)
		if kept := got.Message.ToolCalls[0].Arguments; kept != arguments {
			t.Errorf("the arguments %q were changed to %q", arguments, kept)
		}
	}
}

// testSlow wants an answer that comes in pieces to be read, and one that stalls
// to end with the caller.
func (s suite) testSlow(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{Faults: []lab.Fault{{Kind: lab.FaultDrip, Rate: 1, PauseMS: 1}, {Kind: lab.FaultStall, Rate: 1}}})
	m := closeIdle(t, s.open(url))
	got := generate(t, m, Ask("e-0-0"))
	s.compare(t, l.Ledger()[0], got)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, dataset.ErrEpisodeTime)
	defer cancel()
	resp, err := m.Generate(ctx, Ask("e-0-0"))
	if !errors.Is(err, dataset.ErrEpisodeTime) || resp.Unreported != 1 {
		t.Errorf("error %v, unreported %d", err, resp.Unreported)
	}
}

// testTooLong wants a prompt that does not fit to be told, not cut.
func (s suite) testTooLong(t *testing.T) {
	t.Helper()
	_, url := s.serve(t, lab.Script{ContextTokens: 20})
	_, err := closeIdle(t, s.open(url)).Generate(t.Context(), Ask("e-0-0"))
	if e := wantError(t, err); e.Class != model.ClassContextOverflow || e.Retryable || e.Fatal || e.Sent {
		t.Errorf("error %+v", e)
	}
}

func (s suite) testLength(t *testing.T) {
	t.Helper()
	_, url := s.serve(t, lab.Script{ReplyBytes: 400})
	req, limit := Ask("e-0-0"), 5
	req.Sampling.MaxTokens = &limit
	got := generate(t, closeIdle(t, s.open(url)), req)
	if got.Message.FinishReason != model.FinishLength || got.Usage == nil || got.Usage.Output != 5 {
		t.Errorf("finish reason %q, usage %+v", got.Message.FinishReason, got.Usage)
	}
}

func (s suite) testErrors(t *testing.T) {
	t.Helper()
	tests := []struct {
		name  string
		fault lab.Fault
		want  model.Error
		paid  bool // usage came with the error
	}{
		{"400", lab.Fault{Status: 400}, model.Error{Class: model.ClassFormat, Status: 400}, false},
		{"402", lab.Fault{Status: 402}, model.Error{Class: model.ClassBilling, Status: 402, Fatal: true}, false},
		{"408", lab.Fault{Status: 408}, model.Error{Class: model.ClassTimeout, Status: 408, Retryable: true}, false},
		{"429", lab.Fault{Status: 429, RetryAfter: 7}, model.Error{Class: model.ClassRateLimit, Status: 429, Retryable: true, RetryAfter: 7 * time.Second}, false},
		{"500", lab.Fault{Status: 500}, model.Error{Class: model.ClassServer, Status: 500, Retryable: true}, false},
		{"503", lab.Fault{Status: 503, RetryAfter: 1}, model.Error{Class: model.ClassOverloaded, Status: 503, Retryable: true, RetryAfter: time.Second}, false},
		{"529", lab.Fault{Status: 529}, model.Error{Class: model.ClassOverloaded, Status: 529, Retryable: true}, false},
		{"cut", lab.Fault{Kind: lab.FaultCut}, model.Error{Class: model.ClassBadResponse, Retryable: true, Sent: true}, false},
		{"reset", lab.Fault{Kind: lab.FaultReset}, model.Error{Class: model.ClassConnection, Retryable: true, Sent: true}, false},
		{"malformed", lab.Fault{Kind: lab.FaultMalformed}, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, false},
		{"empty choices", lab.Fault{Kind: lab.FaultEmptyChoices}, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { s.testFault(t, tt.fault, tt.want, tt.paid) })
	}
}

// testFault wants a fault to end a try with an error, and the next one to pass.
func (s suite) testFault(t *testing.T, fault lab.Fault, want model.Error, paid bool) {
	t.Helper()
	fault.Kind, fault.Rate = cmp.Or(fault.Kind, lab.FaultStatus), 1
	l, url := s.serve(t, lab.Script{Faults: []lab.Fault{fault}})
	m := closeIdle(t, s.open(url))
	resp, err := m.Generate(t.Context(), Ask("e-0-0"))
	e := wantError(t, err)
	e.Err = nil
	if diff := gocmp.Diff(&want, e); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	var usage *dataset.Usage
	if paid {
		usage = s.billed(l.Ledger()[0])
	}
	if diff := gocmp.Diff(usage, resp.Usage); diff != "" {
		t.Errorf("usage (-ledger +got):\n%s", diff)
	}
	if lost := want.Sent && !paid; (resp.Unreported == 1) != lost {
		t.Errorf("unreported %d", resp.Unreported)
	}
	next := generate(t, m, Ask("e-0-0")) // the fault strikes once
	s.compare(t, l.Ledger()[1], next)
}

// wantError wants a *model.Error with a text fit for a row.
func wantError(t *testing.T, err error) *model.Error {
	t.Helper()
	e := new(model.Error)
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *model.Error", err)
	}
	if text := err.Error(); strings.Contains(text, APIKey) || strings.ContainsAny(text, "\r\n") || len(text) > 600 {
		t.Errorf("error text: %q", text)
	}
	return e
}

func (s suite) testNoUsage(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{Faults: []lab.Fault{{Kind: lab.FaultNoUsage, Rate: 1}}})
	got := generate(t, closeIdle(t, s.open(url)), Ask("e-0-0"))
	if got.Usage != nil || got.Unreported != 1 || got.CostNanoUSD != nil {
		t.Errorf("usage %+v, unreported %d, cost %v: want none, 1, none", got.Usage, got.Unreported, got.CostNanoUSD)
	}
	if want := l.Ledger()[0].Answer; got.Message.Content != want {
		t.Errorf("content %q, want %q", got.Message.Content, want)
	}
}

func (s suite) testWrongKey(t *testing.T) {
	t.Helper()
	// The lab says which key it got, as some servers do.
	l, err := lab.New(lab.Script{APIKey: "another"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	_, err = closeIdle(t, s.open(srv.URL+"/v1")).Generate(t.Context(), Ask("e-0-0"))
	if e := wantError(t, err); e.Class != model.ClassAuth || !e.Fatal || e.Retryable || e.Sent {
		t.Errorf("error %+v", e)
	}
}

func (s suite) testUnknownModel(t *testing.T) {
	t.Helper()
	l, err := lab.New(lab.Script{Models: []string{"another"}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	_, err = closeIdle(t, s.open(srv.URL+"/v1")).Generate(t.Context(), Ask("e-0-0"))
	if e := wantError(t, err); e.Class != model.ClassModelNotFound || !e.Fatal || e.Retryable || e.Sent {
		t.Errorf("error %+v", e)
	}
}

// testCancelled cancels a call whose request has arrived.
func (s suite) testCancelled(t *testing.T) {
	t.Helper()
	l, err := lab.New(lab.Script{Faults: []lab.Fault{{Kind: lab.FaultHang, Rate: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		l.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(l.Close)
	m := closeIdle(t, s.open(srv.URL+"/v1"))

	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(dataset.ErrInterrupted)
	}()
	resp, err := m.Generate(ctx, Ask("e-0-0"))
	if !errors.Is(err, dataset.ErrInterrupted) {
		t.Errorf("error %v: the cause of the context is not in its chain", err)
	}
	if e := wantError(t, err); e.Class != model.ClassCancelled || !e.Sent || e.Retryable || resp.Unreported != 1 {
		t.Errorf("error %+v, unreported %d", e, resp.Unreported)
	}
}

// testCancelledBefore wants nothing to leave when ctx is done already.
func (s suite) testCancelledBefore(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(dataset.ErrEpisodeTime)
	resp, err := closeIdle(t, s.open(url)).Generate(ctx, Ask("e-0-0"))
	if !errors.Is(err, dataset.ErrEpisodeTime) || model.ClassOf(err) != model.ClassCancelled {
		t.Errorf("error %v", err)
	}
	if resp.Unreported != 0 || len(l.Ledger()) != 0 {
		t.Errorf("unreported %d, %d requests arrived", resp.Unreported, len(l.Ledger()))
	}
}

// testConcurrent makes 64 calls at once, four times, and wants each to get its
// own answer.
func (s suite) testConcurrent(t *testing.T) {
	t.Helper()
	const together, rounds = 64, 4
	l, url := s.serve(t, lab.Script{Seed: 9, Turns: 1, ReasoningBytes: 10})
	m := closeIdle(t, s.open(url))
	got := make([]model.Response, together*rounds)
	errs := make([]error, together)
	var wg sync.WaitGroup
	for i := range together {
		wg.Go(func() {
			for round := range rounds {
				n := i*rounds + round
				resp, err := m.Generate(t.Context(), Ask("e"+strconv.Itoa(n)+"-0-0", Calculator()))
				got[n], errs[i] = resp, errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	entries := l.Ledger()
	if len(entries) != len(got) {
		t.Errorf("%d requests, want %d", len(entries), len(got))
	}
	for _, e := range entries {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(e.CallID, "e"), "-0-0"))
		if err != nil {
			t.Fatalf("call id %q arrived", e.CallID)
		}
		s.compare(t, e, got[n])
	}
}

// testRequest wants equal requests to be equal bytes, and a request to stay as
// it is.
func (s suite) testRequest(t *testing.T) {
	t.Helper()
	l, url := s.serve(t, lab.Script{})
	m := closeIdle(t, s.open(url))
	ask := func() model.Request {
		req := Ask("e-0-0", Calculator())
		half := 0.5
		req.Sampling = dataset.Sampling{Temperature: &half, TopP: &half, Extra: map[string]any{"stop": []string{"#"}, "seed": 7, "user": "u"}}
		req.Episode = &dataset.Episode{ID: "e", Seed: 5}
		return req
	}
	req := ask()
	generate(t, m, req)
	generate(t, m, req)
	if diff := gocmp.Diff(ask(), req); diff != "" {
		t.Errorf("the request was changed:\n%s", diff)
	}
	if entries := l.Ledger(); entries[0].RequestSHA256 != entries[1].RequestSHA256 {
		t.Error("two equal requests differ in bytes")
	}
}
