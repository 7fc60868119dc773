// Package answer is the env of questions with a checkable answer: the first
// text reply is the answer. It has no world and gives no reward of its own;
// scorers compare the answer with the task's target.
//
// [New] is its [env.Constructor].
package answer

import (
	"context"
	"errors"
	"fmt"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

var _ env.Constructor = New

// params are the env's keys in the config: there are none.
type params struct{}

// New makes the factory. It needs Setup.Prompt and refuses any parameter.
func New(setup env.Setup) (env.Factory, error) {
	if setup.Prompt == nil {
		return nil, errors.New("env answer: no prompt")
	}
	if setup.Decode != nil {
		if err := setup.Decode(new(params)); err != nil {
			return nil, fmt.Errorf("env answer: %w", err)
		}
	}
	return factory{prompt: setup.Prompt}, nil
}

type factory struct {
	prompt func(dataset.Task) ([]dataset.Message, error)
}

func (f factory) New() (env.Env, error)     { return question(f), nil }
func (factory) Close(context.Context) error { return nil }

// question is one task being asked.
type question struct {
	prompt func(dataset.Task) ([]dataset.Message, error)
}

// Reset asks the question. A task that the prompt cannot render is at fault
// itself.
func (q question) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	messages, err := q.prompt(ep.Task)
	if err != nil {
		return nil, fmt.Errorf("%w: rendering the prompt of task %q: %w", dataset.ErrTask, ep.Task.ID, err)
	}
	return messages, nil
}

// Step takes the reply as the answer.
func (question) Step(context.Context, dataset.Message) (env.Result, error) {
	return env.Result{Done: true}, nil
}

func (question) Close(context.Context) error { return nil }
