//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// killedRun is a run of ten episodes that was killed when six had ended and
// the seventh waited for its answer.
func killedRun(t *testing.T) (dir string) {
	t.Helper()
	l := newLab(t, lab.Script{})
	l.hold(beyond(6))
	config := labConfig(t, l.base, 10, "limits: {concurrency: {episodes: 1}}\n")
	dir = filepath.Join(t.TempDir(), "run")
	p := start(t, "run", config, "--out", dir)
	l.awaitHeld(t, 1)
	until(t, "six episodes are recorded", func() bool { return len(recorded(t, dir)) == 6 })
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
	return dir
}

// TestJournalDamage breaks the journal of a killed run. What is readable is
// never lost or bought again, what is not is run again, and a segment that no
// crash leaves so is kept.
func TestJournalDamage(t *testing.T) {
	t.Parallel()
	killed := killedRun(t)
	tests := []struct {
		name string
		harm func([]byte) []byte
		left int    // attempts that are still readable
		says string // of the resume, with the file
		kept bool   // the damaged segment
	}{
		{name: "as the kill left it", harm: cutTail(0), left: 6},
		{name: "torn tail", harm: tearFrame(4), left: 4, says: "journal segment ends in the middle of a record, as after a crash"},
		{name: "a frame broken in the middle", harm: breakFrame(3), left: 5, says: "journal segment is damaged; the records behind the damage were read, the file is kept", kept: true},
		{name: "nothing but zeros", harm: func(b []byte) []byte { return make([]byte, len(b)) }, left: 0, says: "journal segment ends in the middle of a record"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := copyRun(t, killed)
			segment := filepath.Join(dir, "journal", "seg-00000.jsonl.zst")
			writeFile(t, segment, string(test.harm(readFile(t, segment))))
			mustExit(t, 0, "status", dir)
			before := ends(recorded(t, dir))
			if len(before) != test.left {
				t.Errorf("%d attempts are readable, want %d", len(before), test.left)
			}

			l := newLab(t, lab.Script{})
			_, stderr := mustExit(t, 0, "resume", dir, "--set", "agent.base_url="+l.base)
			if test.says != "" {
				wantTexts(t, stderr, test.says, "file="+segment)
			}
			wantEnded(t, recorded(t, dir), 10, before)
			if bought := len(l.Ledger()); bought != 10-test.left {
				t.Errorf("resume sent %d requests for %d episodes", bought, 10-test.left)
			}
			if _, err := os.Stat(segment + ".damaged"); (err == nil) != test.kept {
				t.Errorf("the damaged segment is kept: %v, want %v", err == nil, test.kept)
			}
		})
	}
}

// wantEnded wants so many episodes ended, and the attempts of before as they
// were.
func wantEnded(t *testing.T, rows []store.AttemptRow, n int, before map[string]string) {
	t.Helper()
	if got := outcomesOf(rows)[dataset.OutcomeModel]; got != n {
		t.Errorf("%d episodes ended as model, want %d", got, n)
	}
	after := ends(rows)
	for key, end := range before {
		if after[key] != end {
			t.Errorf("attempt %s: %s became %q", key, end, after[key])
		}
	}
}

// ends are the attempts by key, each with what says whether it is the same.
func ends(rows []store.AttemptRow) map[string]string {
	m := map[string]string{}
	for _, row := range rows {
		m[fmt.Sprintf("%s-%d", row.EpisodeID, row.Attempt)] = fmt.Sprint(row.Outcome, row.EndedAt, row.OutputTokens)
	}
	return m
}

// breakFrame spoils the nth attempt's frame of a segment, counted from 0.
func breakFrame(nth int) func([]byte) []byte {
	return func(b []byte) []byte { return flip(withinFrame(b, nth))(b) }
}

// tearFrame cuts a segment in the middle of the nth attempt's frame.
func tearFrame(nth int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:withinFrame(b, nth)] }
}

// withinFrame is an offset within the frame of the nth attempt: a frame's
// header has "TLJ" and its kind, and 16 more bytes.
func withinFrame(segment []byte, nth int) int {
	at := 0
	for range nth + 1 {
		at += bytes.Index(segment[at:], []byte("TLJa")) + 4
	}
	return at + 100
}

// TestTwoProcesses: a run has one writer. The second one is told who that is,
// and readers may look on.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{})
	l.hold(beyond(1))
	config := labConfig(t, l.base, 3, "limits: {concurrency: {episodes: 1}}\n")
	dir := filepath.Join(t.TempDir(), "run")
	first := start(t, "run", config, "--out", dir)
	l.awaitHeld(t, 1)
	until(t, "an episode is recorded", func() bool { return len(recorded(t, dir)) == 1 })

	for _, args := range [][]string{{"resume", dir}, {"run", config, "--out", dir, "--resume"}} {
		_, stderr := mustExit(t, 1, args...)
		wantTexts(t, stderr, "talaria: opening the run: "+dir+": another process writes this run",
			fmt.Sprintf("pid %d on ", first.cmd.Process.Pid))
	}
	stdout, _ := mustExit(t, 0, "status", dir)
	wantTexts(t, stdout, "lab: running, 1 of 3 episodes")
	if sqlBuiltIn {
		if n := askOne[struct{ N int }](t, dir, "SELECT count(*) AS n FROM episodes").N; n != 1 {
			t.Errorf("query sees %d episodes, want 1", n)
		}
	}
	l.open()
	if code := first.wait(t); code != 0 {
		t.Errorf("the first process: exit code %d\n%s", code, first.err)
	}
	if diff := cmp.Diff(map[dataset.Outcome]int{dataset.OutcomeModel: 3}, outcomesOf(recorded(t, dir))); diff != "" {
		t.Errorf("attempts by outcome (-want +got):\n%s", diff)
	}
	if n := len(runOf(t, dir).Invocations); n != 1 {
		t.Errorf("%d invocations on record, want 1", n)
	}
}
