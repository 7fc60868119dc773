package main

import (
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// faulty is a lab at which everything goes wrong now and then.
func faulty() lab.Script {
	return lab.Script{
		Seed: 5, Turns: 2, ReasoningBytes: 60,
		Faults: []lab.Fault{
			{Kind: lab.FaultStatus, Status: 429, Rate: 0.1}, // with Retry-After: 0
			{Kind: lab.FaultStatus, Status: 429, RetryAfter: 1, Rate: 0.05},
			{Kind: lab.FaultStatus, Status: 500, Rate: 0.1},
			{Kind: lab.FaultCut, Rate: 0.1},
			{Kind: lab.FaultReset, Rate: 0.1},
			{Kind: lab.FaultMalformed, Rate: 0.1},
			{Kind: lab.FaultNoUsage, Rate: 0.1},
			{Kind: lab.FaultEmptyChoices, Rate: 0.1},
		},
	}
}

// Prices that leave something to round in every call, in nano-dollars per
// million tokens.
const (
	oddInput, oddRead, oddOutput = 333_333_333, 33_333_337, 1_234_567_891

	oddPrices = `{"version":"odd","models":{"openai":{"lab":{"input":333333333,"cache_read":33333337,"output":1234567891}}}}`
)

// call is all that is known of one model call: what the lab's ledger says, or
// what was recorded.
type call struct {
	Requests                 int // tries
	Input, CacheRead, Output *int64
	Cost                     *int64
	RequestID, Model         string
	Answer, Reasoning        string
	Finish                   string
	Tools                    []lab.ToolCall
}

// billed are the calls of a ledger as a client can know them: usage counts
// where the client could read it.
func billed(ledger []lab.Entry) (calls map[string]call, unreported map[string]int) {
	calls, unreported = map[string]call{}, map[string]int{}
	for _, e := range ledger {
		c := calls[e.CallID]
		c.Requests++
		switch e.Fault {
		case lab.FaultCut, lab.FaultReset, lab.FaultMalformed, lab.FaultNoUsage:
			unreported[episodeOf(e)]++
		case "", lab.FaultEmptyChoices:
			u := e.Usage
			cached := u.PromptTokensDetails.CachedTokens
			c.Input, c.CacheRead, c.Output = plus(c.Input, u.PromptTokens-cached), plus(c.CacheRead, cached), plus(c.Output, u.CompletionTokens)
		}
		if c.Input != nil {
			c.Cost = new(costOf(*c.Input, *c.CacheRead, *c.Output))
		}
		if e.Fault == "" || e.Fault == lab.FaultNoUsage {
			c.RequestID, c.Model, c.Answer, c.Reasoning, c.Finish, c.Tools = e.RequestID, e.Model, e.Answer, e.Reasoning, e.FinishReason, e.ToolCalls
		}
		calls[e.CallID] = c
	}
	return calls, unreported
}

func plus(sum *int64, n int64) *int64 {
	if sum != nil {
		n += *sum
	}
	return &n
}

// costOf rounds half up once, by other means than ours.
func costOf(input, read, output int64) int64 {
	sum := big.NewInt(500_000)
	for tokens, rate := range map[int64]int64{oddInput: input, oddRead: read, oddOutput: output} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(tokens), big.NewInt(rate)))
	}
	return sum.Div(sum, big.NewInt(1_000_000)).Int64()
}

// recordedCalls puts the calls together from spans, messages and tool calls.
func recordedCalls(t *testing.T, dir string) map[string]call {
	t.Helper()
	calls := map[string]call{}
	for _, row := range ask[struct {
		call
		CallID string `json:"call_id"`
	}](t, dir, `SELECT s.call_id, s.request_id AS RequestID, s.model_served AS Model,
			s.input_tokens AS Input, s.cache_read_tokens AS CacheRead, s.output_tokens AS Output, s.cost_nanousd AS Cost,
			m.content AS Answer, m.reasoning AS Reasoning, m.finish_reason AS Finish,
			1 + (SELECT count(*) FROM all_spans r WHERE r.kind = 'retry' AND r.call_id = s.call_id)::INT AS Requests
		FROM all_spans s LEFT JOIN all_messages m USING (episode_id, attempt, span_id)
		WHERE s.kind = 'model' AND (m.policy OR m.policy IS NULL)`) {
		if _, twice := calls[row.CallID]; twice {
			t.Errorf("call %s has two rows", row.CallID)
		}
		calls[row.CallID] = row.call
	}
	for _, row := range ask[struct {
		lab.ToolCall
		CallID string `json:"call_id"`
	}](t, dir, `SELECT s.call_id, c.id, c.name, c.arguments
		FROM all_tool_calls c JOIN all_messages m USING (episode_id, attempt, position)
		JOIN all_spans s ON s.episode_id = m.episode_id AND s.attempt = m.attempt AND s.span_id = m.span_id
		ORDER BY s.call_id, c.call_index`) {
		c := calls[row.CallID]
		c.Tools = append(c.Tools, row.ToolCall)
		calls[row.CallID] = c
	}
	return calls
}

// TestLedger compares what was recorded with the lab's own ledger, call by call
// and column by column, while everything goes wrong now and then.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := newLab(t, faulty())
	prices := filepath.Join(t.TempDir(), "prices.json")
	writeFile(t, prices, oddPrices)
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", labConfig(t, l.base, 24, ""), "--out", dir, "--set", "prices="+prices)

	ledger := l.Ledger()
	wantFaults(t, ledger)
	want, unreported := billed(ledger)
	got := recordedCalls(t, dir)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-ledger +rows):\n%s", diff)
	}
	if diff := cmp.Diff(booksOf(want, unreported, ledger), recordedBooks(t, dir)); diff != "" {
		t.Errorf("attempts (-ledger +rows):\n%s", diff)
	}
}

// wantFaults makes sure that the test shows what it is for.
func wantFaults(t *testing.T, ledger []lab.Entry) {
	t.Helper()
	seen := map[string]int{}
	for _, e := range ledger {
		seen[e.Fault]++
	}
	for _, f := range faulty().Faults {
		if seen[f.Kind] == 0 {
			t.Errorf("no request met the fault %s", f.Kind)
		}
	}
}

// attemptBooks is what an attempt's row says of its calls.
type attemptBooks struct {
	Episode                      string
	Requests                     int
	Input, Read, Write, Output   int64
	Reasoning                    *int64
	Known                        int64
	Cost                         *int64
	Unreported, Unpriced, Errors int
}

// booksOf adds a ledger's calls up, an attempt an episode.
func booksOf(calls map[string]call, unreported map[string]int, ledger []lab.Entry) []attemptBooks {
	books := map[string]*attemptBooks{}
	reasoning := map[string]*int64{}
	for _, e := range ledger {
		if e.Fault == "" || e.Fault == lab.FaultEmptyChoices {
			reasoning[episodeOf(e)] = plus(reasoning[episodeOf(e)], e.Usage.CompletionTokensDetails.ReasoningTokens)
		}
	}
	for id, c := range calls {
		episode := episodeOf(lab.Entry{CallID: id})
		b := books[episode]
		if b == nil {
			b = &attemptBooks{Episode: episode, Unreported: unreported[episode], Reasoning: reasoning[episode]}
			books[episode] = b
		}
		b.Requests++
		if c.Input == nil {
			continue
		}
		b.Input, b.Read, b.Output, b.Known = b.Input+*c.Input, b.Read+*c.CacheRead, b.Output+*c.Output, b.Known+*c.Cost
	}
	all := make([]attemptBooks, 0, len(books))
	for _, b := range books {
		if b.Unreported == 0 {
			b.Cost = &b.Known
		}
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b attemptBooks) int { return strings.Compare(a.Episode, b.Episode) })
	return all
}

func recordedBooks(t *testing.T, dir string) []attemptBooks {
	t.Helper()
	return ask[attemptBooks](t, dir, `SELECT episode_id AS episode, requests, input_tokens AS input, cache_read_tokens AS read,
		cache_write_tokens AS write, output_tokens AS output, reasoning_tokens AS reasoning, cost_known_nanousd AS known,
		cost_nanousd AS cost, unreported_calls AS unreported, unpriced_calls AS unpriced, attempt AS errors
		FROM all_attempts ORDER BY episode_id`)
}
