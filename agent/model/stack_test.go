package model_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/agent/model/modeltest"
	"github.com/talaria-run/talaria/agent/model/openai"
	"github.com/talaria-run/talaria/dataset"
)

// lockedSink is a sink for several goroutines.
type lockedSink struct {
	mu    sync.Mutex
	lines map[string][]dataset.Call
}

func (s *lockedSink) Call(_ context.Context, c dataset.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[c.CallID] = append(s.lines[c.CallID], c)
	return nil
}

// told is what a client can know of a call from the lab's entries: the usage
// that arrived, and how often something made got lost on its way.
func told(entries []lab.Entry) (u *dataset.Usage, unreported, failed int) {
	for _, e := range entries {
		switch e.Fault {
		case lab.FaultStatus:
			failed++
			continue
		case lab.FaultCut, lab.FaultReset, lab.FaultMalformed:
			failed++
			unreported++
			continue
		case lab.FaultNoUsage:
			unreported++
			continue
		case lab.FaultEmptyChoices:
			failed++
		}
		if u == nil {
			u = new(dataset.Usage)
		}
		cached := e.Usage.PromptTokensDetails.CachedTokens
		u.Add(dataset.Usage{
			Input: e.Usage.PromptTokens - cached, CacheRead: cached, Output: e.Usage.CompletionTokens,
			Reasoning: &e.Usage.CompletionTokensDetails.ReasoningTokens,
		})
	}
	return u, unreported, failed
}

// TestBooks makes calls through the whole stack against a lab in which
// everything goes wrong, and holds what the responses and the call lines say
// against the lab's ledger, call by call.
func TestBooks(t *testing.T) {
	const calls, together = 400, 32
	l, url := modeltest.Serve(t, lab.Script{Seed: 5, ReasoningBytes: 30, Faults: []lab.Fault{
		{Kind: lab.FaultStatus, Status: 429, Rate: 0.3, Times: 2},
		{Kind: lab.FaultStatus, Status: 500, Rate: 0.2},
		{Kind: lab.FaultCut, Rate: 0.2},
		{Kind: lab.FaultReset, Rate: 0.2},
		{Kind: lab.FaultMalformed, Rate: 0.2},
		{Kind: lab.FaultEmptyChoices, Rate: 0.2, Times: 2},
		{Kind: lab.FaultNoUsage, Rate: 0.1},
		{Kind: lab.FaultStatus, Status: 400, Rate: 0.05},
	}})
	client, err := openai.New(openai.Options{Options: endpoint.Options{BaseURL: url, APIKey: modeltest.APIKey, Ceiling: 8}, Model: modeltest.ModelName})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	table := load(t, `{"version": "v", "models": {"p": {"m": {"input": 1000000, "cache_read": 1000000, "output": 2000000}}}}`)
	rates, _ := table.Rates("p", "m")
	var (
		mu    sync.Mutex
		spent budget
		sink  = lockedSink{lines: map[string][]dataset.Call{}}
		got   = make([]model.Response, calls)
		errs  = make([]error, calls)
	)
	m := model.Record(model.Price(model.Gate(model.Retry(model.Limit(client, model.NewLimiter(8, model.LimiterOptions{})),
		model.RetryOptions{Tries: 4, Base: time.Millisecond}), lockedBudget{&mu, &spent}, rates), table, "p", "m"), &sink)
	var wg sync.WaitGroup
	for i := range together {
		wg.Go(func() {
			for n := i; n < calls; n += together {
				got[n], errs[n] = m.Generate(t.Context(), modeltest.Ask("e-0-"+strconv.Itoa(n)))
			}
		})
	}
	wg.Wait()

	entries := map[string][]lab.Entry{}
	for _, e := range l.Ledger() {
		entries[e.CallID] = append(entries[e.CallID], e)
	}
	faults := map[string]int{}
	for n := range calls {
		id := "e-0-" + strconv.Itoa(n)
		for _, e := range entries[id] {
			faults[e.Fault]++
		}
		compareCall(t, entries[id], sink.lines[id], got[n], errs[n], rates)
	}
	for _, kind := range []string{"", lab.FaultStatus, lab.FaultCut, lab.FaultReset, lab.FaultMalformed, lab.FaultEmptyChoices, lab.FaultNoUsage} {
		if faults[kind] == 0 {
			t.Errorf("no request had fault %q: the comparison shows nothing of it", kind)
		}
	}
	if g := l.Gauge(); g.MaxInFlight > 8 {
		t.Errorf("%d requests at once, want 8 at most", g.MaxInFlight)
	}
	if len(spent.settled) != calls {
		t.Errorf("%d of %d reservations were given back", len(spent.settled), calls)
	}
}

// compareCall holds one call against the lab's entries.
func compareCall(t *testing.T, entries []lab.Entry, lines []dataset.Call, got model.Response, err error, rates model.Rates) {
	t.Helper()
	last := entries[len(entries)-1]
	usage, unreported, failed := told(entries)
	end := dataset.Call{CallID: last.CallID, Agent: dataset.AgentPolicy, Usage: usage, Unreported: unreported, ErrorClass: model.ClassOf(err)}
	asked := modeltest.Ask(last.CallID)
	end.Most = lines[0].Most
	if bytes := int64(len(asked.Messages[0].Content)); end.Most.Tokens <= bytes || end.Most.NanoUSD < end.Most.Tokens {
		t.Errorf("call %s may use %+v at most, for a prompt of more than %d bytes at 1 nano-dollar a token", last.CallID, end.Most, bytes)
	}
	if usage != nil {
		cost, _ := rates.Cost(*usage)
		end.CostNanoUSD = &cost
	}
	wantLines(t, lines, end)
	if tries := retries(got); tries != failed {
		t.Errorf("call %s: %d failed tries recorded, the lab has %d", last.CallID, tries, failed)
	}
	if answered := last.Fault == "" || last.Fault == lab.FaultNoUsage; answered != (err == nil) {
		t.Errorf("call %s: error %v, last fault %q", last.CallID, err, last.Fault)
	}
	if err == nil && got.Message.Content != last.Answer {
		t.Errorf("call %s: content %q, want %q", last.CallID, got.Message.Content, last.Answer)
	}
}

func retries(r model.Response) int {
	n := 0
	for _, try := range r.Tries {
		if try.Kind == dataset.SpanRetry {
			n++
		}
	}
	return n
}
