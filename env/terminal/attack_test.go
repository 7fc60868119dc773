package terminal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/local"
)

// attack is what an agent does to be graded better, or not at all, without
// doing its task. R stands before the absolute names of its world, W is its
// working directory.
type attack struct {
	name   string
	script string
	// lost: what the agent did in its working directory is lost by it, too.
	lost bool
}

func attacks() []attack {
	return append(placeAttacks(), append(shellAttacks(), lateAttacks()...)...)
}

// placeAttacks are on the places of the verifier's files.
func placeAttacks() []attack {
	return []attack{
		{name: "reward written before", script: `mkdir -p "$R/logs/verifier"; cd "$R/logs/verifier"; echo 1 >reward.txt; echo '{"reward":1}' >reward.json`},
		{name: "reward that cannot be removed", script: `mkdir -p "$R/logs/verifier"; cd "$R/logs/verifier"; echo 1 >reward.json; chmod 444 reward.json; chmod 555 . ..`},
		{name: "reward as a folder", script: `mkdir -p "$R/logs/verifier/reward.txt/x" "$R/logs/verifier/reward.json/x"; chmod 0 "$R/logs/verifier/reward.txt"`},
		{name: "reward as a pipe", script: `mkdir -p "$R/logs/verifier"; mkfifo "$R/logs/verifier/reward.json" "$R/logs/verifier/reward.txt"`},
		{name: "reward as a link", script: `mkdir -p "$R/logs/verifier"; echo 1 >own; ln -s "$W/own" "$R/logs/verifier/reward.json"; ln -s /dev/null "$R/logs/verifier/reward.txt"`},
		{name: "verifier's logs as a link", script: `mkdir -p "$R/logs" own; echo 1 >own/reward.json; ln -s "$W/own" "$R/logs/verifier"`},
		{name: "logs as a link", script: `mkdir -p own/verifier; echo 1 >own/verifier/reward.json; ln -s "$W/own" "$R/logs"`},
		{name: "logs as a file", script: `echo 1 >"$R/logs"`},
		{name: "logs as a link to itself", script: `ln -s "$R/logs" "$R/logs"`},
		{name: "logs locked", script: `mkdir -p "$R/logs/verifier/deep/er"; chmod -R 0 "$R/logs"`},
		{name: "tests written before", script: `mkdir -p "$R/tests"; echo 'echo 1 >"$LOGS/verifier/reward.txt"; exit' >"$R/tests/test.sh"; chmod 444 "$R/tests/test.sh"; chmod 555 "$R/tests"`},
		{name: "tests as a link", script: `mkdir own; ln -s "$W/own" "$R/tests"; mkdir own/test.sh`},
		{name: "tests as a file", script: `echo 1 >"$R/tests"`},
		{name: "script of the tests as a link", script: `mkdir -p "$R/tests"; ln -s "$W/own.sh" "$R/tests/test.sh"`},
		{name: "root locked", script: `chmod 555 "$R/"`},
		{name: "temporary folder as a link", script: `rm -rf "$R/tmp"; mkdir own; ln -s "$W/own" "$R/tmp"`},
		{name: "temporary folder as a file", script: `rm -rf "$R/tmp"; echo >"$R/tmp"`},
		{name: "scratch taken", script: `mkdir -p "$R/tmp/verifier/home"; chmod 0 "$R/tmp/verifier/home" "$R/tmp/verifier"`},
		{name: "working directory removed", script: `cd /; rm -rf "$W"`, lost: true},
		{name: "working directory as a file", script: `cd /; rm -rf "$W"; echo yes >"$W"`, lost: true},
		{name: "working directory as a dead link", script: `cd /; rm -rf "$W"; ln -s /nowhere "$W"`, lost: true},
		{name: "working directory locked", script: `chmod 0 "$W"`},
	}
}

// shellAttacks are on the shell that will run the tests.
func shellAttacks() []attack {
	fake := `mkdir -p own; printf '#!/bin/sh\necho yes\n' >own/cat; chmod +x own/cat; `
	return []attack{
		{name: "PATH", script: fake + `export PATH="$W/own:$PATH"`},
		{name: "functions", script: `cat() { echo yes; }; export -f cat`},
		{name: "aliases", script: `alias cat='echo yes'`},
		{name: "BASH_ENV", script: `echo 'cat() { echo yes; }' >own; export BASH_ENV="$W/own" ENV="$W/own"`},
		{name: "start-up files", script: `for f in .bashrc .bash_profile .profile .bash_login; do echo 'cat() { echo yes; }' >"$HOME/$f"; done; export HOME`},
		{name: "LOGS and TESTS", script: `mkdir -p own/verifier; echo 1 >own/verifier/reward.json; echo 'echo 1 >"$LOGS/verifier/reward.txt"' >own/test.sh; export LOGS="$W/own" TESTS="$W/own"`},
		{name: "another directory", script: `mkdir -p own; echo yes >own/answer; cd own`},
		{name: "limits and masks", script: `umask 777; ulimit -f 0; trap '' TERM HUP INT; set -n`},
	}
}

// lateAttacks do something after the agent is done.
func lateAttacks() []attack {
	rewrite := `sh -c 'trap "" TERM HUP INT; while :; do echo 1 >"$R/logs/verifier/reward.json"; echo yes >"$W/late"; done' >/dev/null 2>&1 &`
	return []attack{
		{name: "in the background", script: rewrite},
		{name: "in a session of its own", script: "setsid " + rewrite},
		{name: "as an orphan of an orphan", script: `(setsid sh -c '` + strings.ReplaceAll(rewrite, "'", `'\''`) + `' &)`},
	}
}

// TestAttacks plays each attack without the task being done, and with it.
func TestAttacks(t *testing.T) {
	// The verifier takes the same way to its answer, but does not trust what
	// is in the working directory beside it.
	task := newTask("t", sayYes, dataset.TerminalParams{}, "environment/hint")
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		f := newFactory(t, env.Setup{Backend: b})
		for _, a := range attacks() {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				if got := scoreOf(t, f, task, a.script); got != 0 {
					t.Errorf("the attack alone: reward %v, want 0", got)
				}
				if a.lost {
					return
				}
				if got := scoreOf(t, f, task, `echo yes >"$W/answer"`, a.script); got != 1 {
					t.Errorf("with the task done before: reward %v, want 1", got)
				}
			})
		}
	})
}

func scoreOf(t *testing.T, f env.Factory, task dataset.Task, scripts ...string) float64 {
	t.Helper()
	rewards, err := attempt(t, f, task, scripts...)
	if err != nil {
		t.Fatal(err)
	}
	return *rewards[0].Value
}

// TestFullDisk lets no agent escape its grade by leaving no room for it.
func TestFullDisk(t *testing.T) {
	b := backend(t, local.Options{})
	f := newFactory(t, env.Setup{Backend: b, Spec: sandbox.Spec{Memory: 64 << 20, Disk: 8 << 20}})
	task := newTask("t", sayYes, dataset.TerminalParams{})
	box, err := b.Start(t.Context(), sandbox.Spec{Disk: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	info := box.Info()
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, hold, script string }{
		{"bytes", sandbox.HoldDisk, `cat /dev/zero >fill`},
		{"files", sandbox.HoldFiles, `i=0; while touch $(seq $((i*1000)) $((i*1000+999))); do i=$((i+1)); done`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if info.Mechanism(c.hold) == "" {
				t.Skipf("this machine's sandboxes do not limit %s", c.name)
			}
			rewards, err := attempt(t, f, task, `echo yes >answer; `+c.script)
			if err != nil {
				t.Fatal(err)
			}
			noRoom(t, rewards)
		})
	}
}

func noRoom(t *testing.T, rewards []dataset.Reward) {
	t.Helper()
	if *rewards[0].Value != 0 || !rewards[0].Chosen || !strings.Contains(rewards[0].Explanation, "no room") {
		t.Errorf("rewards %+v, want 0 for want of room", rewards)
	}
}

// cramped is a backend whose sandboxes kill what makes way for the verifier, as
// they do when files have used up their memory.
type cramped struct{ sandbox.Backend }

func (b cramped) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	box, err := b.Backend.Start(ctx, spec)
	return crampedBox{box}, err
}

type crampedBox struct{ sandbox.Sandbox }

func (b crampedBox) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	result, err := b.Sandbox.Exec(ctx, cmd)
	if cmd.Env["SCRATCH"] != "" {
		result.ExitCode = 137
	}
	return result, err
}

func (b crampedBox) Info() sandbox.Info {
	info := b.Sandbox.Info()
	info.Enforced = append(slices.Clone(info.Enforced), sandbox.HoldMemory+":cgroup")
	return info
}

func TestFullMemory(t *testing.T) {
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		task := newTask("t", sayYes, dataset.TerminalParams{})
		rewards, err := attempt(t, newFactory(t, env.Setup{Backend: cramped{b}}), task, "echo yes >answer")
		if err != nil {
			t.Fatal(err)
		}
		noRoom(t, rewards)
	})
}

// TestHome keeps from the verifier's programs what the agent left for them.
func TestHome(t *testing.T) {
	test := `if [ -z "$(ls -A "$HOME" "$TMPDIR" | grep -v :)" ] && [ "$HOME" != "$OLD" ]; then echo 1; else echo 0; fi >"$LOGS/verifier/reward.txt"`
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		got := scoreOf(t, newFactory(t, env.Setup{Backend: b}), newTask("t", test, dataset.TerminalParams{}),
			`echo '.shell echo yes' >"$HOME/.sqliterc"; echo >"$TMPDIR/x"; export OLD=$HOME`)
		if got != 1 {
			t.Error("the verifier sees the agent's home or temporary files")
		}
	})
}
