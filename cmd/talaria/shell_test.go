package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQueryReadsStdin: without a terminal SQL comes from stdin, whether it is
// asked for or not.
func TestQueryReadsStdin(t *testing.T) {
	t.Parallel()
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	dir := scriptedRun(t, 2)
	for _, args := range [][]string{{"query", dir}, {"query", dir, "-"}, {"query", dir, "--format", "csv"}} {
		cmd := exec.CommandContext(t.Context(), "talaria", args...)
		cmd.Stdin = strings.NewReader("CREATE TABLE t AS SELECT 1;\nSELECT count(*) AS n FROM episodes;\n")
		p := launch(t, cmd)
		if code := p.wait(t); code != 0 || !strings.HasSuffix(p.out.String(), "2\n") || !strings.HasPrefix(p.out.String(), "n\n") {
			t.Errorf("%v: exit code %d, %q %q", args, code, p.out, p.err)
		}
	}
	_, stderr := mustExit(t, 2, "query", dir)
	wantTexts(t, stderr, "there is no SQL to run")
}

func TestCompleteWord(t *testing.T) {
	words := []string{".mode", ".runs", "SELECT", "reward", "reward_rule", "run_id", "runs"}
	tests := []struct {
		line string // | is the cursor
		head string
		want []string
		tail string
	}{
		{"sel|", "", []string{"SELECT"}, ""},
		{"SELECT rew| FROM x", "SELECT ", []string{"reward", "reward_rule"}, " FROM x"},
		{"SELECT e.run|", "SELECT e.", []string{"run_id", "runs"}, ""},
		{".ru|", "", []string{".runs"}, ""},
		{"SELECT 'é→ru|n'", "SELECT 'é→", []string{"run_id", "runs"}, "n'"},
		{"|", "", nil, ""},
		{"SELECT |", "SELECT ", nil, ""},
		{"xyz|", "", nil, ""},
	}
	for _, tt := range tests {
		before, after, _ := strings.Cut(tt.line, "|")
		head, got, tail := completeWord(words, before+after, len([]rune(before)))
		if diff := cmp.Diff(tt.want, got); diff != "" || head != tt.head || tail != tt.tail {
			t.Errorf("%s: got %q and %q around %v", tt.line, head, tail, got)
		}
	}
}

func TestHistoryFile(t *testing.T) {
	getenv := func(name string) string {
		if name == "XDG_STATE_HOME" {
			return "/state"
		}
		return ""
	}
	if got, want := historyFile(getenv), "/state/talaria/query_history"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv("HOME", "/home/u")
	if got, want := historyFile(func(string) string { return "" }), "/home/u/.local/state/talaria/query_history"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
