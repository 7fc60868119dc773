package terminal_test

import (
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/source"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/terminal"
)

// minBundled is how many embedded tasks there are at least.
const minBundled = 26

func bundledTasks(t *testing.T) []dataset.Task {
	t.Helper()
	s, err := source.Open(source.Options{Path: "bundled:terminal"})
	if err != nil {
		t.Fatal(err)
	}
	var tasks []dataset.Task
	for task, err := range s.Tasks() {
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	for _, skip := range s.Skipped() {
		t.Logf("skipped %s: %s", skip.Task, skip.Reason)
	}
	if n := len(tasks) + len(s.Skipped()); n < minBundled {
		t.Errorf("%d embedded tasks, want at least %d", n, minBundled)
	}
	return tasks
}

// TestBundled plays the solution of each embedded task, nothing, and each
// near-miss; in short mode no near-miss.
func TestBundled(t *testing.T) {
	tasks := bundledTasks(t)
	worlds(t, func(t *testing.T, b sandbox.Backend) {
		t.Helper()
		f := newFactory(t, env.Setup{Backend: b})
		for _, task := range tasks {
			scripts, err := terminal.Scripts(task)
			if err != nil {
				t.Fatal(err)
			}
			if len(scripts) < 3 {
				t.Errorf("%s: only %d scripts: a solution or a near-miss is missing", task.ID, len(scripts))
			}
			if testing.Short() {
				scripts = scripts[:2]
			}
			t.Run(task.ID, func(t *testing.T) {
				t.Parallel()
				for _, s := range scripts {
					plays(t, f, task, s)
				}
				// An oracle hands the solution to the agent's own shell.
				if got := scoreOf(t, f, task, task.Target); got != 1 {
					t.Errorf("the solution in the agent's shell: reward %v, want 1", got)
				}
			})
		}
	})
}

func plays(t *testing.T, f env.Factory, task dataset.Task, s terminal.Script) {
	t.Helper()
	rewards, err := terminal.Play(t.Context(), f, dataset.Episode{ID: "e", Task: task}, s)
	if err != nil {
		t.Errorf("%s: %v", s.Name(), err)
		return
	}
	if len(rewards) != 1 || rewards[0].Name != "reward" || !rewards[0].Chosen || rewards[0].Source != dataset.FromEnv {
		t.Errorf("%s: rewards %+v", s.Name(), rewards)
		return
	}
	if got := *rewards[0].Value; got != s.Want {
		t.Errorf("%s: reward %v, want %v; the verifier said:\n%s", s.Name(), got, s.Want, rewards[0].Explanation)
	}
	if s.Want == 0 && rewards[0].Explanation == "" {
		t.Errorf("%s: the verifier does not say what is wrong", s.Name())
	}
}
