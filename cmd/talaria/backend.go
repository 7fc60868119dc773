package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/local"
)

// sandboxedEnvs are the envs that have commands run.
func sandboxedEnvs() map[string]bool { return map[string]bool{"terminal": true} }

// needsSandboxes tells whether some env of the config has commands run.
func needsSandboxes(cfg *configs.Run) bool {
	return slices.ContainsFunc(cfg.Sources(), func(s configs.Source) bool { return sandboxedEnvs()[s.Env] })
}

// sandboxes starts the backend of a run when the first env asks for it.
type sandboxes struct {
	cfg     *configs.Run
	log     *slog.Logger
	backend sandbox.Backend // nil until then
	// rehearsal stands in for the backend; nil: the real one.
	rehearsal sandbox.Backend
}

// setup is what an env's Setup gets: nil where the env needs no sandbox.
func (s *sandboxes) setup(ctx context.Context, run *configs.Run, envName string) (sandbox.Backend, sandbox.Spec, error) {
	if !sandboxedEnvs()[envName] {
		return nil, sandbox.Spec{}, nil
	}
	if s.rehearsal != nil {
		return s.rehearsal, s.spec(run), nil
	}
	if s.backend == nil {
		allowed, err := s.unconfined()
		if err != nil {
			return nil, sandbox.Spec{}, err
		}
		if err := s.reap(ctx); err != nil {
			return nil, sandbox.Spec{}, err
		}
		b, err := local.New(ctx, local.Options{AllowUnconfined: allowed, Ahead: 1})
		if err != nil {
			return nil, sandbox.Spec{}, fmt.Errorf("%s: %w", run.Place("sandbox.backend"), err)
		}
		s.backend = sandbox.Limit(b, s.cfg.Limits.Concurrency.Sandboxes, model.Pause)
	}
	return s.backend, s.spec(run), nil
}

func (s *sandboxes) spec(run *configs.Run) sandbox.Spec {
	c := run.Sandbox
	return sandbox.Spec{
		Network: c.Network, Memory: int64(c.Memory), Disk: int64(c.Disk), Pids: c.Pids, Timeout: c.Timeout,
		Labels: sandbox.Labels{Run: run.Name},
	}
}

// reap removes what runs have left that were killed.
func (s *sandboxes) reap(ctx context.Context) error {
	gone, err := local.Reap(ctx, local.Options{})
	if err != nil {
		return fmt.Errorf("removing the sandboxes of runs that were killed: %w", err)
	}
	if len(gone) > 0 {
		s.log.Info("removed sandboxes of runs that were killed", slog.Int("count", len(gone)))
	}
	return nil
}

// unconfined tells whether commands may run outside of a sandbox where this
// machine has none. "bundled" allows it for tasks that are embedded in this
// program, played by models that are too.
func (s *sandboxes) unconfined() (bool, error) {
	switch s.cfg.Sandbox.AllowUnconfined {
	case configs.UnconfinedAlways:
		return true, nil
	case configs.UnconfinedBundled:
	default:
		return false, nil
	}
	for _, src := range s.cfg.Sources() {
		if sandboxedEnvs()[src.Env] && !strings.HasPrefix(src.Path, "bundled:") {
			return false, nil
		}
	}
	variants, err := s.cfg.Variants()
	if err != nil {
		return false, err
	}
	for _, v := range variants {
		if !strings.HasPrefix(v.Run.Agent.Model, "scripted/") {
			return false, nil
		}
	}
	return true, nil
}

func (s *sandboxes) close(ctx context.Context) error {
	if s.backend == nil {
		return nil
	}
	return s.backend.Close(ctx)
}
