//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset/store"
)

// quickstart is a small run of the quickstart: questions and terminal tasks,
// three models, two samples.
func quickstart() []string {
	return []string{"run", "bundled:quickstart", "--samples", "2", "--limit", "9", "--quiet"}
}

// shardsOf runs the shards of a plan and returns their directories.
func shardsOf(t *testing.T, n int, indices []int, args ...string) []string {
	t.Helper()
	root := t.TempDir()
	dirs := make([]string, len(indices))
	for i, index := range indices {
		dirs[i] = filepath.Join(root, fmt.Sprintf("shard-%d", index))
		mustExit(t, 0, slices.Concat(args, []string{"--shard", fmt.Sprintf("%d/%d", index, n), "--out", dirs[i]})...)
	}
	return dirs
}

// merged merges runs and returns the directory and what was printed.
func merged(t *testing.T, dirs []string, flags ...string) (dir, stdout string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "merged")
	stdout, _ = mustExit(t, 0, slices.Concat([]string{"merge", "--out", dir}, flags, dirs)...)
	if !strings.HasSuffix(stdout, "\n"+dir+"\n") {
		t.Errorf("the directory is not the last line of %s", stdout)
	}
	return dir, stdout
}

// wantSameRows wants two runs to differ only in columns of time and run.
func wantSameRows(t *testing.T, wantDir, gotDir string) {
	t.Helper()
	for _, table := range store.Tables() {
		want, got := rowsOf(t, wantDir, table), rowsOf(t, gotDir, table)
		if len(want) == 0 && table != "sequences" {
			t.Errorf("%s has no rows: the test shows nothing", table)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-whole +merged):\n%s", table, diff)
		}
	}
}

// TestEightShardsMerged splits the quickstart eight ways: the shards merged are
// the whole run, also where a shard was missing and a resume ran it.
func TestEightShardsMerged(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole")
	mustExit(t, 0, append(quickstart(), "--out", whole)...)
	shards := shardsOf(t, 8, []int{0, 1, 2, 3, 4, 5, 6, 7}, quickstart()...)
	dir, stdout := merged(t, shards)
	wantTexts(t, stdout, "quickstart: complete, 108 of 108 episodes")
	wantSameRows(t, whole, dir)
	for _, command := range [][]string{{"resume", dir, "--quiet"}, {"report", dir}, {"status", dir}} {
		mustExit(t, 0, command...)
	}
	episode := askOne[struct{ ID string }](t, dir, "SELECT episode_id AS id FROM episodes ORDER BY 1 LIMIT 1").ID
	mustExit(t, 0, "show", dir, episode)
	wantSameRows(t, whole, dir)

	rest, stdout := merged(t, slices.Delete(slices.Clone(shards), 3, 4))
	wantTexts(t, stdout, "quickstart: interrupted, ", "missing shards: 3/8\n", "'talaria resume "+rest+"' runs what is missing\n")
	mustExit(t, 0, "resume", rest, "--quiet")
	wantSameRows(t, whole, rest)
	again, stdout := merged(t, []string{rest, shards[0]})
	wantTexts(t, stdout, "in several runs, kept once")
	wantSameRows(t, whole, again)
}

// TestKilledShardMerged kills the process of a shard. Its run is merged as it
// lies, journal and calls in flight included, and after a resume.
func TestKilledShardMerged(t *testing.T) {
	t.Parallel()
	config := questions(t, 60)
	args := []string{
		"run", config, "--quiet", "--samples", "2", "--concurrency", "4",
		"--set", "agent.simulate={latency_min: 20ms, latency_max: 60ms}",
	}
	whole := filepath.Join(t.TempDir(), "whole")
	mustExit(t, 0, slices.Concat(args, []string{"--out", whole})...)
	shards := shardsOf(t, 2, []int{0}, args...)
	killed := filepath.Join(t.TempDir(), "killed")
	p := start(t, slices.Concat(args, []string{"--shard", "1/2", "--out", killed})...)
	until(t, "five episodes are recorded", func() bool { return isRun(killed) && len(ended(t, killed)) >= 5 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	before := contentOf(t, killed)
	lying, stdout := merged(t, append(shards, killed))
	wantTexts(t, stdout, "questions: interrupted, ", " of 120 episodes", "'talaria resume "+lying+"' runs what is missing")
	if diff := cmp.Diff(before, contentOf(t, killed)); diff != "" {
		t.Errorf("the killed run was changed (-before +after):\n%s", diff)
	}
	mustExit(t, 0, "resume", killed, "--quiet")
	resumed, stdout := merged(t, append(shards, killed))
	wantTexts(t, stdout, "questions: complete, 120 of 120 episodes")
	mustExit(t, 0, "resume", lying, "--quiet")
	for _, dir := range []string{lying, resumed} {
		rows := attemptsOf(t, dir)
		if diff := cmp.Diff(attemptsOf(t, whole), rows); diff != "" {
			t.Errorf("%s (-whole +merged):\n%s", dir, diff)
		}
	}
}

// attemptsOf are the current attempts without what differs between the first
// and a later one.
func attemptsOf(t *testing.T, dir string) []map[string]any {
	t.Helper()
	return ask[map[string]any](t, dir, "SELECT episode_id, task_id, group_id, variant, outcome, exit_reason, answer, reward, "+
		"turns, input_tokens, output_tokens FROM episodes ORDER BY ALL")
}

// contentOf is the content of every file of a run.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMergeRefusals tells what differs and leaves nothing.
func TestMergeRefusals(t *testing.T) {
	t.Parallel()
	config := questions(t, 4)
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	run := func(name string, flags ...string) {
		mustExit(t, 0, slices.Concat([]string{"run", config, "--quiet", "--out", at(name)}, flags)...)
	}
	run("a")
	run("again")
	run("seed", "--set", "seed=9")
	run("model", "-m", "scripted/random")
	other := questions(t, 5)
	mustExit(t, 0, "run", other, "--quiet", "--out", at("tasks"))
	l := newLab(t, lab.Script{LatencyMinMS: 60_000, LatencyMaxMS: 60_000})
	running := start(t, "run", labConfig(t, l.base, 1, ""), "--out", at("running"))
	running.says(t, "recording in ")

	tests := []struct {
		name string
		code int
		args []string
		want []string
	}{
		{"seed", 2, []string{at("a"), at("seed"), "--out", at("out")}, []string{"seed: 0 -> 9", "'talaria query " + at("a") + " " + at("seed") + "' looks at both"}},
		{"model", 2, []string{at("a"), at("model"), "--out", at("out")}, []string{"\n  agent.model: scripted/oracle -> scripted/random\n"}},
		{"dataset", 2, []string{at("a"), at("tasks"), "--out", at("out")}, []string{"dataset: "}},
		{"conflict", 2, []string{at("a"), at("again"), "--out", at("out")}, []string{"4 episodes ended as the model's own doing in more than one run", "give --prefer first or --prefer last"}},
		{"no run", 2, []string{at("a"), root, "--out", at("out")}, []string{"not a run directory"}},
		{"twice", 2, []string{at("a"), at("a"), "--out", at("out")}, []string{"the run is named twice"}},
		{"itself", 2, []string{at("a"), "--out", at("a")}, []string{"it holds a run already"}},
		{"in the way", 2, []string{at("a"), "--out", root}, []string{"is not empty"}},
		{"running", 1, []string{at("running"), "--out", at("out")}, []string{"another process writes this run (pid ", "wait for its end, or interrupt it"}},
		{"nowhere", 2, []string{at("a")}, []string{"--out is missing"}},
		{"nothing", 2, []string{"--out", at("out")}, []string{"argument RUN... is missing"}},
	}
	for _, test := range tests {
		_, stderr := mustExit(t, test.code, append([]string{"merge"}, test.args...)...)
		wantTexts(t, stderr, test.want...)
		if _, err := os.Stat(at("out")); err == nil {
			t.Errorf("%s: something was left", test.name)
		}
	}
	if err := running.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	running.wait(t)
	dir, stdout := merged(t, []string{at("a"), at("again")}, "--prefer", "last")
	wantTexts(t, stdout, "4 attempts left out by --prefer")
	type row struct{ StartedAt string }
	started := func(dir string) row {
		return askOne[row](t, dir, "SELECT max(started_at)::VARCHAR AS StartedAt FROM episodes")
	}
	if got, want := started(dir), started(at("again")); got != want {
		t.Errorf("the last attempt is of %v, want %v", got, want)
	}
}
