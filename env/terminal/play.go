package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// Solution is the script in a task's folder that solves the task.
const Solution = "solution/solve.sh"

// NearMisses are the scripts in a task's folder that all but solve the task:
// what they leave is worth nothing.
func NearMisses(t dataset.Task) []string {
	if t.Files == nil {
		return nil
	}
	scripts, _ := fs.Glob(t.Files, "wrong/*.sh") // the pattern is a good one
	slices.Sort(scripts)
	return scripts
}

// Scripted is a factory of [New]'s, but its worlds play the script of their task
// that choose names in the agent's place before they begin: all that is left for
// an agent is to say that it is done. The script's folder is uploaded next to
// where the tests will lie, as /solution or /wrong. A task without the script is
// at fault. Calls of choose may overlap; where it names none, nothing is played.
func Scripted(f env.Factory, choose func(dataset.Task) string) (env.Factory, error) {
	own, ok := f.(factory)
	if !ok {
		return nil, errors.New("playing a script: the env is not a terminal")
	}
	own.choose = choose
	return own, nil
}

// play runs the script as the agent would: what it leaves is what counts, not
// how it exits.
func (w *world) play(ctx context.Context) error {
	if w.choose == nil {
		return nil
	}
	file := w.choose(w.ep.Task)
	if file == "" {
		return nil
	}
	if _, err := fs.Stat(w.ep.Task.Files, file); err != nil {
		return taskError(w.ep, "it has no %s", file)
	}
	folder, name := path.Split(file)
	dir := w.box.Info().Path("/" + path.Clean(folder))
	if err := upload(ctx, w.box, dir, w.ep.Task.Files, path.Clean(folder)); err != nil {
		return fmt.Errorf("putting %s of task %q into the sandbox: %w", folder, w.ep.Task.ID, err)
	}
	cmd := w.command(`if command -v bash >/dev/null 2>&1; then exec bash "$SCRIPT"; fi; exec sh "$SCRIPT"`, 0, 10*time.Minute)
	cmd.Fresh = false
	cmd.Env = map[string]string{"SCRIPT": path.Join(dir, name)}
	maps.Copy(cmd.Env, w.lines[forSolution])
	result, err := w.box.Exec(ctx, cmd)
	if err == nil && result.TimedOut {
		return taskError(w.ep, "%s ran for more than %v", file, cmd.Timeout)
	}
	return err
}
