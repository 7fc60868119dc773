package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// patience is how long a test waits for what has to come. It bounds only tests
// that fail.
const patience = 5 * time.Minute

// process is a command that runs beside the test.
type process struct {
	cmd      *exec.Cmd
	out, err *buffer
	ended    chan error // the command's end, once
}

// start starts talaria.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, exec.CommandContext(t.Context(), "talaria", args...))
}

// launch starts a command, whose output is kept where it goes nowhere else, and
// kills it with the test.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, out: new(buffer), err: new(buffer), ended: make(chan error, 1)}
	if cmd.Stdout == nil {
		cmd.Stdout = p.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.err
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	return p
}

// wait waits for the end and returns the exit code, -1 after a signal.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case err := <-p.ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0
	case <-time.After(patience):
		t.Fatalf("%s: no end in %v\n%s", strings.Join(p.cmd.Args, " "), patience, p.err)
		return 0
	}
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// says waits until a text is on stderr.
func (p *process) says(t *testing.T, text string) {
	t.Helper()
	until(t, "stderr says "+text, func() bool { return strings.Contains(p.err.String(), text) })
}

// until polls until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", patience, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// recorded is every attempt of a run, as any reader sees them, without SQL.
func recorded(t *testing.T, dir string) []store.AttemptRow {
	t.Helper()
	view, err := store.OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var rows []store.AttemptRow
	for row, err := range view.Attempts() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *row)
	}
	return rows
}

// outcomesOf counts attempts by outcome.
func outcomesOf(rows []store.AttemptRow) map[dataset.Outcome]int {
	n := map[dataset.Outcome]int{}
	for i := range rows {
		n[dataset.Outcome(rows[i].Outcome)]++
	}
	return n
}

// runOf reads what a run says of itself.
func runOf(t *testing.T, dir string) store.Run {
	t.Helper()
	run, err := store.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
