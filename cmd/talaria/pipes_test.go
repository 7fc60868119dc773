//go:build unix

package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// closedPipe is the writing end of a pipe that nobody reads.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

// TestReadersGoAway: neither a closed pipe nor a hang-up of the terminal ends a
// run, which exits with its own code.
func TestReadersGoAway(t *testing.T) {
	t.Parallel()
	fails := lab.Script{Faults: []lab.Fault{{Kind: lab.FaultStatus, Rate: 1, Times: 99}}}
	tests := []struct {
		name     string
		script   lab.Script
		out, err bool // who is gone
		signal   os.Signal
		want     int
	}{
		{name: "stdout", out: true},
		{name: "stderr", err: true},
		{name: "both, of a run that fails", script: fails, out: true, err: true, want: 5},
		{name: "hang-up", signal: syscall.SIGHUP},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, test.script)
			l.hold(beyond(2))
			config := labConfig(t, l.base, 6, "limits: {concurrency: {episodes: 1}, retries: {infra: 0, requests: 0}}\n")
			dir := filepath.Join(t.TempDir(), "run")
			cmd := exec.CommandContext(t.Context(), "talaria", "run", config, "--out", dir, "--log-level", "debug")
			if test.out {
				cmd.Stdout = closedPipe(t)
			}
			if test.err {
				cmd.Stderr = closedPipe(t)
			}
			p := launch(t, cmd)
			l.awaitHeld(t, 1)
			if test.signal != nil {
				p.signal(t, test.signal)
			}
			l.open()
			if code := p.wait(t); code != test.want {
				t.Errorf("exit code %d, want %d\n%s", code, test.want, p.err)
			}
			if n := len(recorded(t, dir)); n != 6 {
				t.Errorf("%d attempts, want 6", n)
			}
			if state := runOf(t, dir).State; state != store.StateComplete {
				t.Errorf("state %q, want %q", state, store.StateComplete)
			}
		})
	}
}

// TestHead is what people type: the reader takes a byte and goes.
func TestHead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `{ talaria run "$1" --out "$0"; echo $? >"$0.code"; } | head -c1`, dir, questions(t, 500))
	if out, err := cmd.Output(); err != nil || len(out) != 1 {
		t.Fatalf("head: %v, %q", err, out)
	}
	if code := strings.TrimSpace(string(readFile(t, dir+".code"))); code != "0" {
		t.Errorf("exit code %s, want 0", code)
	}
	if n := outcomesOf(recorded(t, dir))[dataset.OutcomeModel]; n != 500 {
		t.Errorf("%d episodes ended, want 500", n)
	}
}

// TestJSONLogs: with JSON logs every line of stderr is JSON, whatever happens.
func TestJSONLogs(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{Faults: []lab.Fault{{Kind: lab.FaultStatus, Rate: 0.9, Times: 99}}})
	config := labConfig(t, l.base, 4, "limits: {retries: {infra: 1, requests: 0}}\n")
	dir := filepath.Join(t.TempDir(), "run")
	damaged := copyRun(t, finishedRun(t))
	writeFile(t, filepath.Join(damaged, "attempts", "part-00000.parquet"), "")
	for _, args := range [][]string{
		{"run", config, "--out", dir, "--log-level", "debug"},
		{"run", config, "--out", dir},
		{"resume", dir, "--retry", "infra"},
		{"run", "nope.yaml"},
		{"status", damaged},
		{"run"},
	} {
		_, stderr, code := talaria(t, append(args, "--log-format", "json")...)
		levels := levelsOf(t, stderr)
		if code != 0 && levels["ERROR"] == 0 {
			t.Errorf("%v: exit code %d and no error in the log:\n%s", args, code, stderr)
		}
		if strings.Contains(stderr, "\x1b") {
			t.Errorf("%v: colours in JSON logs", args)
		}
	}
}

// levelsOf counts the records of a JSON log by level.
func levelsOf(t *testing.T, text string) map[string]int {
	t.Helper()
	levels := map[string]int{}
	for line := range strings.Lines(text) {
		var record struct{ Time, Level, Msg string }
		dec := json.NewDecoder(strings.NewReader(line))
		if err := dec.Decode(&record); err != nil || record.Level == "" || record.Msg == "" || record.Time == "" {
			t.Errorf("no log record: %v in %q", err, line)
		}
		if _, err := dec.Token(); err != io.EOF {
			t.Errorf("more than one record in a line: %q", line)
		}
		levels[record.Level]++
	}
	return levels
}
