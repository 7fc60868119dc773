//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

const (
	crashEpisodes = 2000
	crashKills    = 25
	crashInFlight = 24
	crashCalls    = 3 // of each episode
)

// TestKillNine kills a run 25 times with SIGKILL, each time after 1 to 80 more
// acknowledgements, and compares what it recorded with the lab's ledger: no
// episode is lost, none is bought twice, nothing paid for is forgotten.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it takes half a minute")
	}
	l := newLab(t, lab.Script{Turns: crashCalls - 1, LatencyMinMS: 30, LatencyMaxMS: 120})
	config := labConfig(t, l.base, crashEpisodes,
		fmt.Sprintf("limits: {concurrency: {episodes: %d, requests: %[1]d}}\n", crashInFlight))
	dir := filepath.Join(t.TempDir(), "run")
	random := rand.New(rand.NewPCG(1, 2))

	acknowledged := map[string]int{} // episode to the ledger's length when it was seen recorded
	for range crashKills {
		more := 1 + random.IntN(80)
		// However late the kill comes, the run has not come to its end by then.
		l.admit(crashCalls * (more + crashInFlight))
		killAfter(t, config, dir, more)
		before := len(l.settled(t))
		for _, id := range ended(t, dir) {
			if _, seen := acknowledged[id]; !seen {
				acknowledged[id] = before
			}
		}
	}
	if len(acknowledged) == 0 || len(acknowledged) == crashEpisodes {
		t.Fatalf("%d episodes had ended before the last kill: the kills came too early or too late to show anything", len(acknowledged))
	}
	l.open()
	if _, errs, code := talaria(t, "run", config, "--resume", "--out", dir, "--quiet", "--concurrency", "200"); code != 0 {
		t.Fatalf("the last resume: exit code %d: %s", code, errs)
	}

	checkEpisodes(t, dir)
	ledger := l.settled(t)
	for _, e := range ledger {
		if at, ok := acknowledged[episodeOf(e)]; ok && int(e.Seq) >= at+firstSeq(ledger) {
			t.Errorf("request %s came after its episode was acknowledged", e.CallID)
		}
	}
	checkBooks(t, dir, ledger)
}

// killAfter runs until so many more episodes have ended, then kills.
func killAfter(t *testing.T, config, dir string, more int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "talaria", "run", config, "--resume", "--out", dir, "--quiet")
	target := 0
	if isRun(dir) {
		target = len(ended(t, dir))
	}
	target += more
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1) // the process's end, once
	go func() { exited <- cmd.Wait() }()
	for !isRun(dir) || len(ended(t, dir)) < target {
		select {
		case err := <-exited:
			t.Fatalf("the run ended before it was killed: %v", err)
		case <-time.After(2 * time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-exited; err == nil {
		t.Fatal("the run ended by itself")
	}
}

// ended lists the episodes whose end is recorded, as any reader sees them.
func ended(t *testing.T, dir string) []string {
	t.Helper()
	view, err := store.OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for row, err := range view.Attempts() {
		if err != nil {
			t.Fatal(err)
		}
		if row.Outcome == string(dataset.OutcomeModel) {
			ids = append(ids, row.EpisodeID)
		}
	}
	return ids
}

func firstSeq(ledger []lab.Entry) int {
	if len(ledger) == 0 {
		return 0
	}
	return int(ledger[0].Seq)
}

// checkEpisodes wants every episode to have ended exactly once.
func checkEpisodes(t *testing.T, dir string) {
	t.Helper()
	type count struct{ Episodes, Ended, Rows, Keys int }
	got := askOne[count](t, dir, `SELECT count(DISTINCT episode_id) AS episodes,
		count(*) FILTER (outcome = 'model') AS ended, count(*) AS rows,
		count(DISTINCT (episode_id, attempt)) AS keys FROM all_attempts`)
	want := count{Episodes: crashEpisodes, Ended: crashEpisodes, Rows: got.Rows, Keys: got.Rows}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// checkBooks wants the ledger, without the calls whose answer never came, to
// equal the tokens in all rows, and those calls to be counted.
func checkBooks(t *testing.T, dir string, ledger []lab.Entry) {
	t.Helper()
	type call struct {
		CallID string `json:"call_id"`
		Tokens *int64 `json:"tokens"`
	}
	answered := map[string]bool{}
	unanswered := 0
	for _, c := range ask[call](t, dir, `SELECT call_id,
		input_tokens + cache_read_tokens + cache_write_tokens + output_tokens AS tokens
		FROM all_spans WHERE kind = 'model'`) {
		if c.Tokens == nil {
			unanswered++
			continue
		}
		answered[c.CallID] = true
	}
	var want int64
	for _, e := range ledger {
		if answered[e.CallID] && e.Usage != nil {
			want += e.Usage.TotalTokens
		}
	}
	type books struct{ Tokens, Unreported int64 }
	got := askOne[books](t, dir, `SELECT
		sum(input_tokens + cache_read_tokens + cache_write_tokens + output_tokens)::BIGINT AS tokens,
		sum(unreported_calls)::BIGINT AS unreported FROM all_attempts`)
	if diff := cmp.Diff(books{want, int64(unanswered)}, got); diff != "" {
		t.Errorf("books (-ledger +rows):\n%s", diff)
	}
	if unanswered == 0 {
		t.Error("no call was cut off by 25 kills: the test shows nothing")
	}
}
