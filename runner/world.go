package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// abandonAfter is how long a call that was told to stop may take to obey before
// the run goes on without it.
const abandonAfter = 10 * time.Second

// abandonedError tells that a call did not return in time after its context was
// done. What it was working on may not be used any more.
type abandonedError struct {
	call  string
	cause error
}

func (e *abandonedError) Error() string {
	return fmt.Sprintf("%s did not return within %v of being stopped (%v)", e.call, abandonAfter, e.cause)
}

func (e *abandonedError) Unwrap() error { return e.cause }

func abandoned(err error) bool {
	_, ok := errors.AsType[*abandonedError](err)
	return ok
}

// returned is what a call on another goroutine came back with.
type returned[T any] struct {
	value  T
	err    error
	caught *panicked
}

// protect calls f and turns a panic into a value.
func protect[T any](reason dataset.ExitReason, f func() (T, error)) (r returned[T]) {
	defer func() {
		if v := recover(); v != nil {
			r.caught = asPanicked(v, reason)
		}
	}()
	r.value, r.err = f()
	return r
}

// await waits for a call on another goroutine, and for abandonAfter once ctx is
// done. The other goroutine shares nothing with the caller but done, so that an
// abandoned call races with nothing.
func await[T any](ctx context.Context, call string, done <-chan returned[T]) (r returned[T]) {
	select {
	case r = <-done:
		return r
	case <-ctx.Done():
	}
	margin := time.NewTimer(abandonAfter)
	defer margin.Stop()
	select {
	case r = <-done:
	case <-margin.C:
		r.err = &abandonedError{call: call, cause: context.Cause(ctx)}
	}
	return r
}

// world is an Env as the rollout gets it. Each call to the Env runs on a
// goroutine that lives as long as the call, so that one that ignores its context
// can be given up while the contract holds: one call at a time, and the closing
// when the lost call has returned after all.
//
// [world.face] gives it every optional interface of package env that a rollout
// asks for.
type world struct {
	closeTimeout time.Duration
	using        sync.Mutex     // held by the goroutine of a call to the env
	env          env.Env        // nil until open; under using
	tools        sync.WaitGroup // tool calls at work
	lost         atomic.Bool    // a call was abandoned: the env is not to be used any more
}

var (
	_ env.Env    = (*world)(nil)
	_ env.Tooled = (*world)(nil)
)

func newWorld(closeTimeout time.Duration) *world { return &world{closeTimeout: closeTimeout} }

// onWorld runs f on a goroutine of its own and waits for it.
func onWorld[T any](ctx context.Context, w *world, call string, f func() (T, error)) (T, error) {
	if w.lost.Load() {
		var zero T
		return zero, fmt.Errorf("%s: an earlier call to the env never returned", call)
	}
	done := make(chan returned[T], 1)
	go func() {
		w.using.Lock()
		defer w.using.Unlock()
		done <- protect(dataset.ExitEnvPanic, f)
	}()
	return accept(w, await(ctx, call, done))
}

// accept is the end of a call to the env: a panic goes on in the caller's
// goroutine, an abandoned call makes the world unusable.
func accept[T any](w *world, r returned[T]) (T, error) {
	if r.caught != nil {
		panic(r.caught)
	}
	if abandoned(r.err) {
		w.lost.Store(true)
	}
	return r.value, r.err
}

// open makes the env.
func (w *world) open(ctx context.Context, factory env.Factory) error {
	_, err := onWorld(ctx, w, "New", func() (struct{}, error) {
		e, err := factory.New()
		if err == nil {
			w.env = e
		}
		return struct{}{}, err
	})
	return err
}

// sandboxed is a world whose env has a sandbox.
type sandboxed struct {
	*world
	env.Sandboxed
}

// face is the open world as the rollout gets it.
func (w *world) face() env.Env {
	if s, ok := w.env.(env.Sandboxed); ok {
		return sandboxed{w, s}
	}
	return w
}

func (w *world) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	return onWorld(ctx, w, "resetting the env", func() ([]dataset.Message, error) {
		return w.env.Reset(ctx, ep)
	})
}

func (w *world) Step(ctx context.Context, reply dataset.Message) (env.Result, error) {
	return onWorld(ctx, w, "a step of the env", func() (env.Result, error) {
		return w.env.Step(ctx, reply)
	})
}

// scored reports whether the env scores, which needs it live.
func (w *world) scored() bool {
	_, ok := w.env.(env.Scored)
	return ok
}

// score scores view, which belongs to the env from now on.
func (w *world) score(ctx context.Context, view *dataset.Trajectory) ([]dataset.Reward, error) {
	return onWorld(ctx, w, "scoring in the env", func() ([]dataset.Reward, error) {
		return w.env.(env.Scored).Score(ctx, view)
	})
}

// Tools are the env's own tools, none if it has none. Each call has a goroutine
// of its own, since they may overlap.
func (w *world) Tools() []env.Tool {
	tooled, ok := w.env.(env.Tooled)
	if !ok {
		return nil
	}
	tools := slices.Clone(tooled.Tools())
	for i, t := range tools {
		if t.Call != nil {
			tools[i].Call = w.guard(t.Name, t.Call)
		}
		if t.Bind != nil {
			tools[i].Bind = guardBound(w, t.Name, t.Bind)
		}
	}
	return tools
}

// guardBound is generic so that the runner need not know what a tool is bound
// to.
func guardBound[S any](w *world, name string, bind func(S) env.ToolCall) func(S) env.ToolCall {
	return func(to S) env.ToolCall { return w.guard(name, bind(to)) }
}

func (w *world) guard(name string, call env.ToolCall) env.ToolCall {
	return func(ctx context.Context, args json.RawMessage) (env.ToolResult, error) {
		done := make(chan returned[env.ToolResult], 1)
		w.tools.Go(func() {
			done <- protect(dataset.ExitToolPanic, func() (env.ToolResult, error) { return call(ctx, args) })
		})
		return accept(w, await(ctx, "tool "+name, done))
	}
}

// Close closes the env, detached from the end of ctx. When a call is lost, the
// closing is left behind for when it returns, and Close returns at once.
func (w *world) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if w.lost.Load() {
		go w.shut(ctx) // nobody is left to tell
		return errors.New("an earlier call never returned: the env is closed when it does")
	}
	ctx, cancel := context.WithTimeout(ctx, w.closeTimeout)
	defer cancel()
	done := make(chan returned[struct{}], 1)
	go func() { done <- w.shut(ctx) }()
	r := await(ctx, "closing the env", done)
	if r.caught != nil {
		return r.caught
	}
	return r.err
}

// shut waits for what still uses the env, perhaps long after Close.
func (w *world) shut(ctx context.Context) returned[struct{}] {
	w.using.Lock()
	defer w.using.Unlock()
	w.tools.Wait()
	if w.env == nil {
		return returned[struct{}]{}
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.closeTimeout)
		defer cancel()
	}
	return protect(dataset.ExitEnvPanic, func() (struct{}, error) { return struct{}{}, w.env.Close(ctx) })
}
