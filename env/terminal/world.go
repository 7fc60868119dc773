package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// Names in a task's folder.
const (
	environmentDir = "environment"
	testsDir       = "tests"
	testFile       = "tests/test.sh"
)

// world is one attempt.
type world struct {
	factory

	ep    dataset.Episode
	task  dataset.TerminalParams
	lines map[string]map[string]string // environments of the task, with the host's variables in place
	box   sandbox.Sandbox              // nil until Reset got so far
}

var (
	_ env.Env       = (*world)(nil)
	_ env.Sandboxed = (*world)(nil)
	_ env.Scored    = (*world)(nil)
)

// Environments of a task.
const (
	forAll      = "environment.env"
	forVerifier = "verifier.env"
	forSolution = "solution.env"
)

// Reset starts a sandbox and puts the task's files into it.
func (w *world) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w.ep = ep
	if err := w.readTask(); err != nil {
		return nil, err
	}
	messages, err := w.setup.Prompt(ep.Task)
	if err != nil {
		return nil, taskError(ep, "rendering the prompt: %w", err)
	}
	spec := w.spec()
	if err := spec.Validate(); err != nil {
		return nil, taskError(ep, "%w", err)
	}
	if w.box, err = w.setup.Backend.Start(ctx, spec); err != nil {
		return nil, err
	}
	if err := w.furnish(ctx); err != nil {
		return nil, err
	}
	if err := w.play(ctx); err != nil {
		return nil, err
	}
	return messages, nil
}

// readTask checks all that can be checked without a sandbox.
func (w *world) readTask() error {
	t := w.ep.Task
	if t.Files == nil {
		return taskError(w.ep, "it has no folder with tests; terminal tasks come from harbor:DIR or are embedded")
	}
	if info, err := fs.Stat(t.Files, testFile); err != nil || !info.Mode().IsRegular() {
		return taskError(w.ep, "it has no %s", testFile)
	}
	w.task = dataset.TerminalParams{}
	if err := json.Unmarshal([]byte(cmp.Or(t.Params, "{}")), &w.task); err != nil {
		return taskError(w.ep, "reading its parameters: %w", err)
	}
	w.lines = map[string]map[string]string{}
	for name, templates := range map[string]map[string]string{
		forAll: w.task.Env, forVerifier: w.task.VerifierEnv, forSolution: w.task.SolutionEnv,
	} {
		values, err := w.expand(templates)
		if err != nil {
			return taskError(w.ep, "%s: %w", name, err)
		}
		w.lines[name] = values
	}
	return nil
}

func (w *world) spec() sandbox.Spec {
	spec := w.setup.Spec
	spec.Memory = cmp.Or(w.task.Memory, spec.Memory)
	spec.Disk = cmp.Or(w.task.Storage, spec.Disk)
	spec.Workdir = cmp.Or(w.task.Workdir, spec.Workdir)
	if w.task.Network == "no-network" {
		spec.Network = sandbox.NetworkNone
	}
	if whole := seconds(w.task.AgentTimeoutSec); whole > 0 && (spec.Timeout == 0 || whole < spec.Timeout) {
		spec.Timeout = whole
	}
	spec.Env = maps.Clone(spec.Env)
	if spec.Env == nil {
		spec.Env = map[string]string{}
	}
	maps.Copy(spec.Env, w.lines[forAll])
	spec.Labels.Episode, spec.Labels.Attempt = w.ep.ID, w.ep.Attempt
	return spec
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// furnish uploads the task's files.
func (w *world) furnish(ctx context.Context) error {
	info, err := fs.Stat(w.ep.Task.Files, environmentDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	err = upload(ctx, w.box, w.box.Info().Workdir, imageless{w.ep.Task.Files}, environmentDir)
	if path, ok := errors.AsType[*fs.PathError](err); ok && ctx.Err() == nil {
		return taskError(w.ep, "putting its files into the sandbox: %w", path)
	}
	if err != nil {
		return fmt.Errorf("putting the files of task %q into the sandbox: %w", w.ep.Task.ID, err)
	}
	return nil
}

// Sandbox implements [env.Sandboxed].
func (w *world) Sandbox() sandbox.Sandbox { return w.box }

// Step takes a reply without tool calls as the end.
func (w *world) Step(context.Context, dataset.Message) (env.Result, error) {
	return env.Result{Done: true}, nil
}

// Close destroys the sandbox.
func (w *world) Close(ctx context.Context) error {
	if w.box == nil {
		return nil
	}
	return w.box.Close(ctx)
}
