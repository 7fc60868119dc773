package terminal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/local"
	"github.com/talaria-run/talaria/env/terminal"
)

var errNone = errors.New("no sandboxes today")

// stingy is a backend that starts none, but remembers what was asked for.
type stingy struct{ asked sandbox.Spec }

func (b *stingy) Start(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	b.asked = spec
	return nil, errNone
}

func (*stingy) Close(context.Context) error { return nil }

// reset resets a world that cannot start.
func reset(t *testing.T, setup env.Setup, ep dataset.Episode) error {
	t.Helper()
	e, err := newFactory(t, setup).New()
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Reset(t.Context(), ep)
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("closing a world that never began: %v", err)
	}
	return err
}

// TestSpec puts the limits of config and task together.
func TestSpec(t *testing.T) {
	config := sandbox.Spec{
		Network: sandbox.NetworkHost, Memory: 1 << 30, Disk: 1 << 30, Pids: 9, Timeout: time.Minute,
		Env: map[string]string{"A": "config", "B": "config"}, Labels: sandbox.Labels{Run: "run"},
	}
	labelled := config
	labelled.Labels = sandbox.Labels{Run: "run", Episode: "e", Attempt: 2}
	changed := labelled
	changed.Network, changed.Memory, changed.Disk, changed.Timeout = sandbox.NetworkNone, 2<<30, 3<<30, 30*time.Second
	changed.Workdir, changed.Env = "/app", map[string]string{"A": "task", "B": "config"}
	tests := []struct {
		name   string
		params dataset.TerminalParams
		want   sandbox.Spec
	}{
		{"the task says nothing", dataset.TerminalParams{}, labelled},
		{"the task has more time", dataset.TerminalParams{AgentTimeoutSec: 600}, labelled},
		{"the task goes first", dataset.TerminalParams{
			Network: "no-network", Memory: 2 << 30, Storage: 3 << 30, AgentTimeoutSec: 30, Workdir: "/app", Env: map[string]string{"A": "task"},
		}, changed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &stingy{}
			err := reset(t, env.Setup{Backend: b, Spec: config}, dataset.Episode{ID: "e", Attempt: 2, Task: newTask("t", sayYes, tt.params)})
			if !errors.Is(err, errNone) || errors.Is(err, dataset.ErrTask) {
				t.Errorf("error %v: a sandbox that does not start is not the task's fault", err)
			}
			if diff := cmp.Diff(tt.want, b.asked); diff != "" {
				t.Errorf("spec differs (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]string{"A": "config", "B": "config"}, config.Env); diff != "" {
		t.Errorf("the config's environment was changed:\n%s", diff)
	}
}

// TestHostVariables lets tasks have what the config names, and no more.
func TestHostVariables(t *testing.T) {
	host := map[string]string{"OPEN": "open value", "EMPTY": "", "SECRET": "secret value"}
	tests := []struct {
		template, want, err string
	}{
		{template: "plain $OPEN {OPEN} $", want: "plain $OPEN {OPEN} $"},
		{template: "<${OPEN}>", want: "<open value>"},
		{template: "${OPEN}${OPEN:-x}", want: "open valueopen value"},
		{template: "${EMPTY}", want: ""},
		{template: "${EMPTY:-instead}", want: "instead"},
		{template: "${UNSET:-}", want: ""},
		{template: "${SECRET:-instead}", want: "instead"},
		{template: "${SECRET}", err: "needs the host's variable SECRET, which env.host_env does not name"},
		{template: "${UNSET}", err: "needs the host's variable UNSET, which is not set"},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			b := &stingy{}
			err := reset(t, env.Setup{
				Backend:   b,
				Decode:    hostEnv("OPEN", "EMPTY", "UNSET"),
				LookupEnv: func(name string) (string, bool) { v, ok := host[name]; return v, ok },
			}, dataset.Episode{Task: newTask("t", sayYes, dataset.TerminalParams{Env: map[string]string{"KEY": tt.template}})})
			if tt.err != "" {
				if !errors.Is(err, dataset.ErrTask) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want the task's with %q", err, tt.err)
				}
				return
			}
			if got := b.asked.Env["KEY"]; got != tt.want || !errors.Is(err, errNone) {
				t.Errorf("got %q, error %v; want %q", got, err, tt.want)
			}
		})
	}
}

// hostEnv decodes the parameter host_env as a config would.
func hostEnv(names ...string) func(any) error {
	return func(into any) error { return terminal.SetHostEnv(into, names) }
}

func TestNewRefuses(t *testing.T) {
	bad := errors.New("run.yaml:3: unknown key env.colour")
	tests := []struct {
		name  string
		setup env.Setup
		want  string
	}{
		{"no prompt", env.Setup{Backend: &stingy{}}, "no prompt"},
		{"no backend", env.Setup{Prompt: prompt}, "no sandbox backend"},
		{"a parameter", env.Setup{Prompt: prompt, Backend: &stingy{}, Decode: func(any) error { return bad }}, bad.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := terminal.New(tt.setup); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestFurnished shows what of a task's folder the agent sees.
func TestFurnished(t *testing.T) {
	task := newTask("t", sayYes, dataset.TerminalParams{},
		"environment/Dockerfile", "environment/.dockerignore", "environment/a/Dockerfile", "environment/.hidden", "environment/b c",
		"solution/solve.sh", "wrong/near.sh", "task.toml")
	task.Files.(fstest.MapFS)["environment/run.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: 0o755}
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		e, err := newFactory(t, env.Setup{Backend: b}).New()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		if _, err := e.Reset(t.Context(), dataset.Episode{Task: task}); err != nil {
			t.Fatal(err)
		}
		got, err := e.(env.Sandboxed).Sandbox().Exec(t.Context(), sandbox.Command{
			Script: `find . -type f | LC_ALL=C sort; cat "b c"; ./run.sh || echo "cannot run"; find "$R/" -name test.sh -o -name solve.sh -o -name near.sh 2>/dev/null | grep -v /usr/`,
			Env:    map[string]string{"R": e.(env.Sandboxed).Sandbox().Info().Root},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := "./.hidden\n./a/Dockerfile\n./b c\n./run.sh\nenvironment/b c\n"
		if diff := cmp.Diff(want, string(got.Output)); diff != "" {
			t.Errorf("what the agent sees (-want +got):\n%s", diff)
		}
	})
}

// TestTooLarge blames a task whose files do not fit into its own disk.
func TestTooLarge(t *testing.T) {
	b := backend(t, local.Options{})
	task := newTask("t", sayYes, dataset.TerminalParams{Storage: 1 << 20})
	task.Files.(fstest.MapFS)["environment/big"] = &fstest.MapFile{Data: make([]byte, 4<<20), Mode: 0o644}
	box, err := b.Start(t.Context(), sandbox.Spec{Disk: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	held := box.Info().Mechanism(sandbox.HoldDisk)
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held == "" {
		t.Skip("this machine's sandboxes have no disk limit")
	}
	if err := reset(t, env.Setup{Backend: b}, dataset.Episode{Task: task}); !errors.Is(err, dataset.ErrTask) {
		t.Errorf("error %v, want the task's", err)
	}
}
