package terminal_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/envtest"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/terminal"
)

// sayYes scores whether the file answer in the working directory says yes, as
// many an honest verifier does.
const sayYes = `if [ "$(cat answer)" = yes ]; then echo 1; else echo 0; fi >"$LOGS/verifier/reward.txt"`

// newTask makes a task of a test script and further files, named by path.
func newTask(id, test string, params dataset.TerminalParams, files ...string) dataset.Task {
	folder := fstest.MapFS{"tests/test.sh": {Data: []byte(test), Mode: 0o644}}
	for _, file := range files {
		folder[file] = &fstest.MapFile{Data: []byte(file + "\n"), Mode: 0o644}
	}
	text, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return dataset.Task{ID: id, Input: "Say yes in the file answer.", Params: string(text), Files: folder}
}

// scripted is f, but a script of the task is played.
func scripted(t *testing.T, f env.Factory, file string) env.Factory {
	t.Helper()
	f, err := terminal.Scripted(f, func(dataset.Task) string { return file })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// attempt resets a world for a task, has the agent run scripts, and scores.
func attempt(t *testing.T, f env.Factory, task dataset.Task, scripts ...string) ([]dataset.Reward, error) {
	t.Helper()
	e, err := f.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if _, err := e.Reset(t.Context(), dataset.Episode{ID: "e", Task: task}); err != nil {
		t.Fatal(err)
	}
	box := e.(env.Sandboxed).Sandbox()
	for _, script := range scripts {
		info := box.Info()
		_, err := box.Exec(t.Context(), sandbox.Command{
			Script: script, Env: map[string]string{"R": info.Root, "W": info.Workdir},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return e.(env.Scored).Score(t.Context(), &dataset.Trajectory{})
}

func TestConformance(t *testing.T) {
	episodes := []dataset.Episode{
		{ID: "a", Task: newTask("1", `echo '{"reward": 0.5, "b": 2, "a": 1}' >"$LOGS/verifier/reward.json"`, dataset.TerminalParams{})},
		{ID: "b", Seed: 7, Task: newTask("2", sayYes, dataset.TerminalParams{Workdir: "/srv/here"}, "environment/answer")},
	}
	noTests := newTask("4", "", dataset.TerminalParams{})
	noTests.Files = fstest.MapFS{}
	malformed := newTask("5", sayYes, dataset.TerminalParams{})
	malformed.Params = "[]"
	silent := newTask("6", sayYes, dataset.TerminalParams{})
	silent.Input = ""
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		envtest.Run(t, envtest.Case{
			New: func() (env.Factory, error) {
				return terminal.New(env.Setup{Prompt: prompt, Backend: b, Spec: limits()})
			},
			Episodes: episodes,
			Broken: []dataset.Episode{
				{ID: "c", Task: dataset.Task{ID: "3", Input: "no folder"}},
				{ID: "d", Task: noTests},
				{ID: "e", Task: malformed},
				{ID: "f", Task: silent},
				{ID: "g", Task: newTask("7", sayYes, dataset.TerminalParams{Workdir: "here"})},
				{ID: "h", Task: newTask("8", sayYes, dataset.TerminalParams{Env: map[string]string{"KEY": "${SECRET}"}})},
			},
		})
	})
}

// TestRewards plays verifiers and takes what they leave.
func TestRewards(t *testing.T) {
	one, short := 1.0, dataset.TerminalParams{VerifierTimeoutSec: 1}
	score := func(value float64) []dataset.Reward {
		return []dataset.Reward{{Name: "reward", Source: dataset.FromEnv, Value: &value, Chosen: true}}
	}
	tests := []struct {
		name   string
		test   string
		params dataset.TerminalParams
		want   []dataset.Reward
		err    string // of the task
	}{
		{name: "text", test: `echo ' 0.25 ' >"$LOGS/verifier/reward.txt"`, want: score(0.25)},
		{name: "a number", test: `echo 2e-1 >"$LOGS/verifier/reward.json"`, want: score(0.2)},
		{
			name: "an object", test: `echo '{"z": 1, "reward": -1}' >"$LOGS/verifier/reward.json"`,
			want: append(score(-1), dataset.Reward{Name: "z", Source: dataset.FromEnv, Value: &one}),
		},
		{name: "json goes first", test: `cd "$LOGS/verifier"; echo 1 >reward.json; echo 0 >reward.txt`, want: score(1)},
		{name: "the exit code decides nothing", test: `echo 1 >"$LOGS/verifier/reward.txt"; exit 3`, want: score(1)},
		{name: "killed after its word", test: `echo 1 >"$LOGS/verifier/reward.txt"; kill -9 $$`, want: score(1)},
		{
			name: "runs in the working directory", params: dataset.TerminalParams{Workdir: "/a/b"},
			test: `case $PWD in */a/b) echo 1 ;; *) echo 0 ;; esac >"$LOGS/verifier/reward.txt"`, want: score(1),
		},
		{
			name: "an environment", params: dataset.TerminalParams{Env: map[string]string{"A": "1", "B": "1"}, VerifierEnv: map[string]string{"B": "2"}},
			test: `echo "$A$B" >"$LOGS/verifier/reward.txt"`, want: score(12),
		},
		{
			name: "hooks", params: dataset.TerminalParams{Collect: []dataset.TerminalHook{{Command: "echo 7 >collected; exit 1"}}},
			test: `cat collected >"$LOGS/verifier/reward.txt"`, want: score(7),
		},
		{name: "none", test: `echo sorry >&2; exit 4`, err: "the verifier left none; the verifier ended with exit code 4 and said: sorry"},
		{name: "empty", test: `: >"$LOGS/verifier/reward.txt"`, err: "reward.txt: it is empty"},
		{name: "empty json beside text", test: `cd "$LOGS/verifier"; : >reward.json; echo 1 >reward.txt`, err: "reward.json: it is empty"},
		{name: "not a number", test: `echo good >"$LOGS/verifier/reward.txt"`, err: `"good" is not a number`},
		{name: "not finite", test: `echo nan >"$LOGS/verifier/reward.txt"`, err: "not finite"},
		{name: "oversized", test: `head -c 70000 /dev/zero | tr '\0' 1 >"$LOGS/verifier/reward.txt"`, err: "larger than 65536 bytes"},
		{name: "a folder", test: `mkdir "$LOGS/verifier/reward.txt"`, err: "is a directory"},
		{name: "a pipe", test: `mkfifo "$LOGS/verifier/reward.txt"`, err: "not a regular file"},
		{name: "too slow", test: `echo 1 >"$LOGS/verifier/reward.txt"; sleep 60`, params: short, err: "ran for more than 1s"},
		{name: "a slow hook", test: sayYes, params: dataset.TerminalParams{Collect: []dataset.TerminalHook{{Command: "sleep 60", TimeoutSec: 1}}}, err: "a hook ran for more than 1s"},
	}
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		f := newFactory(t, env.Setup{Backend: b})
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				got, err := attempt(t, f, newTask("t", tt.test, tt.params))
				if tt.err != "" {
					if !errors.Is(err, dataset.ErrTask) || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("error %v, want the task's with %q", err, tt.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("rewards differ (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// TestPlainShell has the tests run where there is no bash.
func TestPlainShell(t *testing.T) {
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		task := newTask("t", `[ -z "$BASH_VERSION" ] && echo 1 >"$LOGS/verifier/reward.txt"`,
			dataset.TerminalParams{VerifierEnv: map[string]string{"PATH": "bin"}})
		got, err := attempt(t, newFactory(t, env.Setup{Backend: b}), task, "mkdir bin && ln -s /bin/sh bin/sh")
		if err != nil {
			t.Fatal(err)
		}
		if *got[0].Value != 1 {
			t.Errorf("reward %v, want 1", *got[0].Value)
		}
	})
}

// TestNearMisses names what an audit plays.
func TestNearMisses(t *testing.T) {
	task := newTask("t", sayYes, dataset.TerminalParams{}, "wrong/b.sh", "wrong/a.sh", "wrong/notes.txt", "solution/solve.sh")
	if diff := cmp.Diff([]string{"wrong/a.sh", "wrong/b.sh"}, terminal.NearMisses(task)); diff != "" {
		t.Errorf("near-misses (-want +got):\n%s", diff)
	}
	if got := terminal.NearMisses(dataset.Task{ID: "t"}); got != nil {
		t.Errorf("a task without a folder has %v", got)
	}
}

// TestSolutionEnvironment gives a solution its environment and its folder.
func TestSolutionEnvironment(t *testing.T) {
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		task := newTask("t", sayYes, dataset.TerminalParams{SolutionEnv: map[string]string{"WORD": "${WORD:-yes}"}}, "solution/extra")
		task.Files.(fstest.MapFS)["solution/solve.sh"] = &fstest.MapFile{
			Data: []byte(`[ -f "${0%/*}/extra" ] && echo "$WORD" >answer`), Mode: 0o644,
		}
		f := newFactory(t, env.Setup{Backend: b})
		if got := scoreOf(t, scripted(t, f, terminal.Solution), task); got != 1 {
			t.Errorf("reward %v, want 1", got)
		}
		e, err := scripted(t, f, "wrong/none.sh").New()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Reset(t.Context(), dataset.Episode{ID: "e", Task: task}); !errors.Is(err, dataset.ErrTask) {
			t.Errorf("a script that the task has not: %v", err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
