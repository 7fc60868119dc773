package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// attempt is one attempt being played, on one goroutine.
type attempt struct {
	loop  *Loop
	env   env.Env
	ep    *dataset.Episode
	tr    *dataset.Trajectory
	tools *toolbox

	turn  int   // model calls begun
	call  int   // index of the last model call's span
	bytes int64 // of tr.Messages

	// Defective replies in a row.
	emptyReplies int
	badArguments int
	unknownTools int
}

// play goes through the stages of the loop. Each returns nil to go on.
func (a *attempt) play(ctx context.Context) *end {
	if stop := a.setup(ctx); stop != nil {
		return stop
	}
	var resp model.Response // one for all calls: beneath a call the stack is deep
	for {
		if stop := a.limit(ctx); stop != nil {
			return stop
		}
		if stop := a.generate(ctx, &resp); stop != nil {
			return stop
		}
		if stop := a.take(ctx, resp.Message); stop != nil {
			return stop
		}
	}
}

// setup makes the world and begins the conversation.
func (a *attempt) setup(ctx context.Context) *end {
	a.tr.Spans = slices.Grow(a.tr.Spans, 8) // of some turns: growing later copies all
	span := a.begin(dataset.SpanSetup, "setup", "setup")
	var first []dataset.Message
	err := guard(func() (err error) {
		first, err = a.env.Reset(ctx, *a.ep)
		return err
	})
	a.tr.Setup += a.finish(ctx, span, err)
	if err != nil {
		return failure(ctx, err, dataset.ExitResetError, dataset.ExitEnvPanic)
	}
	if stop := a.addTools(); stop != nil {
		return stop
	}
	if stop := a.bindTools(); stop != nil {
		return stop
	}
	if len(first) == 0 {
		return &end{reason: dataset.ExitInfraError, err: errors.New("the env began with no message")}
	}
	a.tr.Messages = slices.Grow(a.tr.Messages, len(first)+6) // likewise
	if a.loop.system != "" {
		a.keep(dataset.Message{Role: dataset.System, Content: a.loop.system, CreatedAt: time.Now()})
	}
	a.receive(first)
	return nil
}

// addTools merges the env's own tools, if it has any, with the config's.
func (a *attempt) addTools() *end {
	tooled, ok := a.env.(env.Tooled)
	if !ok {
		return nil
	}
	var own []env.Tool
	err := guard(func() error {
		own = tooled.Tools()
		return nil
	})
	if err != nil {
		return &end{reason: dataset.ExitEnvPanic, err: err}
	}
	if len(own) == 0 {
		return nil
	}
	if a.tools, err = a.loop.tools.with(own); err != nil {
		return &end{reason: dataset.ExitInfraError, err: fmt.Errorf("adding the env's tools: %w", err)}
	}
	return nil
}

// bindTools gives the tools that act in a sandbox the env's, and records what it
// enforces.
func (a *attempt) bindTools() *end {
	var box sandbox.Sandbox
	if e, ok := a.env.(env.Sandboxed); ok {
		box = e.Sandbox()
	}
	if box == nil {
		if a.tools.needsSandbox() {
			return &end{reason: dataset.ExitInfraError, err: errors.New("the tools act in a sandbox, and the env has none")}
		}
		return nil
	}
	info := box.Info()
	a.tr.SandboxBackend, a.tr.SandboxImage, a.tr.SandboxEnforced = info.Backend, info.Image, info.Enforced
	if a.tools.needsSandbox() {
		a.tools = a.tools.bind(box)
	}
	return nil
}

// step hands a text reply to the env.
func (a *attempt) step(ctx context.Context, position int) *end {
	span := a.begin(dataset.SpanEnv, a.spanID(dataset.SpanEnv), "step")
	var result env.Result
	err := guard(func() (err error) {
		result, err = a.env.Step(ctx, a.tr.Messages[position])
		return err
	})
	a.tr.Tool += a.finish(ctx, span, err)
	if err != nil {
		return failure(ctx, err, dataset.ExitEnvError, dataset.ExitEnvPanic)
	}
	a.receive(result.Messages)
	a.reward(result.Rewards)
	switch {
	case result.Done:
		answer := a.tr.Messages[position].Content
		a.tr.Answer = &answer
		return over(dataset.ExitAnswered)
	case len(result.Messages) == 0:
		return &end{reason: dataset.ExitInfraError, err: errors.New("the env said nothing and was not done")}
	}
	return nil
}

// receive appends messages of the env, which the policy did not sample.
func (a *attempt) receive(messages []dataset.Message) {
	now := time.Now()
	for _, m := range messages {
		m.Policy, m.Turn = false, a.turn
		if m.CreatedAt.IsZero() {
			m.CreatedAt = now
		}
		a.keep(m)
	}
}

func (a *attempt) reward(rewards []dataset.Reward) {
	turn := a.turn
	for _, r := range rewards {
		r.Source = cmp.Or(r.Source, dataset.FromEnv)
		if r.Turn == nil {
			r.Turn = &turn
		}
		a.tr.Rewards = append(a.tr.Rewards, r)
	}
}

// keep appends a message and returns its position.
func (a *attempt) keep(m dataset.Message) int {
	a.bytes += int64(len(m.Content) + len(m.Parts) + len(m.Reasoning) + len(m.ReasoningSignature))
	for i := range m.ToolCalls {
		a.bytes += int64(len(m.ToolCalls[i].Name) + len(m.ToolCalls[i].Arguments))
	}
	a.tr.Messages = append(a.tr.Messages, m)
	return len(a.tr.Messages) - 1
}

// close records why the attempt ended.
func (a *attempt) close(stop *end) error {
	a.tr.ExitReason, a.tr.ErrorClass = stop.reason, stop.class
	if stop.err == nil {
		return nil
	}
	a.tr.Error = stop.err.Error()
	if stop.reason.Outcome() == dataset.OutcomeInfra {
		return stop.err
	}
	return nil
}
