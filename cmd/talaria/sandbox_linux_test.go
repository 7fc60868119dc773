package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox/local"
)

const heldSandboxes = 50

// TestKillWithSandboxes kills a run while its 50 sandboxes are alive. After a
// resume none of them is left, every episode has ended once, and what the kill
// cut off is in the books.
func TestKillWithSandboxes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it starts a hundred sandboxes")
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skipf("no bubblewrap: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	config := filepath.Join(t.TempDir(), "hold.yaml")
	writeFile(t, config, `version: 1
tasks: {path: bundled:terminal, limit: 25}
env: {name: terminal}
agent: {model: scripted/null, simulate: {latency_min: 10m, latency_max: 10m}}
samples: 2
limits: {concurrency: {episodes: 50, sandboxes: 50}}
`)
	p := start(t, "run", config, "--out", dir, "--quiet")
	owner := p.cmd.Process.Pid
	until(t, "all sandboxes are alive", func() bool { return len(sandboxesOf(t, owner)) >= heldSandboxes })
	p.signal(t, os.Kill)
	p.wait(t)

	mustExit(t, 0, "resume", dir, "--quiet", "--set", "agent.simulate={latency_min: 0s, latency_max: 0s}")
	if left := sandboxesOf(t, owner); len(left) > 0 {
		t.Errorf("%d sandboxes are left, such as %+v", len(left), left[0])
	}
	type outcome struct {
		Outcome                                            string
		Attempts, Episodes, Unreported, Rewarded, Confined int
	}
	got := ask[outcome](t, dir, `SELECT outcome, count(*) AS attempts, count(DISTINCT episode_id) AS episodes,
		sum(unreported_calls)::INTEGER AS unreported, count(reward) AS rewarded,
		count(sandbox_backend) AS confined FROM all_attempts GROUP BY outcome ORDER BY outcome`)
	if len(got) != 2 || got[1].Attempts == 0 {
		t.Fatalf("no attempt was cut off within a model call: %+v", got)
	}
	n, cut := heldSandboxes, got[1].Attempts // some were still being set up, and had paid for nothing
	want := []outcome{
		{Outcome: "model", Attempts: n, Episodes: n, Rewarded: n, Confined: n},
		{Outcome: "operator", Attempts: cut, Episodes: cut, Unreported: cut},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// sandboxesOf lists the sandboxes that a process has or has left.
func sandboxesOf(t *testing.T, owner int) []local.Entry {
	t.Helper()
	out, _ := mustExit(t, 0, "sandbox", "list", "--format", "json")
	var all, own []local.Entry
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, e := range all {
		if e.Owner == owner {
			own = append(own, e)
		}
	}
	return own
}

// TestSandboxCeiling runs more episodes at once than there may be sandboxes: no
// two of them have one at the same time.
func TestSandboxCeiling(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skipf("no bubblewrap: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	config := filepath.Join(t.TempDir(), "ceiling.yaml")
	writeFile(t, config, `version: 1
tasks: {path: bundled:terminal, limit: 4}
env: {name: terminal}
agent: {model: scripted/oracle, toolsets: [terminal]}
limits: {concurrency: {episodes: 4, sandboxes: 1}}
`)
	mustExit(t, 0, "run", config, "--out", dir, "--quiet")
	type life struct{ Episodes, Overlaps int }
	got := ask[life](t, dir, `WITH life AS (
			SELECT a.episode_id, a.started_at + to_microseconds(s.start_us + s.duration_us) AS born,
				a.started_at + to_microseconds(e.start_us + e.duration_us) AS scored
			FROM all_attempts a JOIN spans s USING (episode_id, attempt) JOIN spans e USING (episode_id, attempt)
			WHERE s.kind = 'setup' AND e.span_id = 'score.env' AND a.reward = 1)
		SELECT (SELECT count(*) FROM life) AS episodes, count(*) AS overlaps
		FROM life x JOIN life y ON x.episode_id < y.episode_id AND x.born < y.scored AND y.born < x.scored`)
	if diff := cmp.Diff([]life{{Episodes: 4}}, got); diff != "" {
		t.Errorf("lives of sandboxes (-want +got):\n%s", diff)
	}
}
