// Package agent is the loop in which a model acts in a world: it asks the
// model, runs the tools that the reply calls or hands the reply to the env, and
// goes on until something ends the episode. Each attempt ends for exactly one
// [dataset.ExitReason].
//
// [New] makes a [Loop] from a model and tools; [Loop.Run] plays one attempt.
package agent

import (
	"context"
	"errors"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// Limits end an episode; what it left is scored all the same. They are checked
// before each model call, so that a call may carry the sum beyond them. A zero
// field is no limit.
type Limits struct {
	Time        time.Duration // working time: waiting for a slot, Retry-After and backoff do not count
	Turns       int           // model calls, those with a discarded reply included; a retried request is one call
	Tokens      int64         // all four counters of the policy's calls
	CostNanoUSD int64         // of the policy's calls; with it, a call whose price is not known ends the attempt as infra
	Bytes       int64         // of the recorded messages
}

// Options of a Loop.
type Options struct {
	Model        model.Model // the policy
	Tools        []env.Tool  // of the config; the env may add its own
	SystemPrompt string      // "": none but the env's
	Sampling     dataset.Sampling
	Limits       Limits
}

// Loop plays attempts. It is safe for concurrent use; one Loop serves all
// episodes of a variant.
type Loop struct {
	model    model.Model
	system   string
	sampling dataset.Sampling
	limits   Limits
	tools    *toolbox
}

// New makes a Loop. It refuses tools that are incomplete or share a name.
func New(o Options) (*Loop, error) {
	if o.Model == nil {
		return nil, errors.New("agent: no model")
	}
	tools, err := newToolbox(o.Tools)
	if err != nil {
		return nil, err
	}
	return &Loop{model: o.Model, system: o.SystemPrompt, sampling: o.Sampling, limits: o.Limits, tools: tools}, nil
}

// Run plays one attempt in e, from Reset to the exit reason. The caller has set
// tr.Episode and tr.StartedAt, and closes e.
//
// At every moment tr holds what has happened and what was paid for, so that a
// panic loses nothing. Panics of the env and of tools end the attempt as
// theirs; any other one goes through. What a limit or ctx cuts off ends by the
// cause of ctx. The error repeats what tr says of an infrastructure failure.
func (l *Loop) Run(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	ctx, clock, cancel := model.WithClock(ctx, l.limits.Time)
	defer cancel()
	defer func() { tr.Working = clock.Worked() }()
	a := attempt{loop: l, env: e, ep: &ep, tr: tr, tools: l.tools}
	return a.close(a.play(ctx))
}
