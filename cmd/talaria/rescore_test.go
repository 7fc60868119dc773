package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// shownScore is how an episode is scored as SQL shows it.
type shownScore struct {
	Task   string
	Reward *float64
	AtRun  *float64 `json:"at_run"`
	Passed *bool
}

const shownScoresSQL = `SELECT task_id AS task, reward, reward_at_run AS at_run, passed FROM episodes ORDER BY task_id`

// TestScorersFail lets the scorers fail everywhere: no reward is given, and
// resume scores again without buying again.
func TestScorersFail(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{Answer: "It is 1."}) // which is right for the first task alone
	config := labConfig(t, l.base, 3, "")
	dir := filepath.Join(t.TempDir(), "run")
	stdout, stderr := mustExit(t, 3, "run", config, "--out", dir, "--set", "score.0.target_extract=####")
	wantTexts(t, stderr, "3 of 3 episodes ended as infra or task or could not be scored, more than limits.fail_on_error allows (0.1)",
		"'talaria resume "+dir+"' tries again")
	wantTexts(t, stdout, "unscored")
	for _, row := range recorded(t, dir) {
		if row.Outcome != "model" || row.Reward != nil || row.Passed != nil || len(row.Flags) != 1 || row.Flags[0] != "unscored" {
			t.Errorf("outcome %s, reward %v, passed %v, flags %v, want model, null, null, unscored", row.Outcome, row.Reward, row.Passed, row.Flags)
		}
		wantTexts(t, deref(row.Error), "scoring: ")
	}

	bought := len(l.Ledger())
	mustExit(t, 3, "resume", dir)
	stdout, _ = mustExit(t, 0, "resume", dir, "--set", "score.0.target_extract=last_number")
	wantTexts(t, stdout, "3 attempts were scored again, without a model call")
	if n := len(l.Ledger()); n != bought || n != 3 {
		t.Errorf("%d requests, then %d, want 3 and no more", bought, n)
	}
	if n := len(recorded(t, dir)); n != 3 {
		t.Errorf("%d attempts, want the 3 of the first time", n)
	}

	right, wrong := new(1.0), new(0.0)
	want := []shownScore{{"t0", right, nil, new(true)}, {"t1", wrong, nil, new(false)}, {"t2", wrong, nil, new(false)}}
	if diff := cmp.Diff(want, ask[shownScore](t, dir, shownScoresSQL)); diff != "" {
		t.Errorf("episodes (-want +got):\n%s", diff)
	}
}

// TestOtherScorers: another scorer means to score again, and the latest reward
// counts, beside the one that was known at the end of the attempt.
func TestOtherScorers(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{Answer: "It is 1."})
	config := labConfig(t, l.base, 2, "")
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", config, "--out", dir)
	mustExit(t, 0, "resume", dir, "--set", "score.0.name=exact", "--set", "score.0.extract=")
	if n := len(l.Ledger()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	right, wrong := new(1.0), new(0.0)
	want := []shownScore{{"t0", wrong, right, new(false)}, {"t1", wrong, wrong, new(false)}}
	if diff := cmp.Diff(want, ask[shownScore](t, dir, shownScoresSQL)); diff != "" {
		t.Errorf("episodes (-want +got):\n%s", diff)
	}
}
