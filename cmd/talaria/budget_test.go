package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// spentIn is what a lab would bill: its tokens, and their cost at the prices of
// labConfig in nano-dollars.
func spentIn(ledger []lab.Entry) (tokens, cost int64) {
	for _, e := range ledger {
		if e.Usage == nil {
			continue
		}
		cached := e.Usage.PromptTokensDetails.CachedTokens
		tokens += e.Usage.TotalTokens
		cost += 1000*(e.Usage.PromptTokens-cached) + 100*cached + 3000*e.Usage.CompletionTokens
	}
	return tokens, cost
}

// TestRunBudgets ends runs early: never above the limit, with code 4, and with
// every episode left for a resume under a higher one.
func TestRunBudgets(t *testing.T) {
	t.Parallel()
	const episodes = 40
	tests := []struct {
		name, key, limit, more string
		answers                int // how many requests are answered before the limit is raised; 0: all
		over                   func(tokens, cost int64) bool
	}{{
		name: "cost", key: "cost_usd", limit: "0.02", more: "5",
		over: func(_, cost int64) bool { return cost > 20_000_000 },
	}, {
		name: "tokens", key: "tokens", limit: "20000", more: "5000000",
		over: func(tokens, _ int64) bool { return tokens > 20_000 },
	}, {
		// However slow the machine is, some episodes end by then and most do not.
		name: "time", key: "time", limit: "5s", more: "0", answers: 30,
		over: func(int64, int64) bool { return false },
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, lab.Script{Turns: 2})
			if test.answers > 0 {
				l.hold(beyond(test.answers))
			}
			config := labConfig(t, l.base, episodes, "limits: {concurrency: {episodes: 4}}\n")
			dir := filepath.Join(t.TempDir(), "run")
			key := "limits.run." + test.key
			_, stderr := mustExit(t, 4, "run", config, "--out", dir,
				"--set", "agent.sampling.max_tokens=200", "--set", key+"="+test.limit)
			wantTexts(t, stderr, fmt.Sprintf("the run's budget of %s is used up: raise %s and go on with 'talaria resume %s --set %s=...'",
				test.name, key, dir, key))
			tokens, cost := spentIn(l.Ledger())
			if test.over(tokens, cost) || tokens == 0 {
				t.Errorf("%d tokens and %d nano-dollars were spent", tokens, cost)
			}
			wantStopped(t, dir, episodes, tokens, cost)

			l.open()
			requests := len(l.Ledger())
			mustExit(t, 4, "resume", dir)
			if tokens, cost := spentIn(l.Ledger()); test.over(tokens, cost) {
				t.Errorf("%d tokens and %d nano-dollars were spent after a resume under the same limit", tokens, cost)
			}
			if n := len(l.Ledger()) - requests; test.name == "time" && n > 4 { // each worker may have begun
				t.Errorf("%d requests after the run's time was over", n)
			}
			mustExit(t, 0, "resume", dir, "--set", key+"="+test.more, "--set", "limits.concurrency.episodes=40")
			rows := recorded(t, dir)
			if n := outcomesOf(rows)[dataset.OutcomeModel]; n != episodes {
				t.Errorf("%d episodes ended, want %d", n, episodes)
			}
			wantBooks(t, rows, l.Ledger())
		})
	}
}

// wantStopped wants a run of which some episodes are left and whose rows hold
// all that was spent.
func wantStopped(t *testing.T, dir string, episodes int, tokens, cost int64) {
	t.Helper()
	if state := runOf(t, dir).State; state != store.StateStopped {
		t.Errorf("state %q, want %q", state, store.StateStopped)
	}
	rows := recorded(t, dir)
	ended := outcomesOf(rows)
	if n := ended[dataset.OutcomeModel]; n == 0 || n >= episodes || ended[dataset.OutcomeInfra]+ended[dataset.OutcomeTask] > 0 {
		t.Errorf("attempts by outcome %v: want some episodes done and some left", ended)
	}
	for _, row := range rows {
		if row.Outcome == string(dataset.OutcomeBudget) && (row.ExitReason != string(dataset.ExitRunBudget) || row.Reward != nil) {
			t.Errorf("exit reason %s, reward %v", row.ExitReason, row.Reward)
		}
	}
	if gotTokens, gotCost := spentOf(rows); gotTokens != tokens || gotCost != cost {
		t.Errorf("rows hold %d tokens and %d nano-dollars, the ledger %d and %d", gotTokens, gotCost, tokens, cost)
	}
}

func spentOf(rows []store.AttemptRow) (tokens, cost int64) {
	for i := range rows {
		tokens += rows[i].InputTokens + rows[i].CacheReadTokens + rows[i].CacheWriteTokens + rows[i].OutputTokens
		cost += rows[i].CostKnownNanoUSD
	}
	return tokens, cost
}

// wantBooks wants the rows to hold what the ledger bills.
func wantBooks(t *testing.T, rows []store.AttemptRow, ledger []lab.Entry) {
	t.Helper()
	type books struct{ Tokens, Cost int64 }
	var want, got books
	want.Tokens, want.Cost = spentIn(ledger)
	got.Tokens, got.Cost = spentOf(rows)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("books (-ledger +rows):\n%s", diff)
	}
}

// TestCostNeedsBounds: what a call can cost at most must be known, or a limit
// on cost is no limit.
func TestCostNeedsBounds(t *testing.T) {
	t.Parallel()
	config := labConfig(t, "http://127.0.0.1:1/v1", 1, "limits: {run: {cost_usd: 1}}\n")
	_, stderr := mustExit(t, 2, "run", config)
	wantTexts(t, stderr, "limits.run.cost_usd: a cost budget needs to know how much one reply can cost; set agent.sampling.max_tokens")
	_, stderr = mustExit(t, 2, "run", config, "-m", "openai/unpriced", "--set", "agent.sampling.max_tokens=100")
	wantTexts(t, stderr, config+":10: limits.run.cost_usd: the price of openai/unpriced is not known",
		"name a file with its price under prices, or remove the limit")
}

// TestRunBudgetAfterKill kills a run with calls in flight, which may have been
// paid for: a resume counts them by what they may have used at most.
func TestRunBudgetAfterKill(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{LatencyMinMS: 60_000, LatencyMaxMS: 60_000})
	config := labConfig(t, l.base, 8, "limits: {concurrency: {episodes: 4}}\n")
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "run", config, "--out", dir, "--set", "agent.sampling.max_tokens=200")
	until(t, "four calls are in flight", func() bool { return len(l.Ledger()) == 4 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	l.renew(t, lab.Script{})
	st, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spent := runner.Spent(st.Index())
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if least := int64(4 * 200); spent.Tokens <= least || spent.NanoUSD <= 3000*least {
		t.Errorf("four calls may have used %+v, want more than their replies at most", spent)
	}
	for _, limit := range []string{
		fmt.Sprintf("limits.run.tokens=%d", spent.Tokens+300),
		fmt.Sprintf("limits.run.cost_usd=%g", float64(spent.NanoUSD)/1e9+0.0001),
	} {
		mustExit(t, 4, "resume", dir, "--set", limit)
	}
	if n := len(l.Ledger()); n != 0 {
		t.Errorf("%d requests though what was in flight may have used the budget up", n)
	}
	mustExit(t, 0, "resume", dir, "--set", fmt.Sprintf("limits.run.tokens=%d", 100*spent.Tokens), "--set", "limits.run.cost_usd=9")
}
