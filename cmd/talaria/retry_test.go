package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
)

// TestInfraRetries: every attempt that fails leaves a row with its cost, the
// allowance counts over all invocations, and --retry infra grants one more.
func TestInfraRetries(t *testing.T) {
	t.Parallel()
	paidFailures := lab.Script{Faults: []lab.Fault{{Kind: lab.FaultEmptyChoices, Rate: 1, Times: 9}}}
	l := newLab(t, paidFailures)
	config := labConfig(t, l.base, 2, "limits: {retries: {requests: 0, infra: 2}}\n")
	dir := filepath.Join(t.TempDir(), "run")
	steps := []struct {
		name string
		args []string
		code int
		want map[dataset.Outcome]int
	}{
		{"run", []string{"run", config, "--out", dir}, 5, map[dataset.Outcome]int{dataset.OutcomeInfra: 6}},
		{"resume", []string{"resume", dir}, 5, map[dataset.Outcome]int{dataset.OutcomeInfra: 6}},
		{"a higher allowance", []string{"resume", dir, "--set", "limits.retries.infra=3"}, 5, map[dataset.Outcome]int{dataset.OutcomeInfra: 8}},
		{"a fresh allowance", []string{"resume", dir, "--retry", "infra", "--set", "limits.retries.infra=2"}, 5, map[dataset.Outcome]int{dataset.OutcomeInfra: 14}},
		{"resume once more", []string{"resume", dir}, 5, map[dataset.Outcome]int{dataset.OutcomeInfra: 14}},
		{"task is another outcome", []string{"resume", dir, "--retry", "task"}, 5, map[dataset.Outcome]int{dataset.OutcomeInfra: 14}},
	}
	for _, step := range steps {
		mustExit(t, step.code, step.args...)
		if diff := cmp.Diff(step.want, outcomesOf(recorded(t, dir))); diff != "" {
			t.Errorf("%s: attempts by outcome (-want +got):\n%s", step.name, diff)
		}
		wantBooks(t, recorded(t, dir), l.Ledger())
	}

	spent := l.Ledger()
	l.renew(t, lab.Script{})
	mustExit(t, 0, "resume", dir, "--retry", "infra,task")
	rows := recorded(t, dir)
	want := map[dataset.Outcome]int{dataset.OutcomeInfra: 14, dataset.OutcomeModel: 2}
	if diff := cmp.Diff(want, outcomesOf(rows)); diff != "" {
		t.Errorf("mended: attempts by outcome (-want +got):\n%s", diff)
	}
	wantBooks(t, rows, append(spent, l.Ledger()...))
	keys := map[string]bool{}
	for _, row := range rows {
		keys[fmt.Sprint(row.EpisodeID, row.Attempt)] = true
		if (row.Attempt == 7) != (row.Outcome == string(dataset.OutcomeModel)) {
			t.Errorf("attempt %d of %s ended as %s", row.Attempt, row.EpisodeID, row.Outcome)
		}
	}
	if len(keys) != 16 {
		t.Errorf("%d keys, want 16", len(keys))
	}
}

// TestTaskRetries: what is the task's fault is tried again only when asked.
func TestTaskRetries(t *testing.T) {
	t.Parallel()
	config := labConfig(t, "http://127.0.0.1:1/v1", 2, "")
	answers := filepath.Join(t.TempDir(), "answers.jsonl")
	writeFile(t, answers, `{"id":"t0","question":"?","answer":"","said":"1"}`+"\n") // none for t1
	dir := filepath.Join(t.TempDir(), "run")
	_, stderr := mustExit(t, 3, "run", config, "--out", dir, "-m", "scripted/replay", "--set", "agent.base_url=",
		"--set", "agent.replay.path="+answers, "--set", "agent.replay.column=said")
	wantTexts(t, stderr, "1 of 2 episodes ended as infra or task or could not be scored", "'talaria resume "+dir+" --retry task' tries again")
	mustExit(t, 3, "resume", dir)
	mustExit(t, 3, "resume", dir, "--retry", "infra")
	want := map[dataset.Outcome]int{dataset.OutcomeModel: 1, dataset.OutcomeTask: 1}
	if diff := cmp.Diff(want, outcomesOf(recorded(t, dir))); diff != "" {
		t.Errorf("attempts by outcome (-want +got):\n%s", diff)
	}
	mustExit(t, 3, "resume", dir, "--retry", "task")
	want[dataset.OutcomeTask] = 2
	if diff := cmp.Diff(want, outcomesOf(recorded(t, dir))); diff != "" {
		t.Errorf("attempts by outcome after --retry task (-want +got):\n%s", diff)
	}
}
