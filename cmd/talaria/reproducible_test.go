package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset/store"
)

// ofTimeAndRun are the columns in which two runs of one config may differ. All
// others, also those that a later release adds, are equal.
func ofTimeAndRun() map[string][]string {
	return map[string][]string{
		"attempts": {
			"run_id", "config_hash", // which also covers the concurrency
			"queued_ms", "setup_ms", "model_ms", "throttle_ms", "tool_ms", "score_ms", "working_ms", "total_ms",
			"started_at", "ended_at",
		},
		"tasks":      {"run_id"},
		"messages":   {"run_id", "created_at"},
		"tool_calls": {"run_id", "duration_ms"},
		"spans":      {"run_id", "start_us", "duration_us", "ttft_us"},
		"rewards":    {"run_id", "created_at"},
		"sequences":  {"run_id"},
	}
}

// TestConcurrencyChangesNothing runs a config one episode at a time and 64 at a
// time, with failing requests and attempts among them, and compares every row.
func TestConcurrencyChangesNothing(t *testing.T) {
	t.Parallel()
	script := lab.Script{
		Seed: 11, Turns: 2, ReasoningBytes: 40,
		Faults: []lab.Fault{
			{Kind: lab.FaultStatus, Rate: 0.08},
			{Kind: lab.FaultCut, Rate: 0.08},
			{Kind: lab.FaultNoUsage, Rate: 0.08},
			{Kind: lab.FaultEmptyChoices, Rate: 0.08},
			{Kind: lab.FaultReset, Rate: 0.08},
		},
	}
	l := newLab(t, script)
	config := labConfig(t, l.base, 4, "samples: 2\nlimits: {retries: {requests: 1, infra: 5}}\n"+
		"sweep: {agent.model: [openai/lab, scripted/random, scripted/loop]}\n")
	alone := filepath.Join(t.TempDir(), "alone")
	mustExit(t, 0, "run", config, "--out", alone, "--concurrency", "1")
	l.renew(t, script)
	together := filepath.Join(t.TempDir(), "together")
	mustExit(t, 0, "run", config, "--out", together, "--concurrency", "64")

	for _, table := range store.Tables() {
		want, got := rowsOf(t, alone, table), rowsOf(t, together, table)
		if len(want) == 0 && table != "sequences" {
			t.Errorf("%s has no rows: the test shows nothing", table)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-alone +together):\n%s", table, diff)
		}
	}
	if rows := recorded(t, alone); len(rows) <= 24 {
		t.Errorf("%d attempts at 24 episodes: none was tried again", len(rows))
	}
}

// rowsOf are the rows of a table without what is of time and run, sorted. A
// limiter's span is there only if something had to wait.
func rowsOf(t *testing.T, dir, table string) []map[string]any {
	t.Helper()
	excluded, listed := ofTimeAndRun()[table]
	if !listed {
		t.Fatalf("the table %s is new: say which of its columns are of time and run", table)
	}
	where := ""
	if table == "spans" {
		where = "WHERE kind <> 'limiter'"
	}
	return ask[map[string]any](t, dir, fmt.Sprintf("SELECT * EXCLUDE (%s) FROM all_%s %s ORDER BY ALL",
		strings.Join(excluded, ", "), table, where))
}
