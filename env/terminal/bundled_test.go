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
			wrong := terminal.NearMisses(task)
			if len(wrong) == 0 {
				t.Errorf("%s has no near-miss", task.ID)
			}
			if testing.Short() {
				wrong = nil
			}
			t.Run(task.ID, func(t *testing.T) {
				t.Parallel()
				plays(t, f, task, terminal.Solution, 1)
				plays(t, f, task, "", 0)
				for _, script := range wrong {
					plays(t, f, task, script, 0)
				}
				// An oracle hands the solution to the agent's own shell.
				if got := scoreOf(t, f, task, task.Target); got != 1 {
					t.Errorf("the solution in the agent's shell: reward %v, want 1", got)
				}
			})
		}
	})
}

func plays(t *testing.T, f env.Factory, task dataset.Task, script string, want float64) {
	t.Helper()
	rewards, err := attempt(t, scripted(t, f, script), task)
	if err != nil {
		t.Errorf("%s: %v", script, err)
		return
	}
	if len(rewards) != 1 || rewards[0].Name != "reward" || !rewards[0].Chosen || rewards[0].Source != dataset.FromEnv {
		t.Errorf("%s: rewards %+v", script, rewards)
		return
	}
	if got := *rewards[0].Value; got != want {
		t.Errorf("%s: reward %v, want %v; the verifier said:\n%s", script, got, want, rewards[0].Explanation)
	}
	if want == 0 && rewards[0].Explanation == "" {
		t.Errorf("%s: the verifier does not say what is wrong", script)
	}
}
