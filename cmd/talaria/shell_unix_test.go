//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/talaria-run/talaria/eval/evaltest"
)

// ptyProcess is a command on a pseudo-terminal.
type ptyProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	pty   *os.File
	shown *buffer
	from  int // what was shown before has been waited for
	ended chan error
}

// ptyOf starts talaria on a terminal of so many columns.
func ptyOf(t *testing.T, columns uint16, env []string, args ...string) *ptyProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "talaria", args...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm"), env...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	p := &ptyProcess{t: t, cmd: cmd, pty: file, shown: new(buffer), ended: make(chan error, 1)}
	go func() {
		_, _ = io.Copy(p.shown, file) // until the terminal is closed
		p.ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		_ = file.Close()
	})
	return p
}

func (p *ptyProcess) types(text string) {
	p.t.Helper()
	if _, err := p.pty.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// shows waits until a text is shown, behind what was waited for before.
func (p *ptyProcess) shows(text string) {
	p.t.Helper()
	deadline := time.Now().Add(patience / 5)
	for time.Now().Before(deadline) {
		all := p.shown.String()
		if i := strings.Index(all[p.from:], text); i >= 0 {
			p.from += i + len(text)
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	p.t.Fatalf("%q is not shown in %q", text, p.shown.String()[p.from:])
}

func (p *ptyProcess) ends() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("%v: %q", err, p.shown)
		}
	case <-time.After(patience):
		p.t.Fatalf("it goes on: %q", p.shown.String())
	}
}

func shellOn(t *testing.T, state string, runs ...string) *ptyProcess {
	t.Helper()
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	p := ptyOf(t, 120, []string{"XDG_STATE_HOME=" + state}, append([]string{"query"}, runs...)...)
	p.shows(shellPrompt)
	return p
}

// TestShell talks to the prompt of query as a person does.
func TestShell(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	p := shellOn(t, state, scriptedRun(t, 3))
	for _, step := range []struct{ types, shows string }{
		{"SELECT count(*) AS n -- of all\r", shellMore},
		{"FROM episodes\r", shellMore},
		{";\r", "\r\n3\r\n(1 row, "},
		{"SELECT 11 AS a; SELECT 'x;y' AS b;\r", "\r\n11\r\n"},
		{"", "\r\nx;y\r\n"},
		{"SELEC 1;\r", `syntax error at or near "SELEC" (line 1, column 1)`},
		{"COPY (SELECT 1) TO 'x';\r", "COPY is not allowed"},
		{"CREATE TABLE mine AS SELECT 5 AS five;\r", "(1 row, "},
		{"\\d\r", "episode: its current attempt"},
		{"", "mine"},
		{"\\d episodes;\r", "reward_at_run"},
		{".columns episode\r", `there is no view "episode"; did you mean episodes?`},
		{".tabels\r", "unknown command .tabels; did you mean .tables?"},
		{".mode csv\r", shellPrompt},
		{".mode\r", "\r\ncsv\r\n"},
		{"SELECT 1 AS a, 'b,c' AS d FROM mine;\r", "a,d\r\n1,\"b,c\"\r\n"},
		{".mode table\r", shellPrompt},
		{".runs\r", "complete"},
		{".help\r", "Tab completes"},
		{"SELECT 'given up\x03", shellPrompt},
		{"SELECT sum(hash(a.x + b.x)::HUGEINT) FROM range(10000000) a(x), range(10000000) b(x);\r", "b(x);"},
	} {
		p.types(step.types)
		p.shows(step.shows)
	}
	until(t, "the statement is interrupted", func() bool { // the first Ctrl-C may come before it runs
		p.types("\x03")
		<-time.After(50 * time.Millisecond)
		return strings.Contains(p.shown.String()[p.from:], "interrupted")
	})
	p.shows(shellPrompt)
	p.types("SELECT five + 1 AS six FROM mine;\r")
	p.shows("\r\n  6\r\n(1 row")
	p.types("\x04")
	p.ends()

	path := filepath.Join(state, "talaria", "query_history")
	history := string(readFile(t, path))
	wantTexts(t, history, "SELECT count(*) AS n FROM episodes;\n", "\\d\n", "SELECT five + 1 AS six FROM mine;\n")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history is open to others: %v, %v", info.Mode(), err)
	}
}

// TestShellRemembers: the next session has the lines of the one before, also if
// that was killed; names are completed; .quit leaves.
func TestShellRemembers(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), scriptedRun(t, 2)
	first := shellOn(t, state, dir)
	first.types("SELECT 40 + 2 AS a;\r")
	first.shows("\r\n42\r\n")
	first.shows(shellPrompt)
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.ends()

	second := shellOn(t, state, dir)
	second.types("\x1b[A\r") // up
	second.shows("\r\n42\r\n")
	second.types("SELECT count(*) AS n FROM task_st\t;\r")
	second.shows("\r\n2\r\n(1 row")
	second.types(".quit\r")
	second.ends()
}

// TestShellSeesNewRows: a run that goes on is seen as it is, statement by
// statement.
func TestShellSeesNewRows(t *testing.T) {
	t.Parallel()
	run := evaltest.Growing(t)
	p := shellOn(t, t.TempDir(), run.Dir)
	for i := range 4 {
		p.types("SELECT 'there are ' || count(*) AS n FROM episodes;\r")
		p.shows(fmt.Sprintf("\r\nthere are %d\r\n", i))
		if i < 3 {
			run.Write(i)
		}
	}
	p.types("\x04")
	p.ends()
}
