package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/runner"
)

// rehearsal plays episodes up to their first model call, with the real prompt,
// env, loop and tools, and keeps the request that would be sent. Nothing leaves
// and no sandbox starts. One goroutine uses it.
type rehearsal struct {
	request  model.Request // of the latest episode
	problems []error       // why models cannot be made
}

var errRehearsed = errors.New("rehearsed: nothing is sent")

// model stands in for one that was made, or could not be.
func (r *rehearsal) model(err error) model.Model {
	if err != nil {
		r.problems = append(r.problems, err)
	}
	return r
}

// Generate implements model.Model.
func (r *rehearsal) Generate(_ context.Context, req model.Request) (model.Response, error) {
	r.request = req
	return model.Response{}, errRehearsed
}

// first is the first request of a task's episode in a cell.
func (r *rehearsal) first(ctx context.Context, c *runner.Cell, seed int64, t dataset.Task) (req model.Request, err error) {
	world, err := c.Env.New()
	if err != nil {
		return req, fmt.Errorf("making the world of task %q: %w", t.ID, err)
	}
	defer func() { err = errors.Join(err, world.Close(context.WithoutCancel(ctx))) }()
	group := dataset.GroupID(seed, t, c.Variant.Hash, 0)
	ep := dataset.Episode{
		ID: dataset.EpisodeID(group, 0), GroupID: group, Variant: c.Variant.Name, VariantHash: c.Variant.Hash,
		Task: t, Seed: dataset.EpisodeSeed(seed, t, 0),
	}
	tr := &dataset.Trajectory{Episode: ep, StartedAt: time.Now()}
	r.request = model.Request{}
	err = c.Rollout.Run(ctx, world, ep, tr)
	if errors.Is(err, errRehearsed) {
		return r.request, nil
	}
	if ctx.Err() != nil {
		return req, context.Cause(ctx)
	}
	return req, fmt.Errorf("task %q ends before its first model call: %s: %s", t.ID, tr.ExitReason, tr.Error)
}

// noSandboxes is a backend whose sandboxes are nowhere: what is put into them is
// dropped.
type noSandboxes struct{}

var _ sandbox.Backend = noSandboxes{}

// Start implements sandbox.Backend.
func (noSandboxes) Start(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	return noSandbox{workdir: cmp.Or(spec.Workdir, "/work")}, nil
}

// Close implements sandbox.Backend.
func (noSandboxes) Close(context.Context) error { return nil }

type noSandbox struct{ workdir string }

func (noSandbox) Exec(context.Context, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{}, nil
}

func (noSandbox) ReadFile(_ context.Context, name string, _, _ int64) (sandbox.File, error) {
	return sandbox.File{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (noSandbox) WriteFile(context.Context, string, []byte, fs.FileMode) error { return nil }

func (noSandbox) Upload(_ context.Context, _ string, tree io.Reader) error {
	_, err := io.Copy(io.Discard, tree)
	return err
}

func (noSandbox) Download(_ context.Context, name string, _ io.Writer) error {
	return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (noSandbox) Kill(context.Context) error  { return nil }
func (noSandbox) Close(context.Context) error { return nil }
func (s noSandbox) Info() sandbox.Info        { return sandbox.Info{Backend: "none", Workdir: s.workdir} }
