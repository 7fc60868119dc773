package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/env/sandbox"
)

// oneBox is a backend whose sandboxes are nothing.
type oneBox struct{ sandbox.Backend }

func (oneBox) Start(context.Context, sandbox.Spec) (sandbox.Sandbox, error) { return nothing{}, nil }

type nothing struct{ sandbox.Sandbox }

func (nothing) Close(context.Context) error { return nil }

// TestWaitForSandboxIsNoWork has an episode wait for a sandbox longer than it may
// work.
func TestWaitForSandboxIsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sandbox.Limit(oneBox{}, 1, model.Pause)
		first, err := b.Start(t.Context(), sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Hour, func() { _ = first.Close(t.Context()) })
		ctx, clock, cancel := model.WithClock(t.Context(), time.Minute)
		defer cancel()
		second, err := b.Start(ctx, sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		if worked := clock.Worked(); worked != 0 || ctx.Err() != nil {
			t.Errorf("the wait counts as %v of work, and the episode ended with %v", worked, context.Cause(ctx))
		}
		if err := second.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
