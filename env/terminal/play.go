package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// Script is a script that a task's folder holds, or none: doing nothing.
type Script struct {
	File string  // solution/solve.sh, wrong/NAME.sh; "": nothing is done
	Want float64 // the reward that it is to get
}

// Name is the script's name in reports.
func (s Script) Name() string {
	if s.File == "" {
		return "nothing"
	}
	return strings.TrimSuffix(s.File, ".sh")
}

// Scripts lists the scripts by which a task is audited: its solution, which is
// to get 1, and nothing and every near-miss of wrong/, which are to get 0.
func Scripts(t dataset.Task) ([]Script, error) {
	if t.Files == nil {
		return nil, fmt.Errorf("task %q has no folder", t.ID)
	}
	wrong, err := fs.Glob(t.Files, "wrong/*.sh")
	if err != nil {
		return nil, fmt.Errorf("looking for the scripts of task %q: %w", t.ID, err)
	}
	slices.Sort(wrong)
	var scripts []Script
	if _, err := fs.Stat(t.Files, "solution/solve.sh"); err == nil {
		scripts = append(scripts, Script{File: "solution/solve.sh", Want: 1})
	}
	scripts = append(scripts, Script{})
	for _, file := range wrong {
		scripts = append(scripts, Script{File: file})
	}
	return scripts, nil
}

// Play plays an attempt with a script in the agent's place, from Reset to
// Close, and returns its rewards. The factory is one of [New]. The script's
// folder is uploaded next to the tests, as /solution or /wrong.
func Play(ctx context.Context, f env.Factory, ep dataset.Episode, s Script) (rewards []dataset.Reward, err error) {
	e, err := f.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	w, ok := e.(*world)
	if !ok {
		return nil, errors.New("playing a script: the env is not a terminal")
	}
	if _, err := w.Reset(ctx, ep); err != nil {
		return nil, err
	}
	if err := w.play(ctx, s); err != nil {
		return nil, fmt.Errorf("playing %s of task %q: %w", s.Name(), ep.Task.ID, err)
	}
	return w.Score(ctx, &dataset.Trajectory{Episode: ep, ExitReason: dataset.ExitAnswered})
}

// play runs the script as the agent would: what it leaves is what counts, not
// how it exits.
func (w *world) play(ctx context.Context, s Script) error {
	if s.File == "" {
		return nil
	}
	folder, name := path.Split(s.File)
	dir := w.box.Info().Path("/" + path.Clean(folder))
	if err := upload(ctx, w.box, dir, w.ep.Task.Files, path.Clean(folder)); err != nil {
		return err
	}
	cmd := w.command(`if command -v bash >/dev/null 2>&1; then exec bash "$SCRIPT"; fi; exec sh "$SCRIPT"`, 0, 10*time.Minute)
	cmd.Fresh = false
	cmd.Env = map[string]string{"SCRIPT": path.Join(dir, name)}
	maps.Copy(cmd.Env, w.lines[forSolution])
	result, err := w.box.Exec(ctx, cmd)
	if err == nil && result.TimedOut {
		return fmt.Errorf("it ran for more than %v", cmd.Timeout)
	}
	return err
}
