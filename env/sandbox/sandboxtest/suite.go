// Package sandboxtest is the conformance suite of sandbox backends. A backend's
// test calls [Run] with it, and [Contain] to see that it holds what it claims to
// enforce.
package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Run checks that a backend keeps the contract of package sandbox. Sandboxes
// need sh and the usual small programs; where they have bash, what only bash
// can do is checked too. The caller closes the backend.
func Run(t *testing.T, b sandbox.Backend) {
	t.Helper()
	t.Run("shell", func(t *testing.T) { runShell(t, b) })
	t.Run("commands", func(t *testing.T) { runCommands(t, b) })
	t.Run("files", func(t *testing.T) { runFiles(t, b) })
	t.Run("kill", func(t *testing.T) { testKill(t, b) })
	t.Run("start", func(t *testing.T) { testStart(t, b) })
}

// patience is what a command gets that has no reason to take long.
const patience = time.Minute

func start(t *testing.T, b sandbox.Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	if spec.Timeout == 0 {
		spec.Timeout = patience
	}
	s, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("starting a sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("closing the sandbox: %v", err)
		}
	})
	return s
}

// step is a command and what has to come of it.
type step struct {
	sandbox.Command
	exit       int
	out        string // all of it, unless has is set
	has        string // or a part of it
	timedOut   bool
	rolledBack bool
}

func (s step) check(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	type outcome struct {
		ExitCode             int
		TimedOut, RolledBack bool
		Output               string
	}
	got, err := box.Exec(t.Context(), s.Command)
	if err != nil {
		t.Fatalf("%.200s: %v", s.Script, err)
	}
	want := outcome{ExitCode: s.exit, TimedOut: s.timedOut, RolledBack: s.rolledBack, Output: s.out}
	did := outcome{ExitCode: got.ExitCode, TimedOut: got.TimedOut, RolledBack: got.StateRolledBack, Output: string(got.Output)}
	if s.has != "" {
		if !strings.Contains(did.Output, s.has) {
			t.Errorf("%.200s: output %q does not contain %q", s.Script, did.Output, s.has)
		}
		did.Output = ""
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("%.200s (-want +got):\n%s", s.Script, diff)
	}
}

// script is a step that has to succeed with an output.
func script(text, out string) step {
	return step{Command: sandbox.Command{Script: text}, out: out}
}

// must runs a script that has to succeed and returns its output.
func must(t *testing.T, box sandbox.Sandbox, text string) string {
	t.Helper()
	got, err := box.Exec(t.Context(), sandbox.Command{Script: text})
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("%s: exit code %d, error %v, output %s", text, got.ExitCode, err, got.Output)
	}
	return string(got.Output)
}

func hasBash(t *testing.T, box sandbox.Sandbox) bool {
	t.Helper()
	got, err := box.Exec(t.Context(), sandbox.Command{Script: `test -n "$BASH_VERSION"`})
	if err != nil {
		t.Fatal(err)
	}
	return got.ExitCode == 0
}

func testKill(t *testing.T, b sandbox.Backend) {
	t.Helper()
	box := start(t, b, sandbox.Spec{})
	// In a session of its own, an orphan, and deaf to SIGTERM.
	must(t, box, `export KEPT=yes
(setsid sh -c 'trap "" TERM HUP; echo $$ > pid; while :; do sleep 1; done' &)
until test -s pid; do sleep 0.01; done`)
	must(t, box, `kill -0 "$(cat pid)"`)
	dir := strings.TrimSpace(must(t, box, "pwd"))
	running := make(chan sandbox.Result, 1)
	go func() {
		got, err := box.Exec(t.Context(), sandbox.Command{Script: "touch running; sleep 100", Fresh: true, Cwd: dir})
		if err != nil {
			t.Errorf("a command that was killed is no error of the sandbox: %v", err)
		}
		running <- got
	}()
	must(t, box, `until test -e running; do sleep 0.01; done`)
	if err := box.Kill(t.Context()); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if got := <-running; got.ExitCode != 137 {
		t.Errorf("the command that ran meanwhile has exit code %d, want 137", got.ExitCode)
	}
	step{Command: sandbox.Command{Script: `kill -0 "$(cat pid)" 2>/dev/null`}, exit: 1}.check(t, box)
	script(`echo $KEPT`, "yes\n").check(t, box)
}

func testStart(t *testing.T, b sandbox.Backend) {
	t.Helper()
	t.Run("two are apart", func(t *testing.T) {
		first, second := start(t, b, sandbox.Spec{}), start(t, b, sandbox.Spec{})
		if first.Info().ID == second.Info().ID {
			t.Errorf("two sandboxes have the id %s", first.Info().ID)
		}
		must(t, first, "echo secret > mine; export MINE=1")
		step{Command: sandbox.Command{Script: "cat mine"}, exit: 1, has: "mine"}.check(t, second)
		script("echo \"<$MINE>\"", "<>\n").check(t, second)
	})
	t.Run("environment and directory", func(t *testing.T) {
		box := start(t, b, sandbox.Spec{Env: map[string]string{"GIVEN": "a b"}, Workdir: "/app"})
		script("pwd; echo \"$GIVEN\"", box.Info().Path("/app")+"\na b\n").check(t, box)
		if got, want := box.Info().Workdir, box.Info().Path("/app"); got != want {
			t.Errorf("Workdir is %s, want %s", got, want)
		}
	})
	t.Run("timeout of the spec", func(t *testing.T) {
		box := start(t, b, sandbox.Spec{Timeout: 2 * time.Second})
		step{Command: sandbox.Command{Script: "echo begun; sleep 60"}, exit: sandbox.ExitTimeout, has: "begun", timedOut: true}.check(t, box)
		step{Command: sandbox.Command{Script: "sleep 0.2; echo done", Timeout: patience}, out: "done\n"}.check(t, box)
	})
	t.Run("nothing of the harness's environment", func(t *testing.T) {
		t.Setenv("TALARIA_TEST_SECRET", "hunter2")
		box := start(t, b, sandbox.Spec{})
		if got := must(t, box, "env"); strings.Contains(got, "hunter2") {
			t.Errorf("the environment shows through: %s", got)
		}
	})
	t.Run("bad specs", func(t *testing.T) {
		for _, spec := range []sandbox.Spec{
			{Network: "lan"}, {Memory: -1}, {Workdir: "here"}, {Env: map[string]string{"A=B": ""}}, {Shell: "/no/such/shell"},
		} {
			if s, err := b.Start(t.Context(), spec); err == nil {
				t.Errorf("Start(%+v) succeeded", spec)
				_ = s.Close(t.Context())
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("no more")
		cancel(why)
		if _, err := b.Start(ctx, sandbox.Spec{}); !errors.Is(err, why) {
			t.Errorf("Start with a cancelled context returned %v, want %v", err, why)
		}
	})
}
