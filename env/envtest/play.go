package envtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// transcript is what an env showed in one episode, without times.
type transcript struct {
	First   []dataset.Message
	Tools   []toolSpec
	Results []env.Result
	Scores  []dataset.Reward
}

// toolSpec is a tool without its function, which cannot be compared.
type toolSpec struct {
	Name, Description, Parameters string
	Callable                      bool
}

// withFactory calls f with a fresh factory and closes it.
func withFactory(ctx context.Context, c Case, f func(env.Factory) error) (err error) {
	factory, err := c.New()
	if err != nil {
		return fmt.Errorf("making the factory: %w", err)
	}
	defer func() {
		if cerr := factory.Close(context.WithoutCancel(ctx)); cerr != nil {
			err = errors.Join(err, fmt.Errorf("closing the factory: %w", cerr))
		}
	}()
	return f(factory)
}

// withEnv calls f with a new env and closes it, as the harness does: once,
// even after a panic, with a context that outlives ctx.
func withEnv(ctx context.Context, factory env.Factory, f func(env.Env) error) (err error) {
	e, err := factory.New()
	if err != nil {
		return fmt.Errorf("making an env: %w", err)
	}
	defer func() {
		if cerr := guard("Close", func() error { return e.Close(context.WithoutCancel(ctx)) }); cerr != nil {
			err = errors.Join(err, cerr)
		}
	}()
	return guard("the env", func() error { return f(e) })
}

// guard makes an error of a panic, so that one broken rule does not hide the
// others.
func guard(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panics: %v", what, v)
		}
	}()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// play plays an episode from Reset to the end in a new env.
func play(ctx context.Context, c Case, factory env.Factory, ep dataset.Episode) (transcript, error) {
	var seen transcript
	err := withEnv(ctx, factory, func(e env.Env) error {
		return converse(ctx, c, e, ep, &seen)
	})
	if err != nil {
		return transcript{}, fmt.Errorf("episode %q: %w", ep.ID, err)
	}
	return seen, nil
}

func converse(ctx context.Context, c Case, e env.Env, ep dataset.Episode, seen *transcript) error {
	first, err := e.Reset(ctx, ep)
	if err != nil {
		return fmt.Errorf("Reset: %w", err)
	}
	seen.First = timeless(first)
	seen.Tools = tools(e)
	heard := seen.First
	for range c.Steps {
		reply := dataset.Message{Role: dataset.Assistant, Content: c.Reply(ep, heard), Policy: true, Agent: dataset.AgentPolicy}
		result, err := e.Step(ctx, reply)
		if err != nil {
			return fmt.Errorf("Step: %w", err)
		}
		result.Messages = timeless(result.Messages)
		seen.Results = append(seen.Results, result)
		heard = append(append(heard, reply), result.Messages...)
		if result.Done {
			break
		}
	}
	return score(ctx, e, ep, heard, seen)
}

func score(ctx context.Context, e env.Env, ep dataset.Episode, heard []dataset.Message, seen *transcript) error {
	scored, ok := e.(env.Scored)
	if !ok {
		return nil
	}
	rewards, err := scored.Score(ctx, &dataset.Trajectory{Episode: ep, Messages: heard, ExitReason: dataset.ExitAnswered})
	if err != nil {
		return fmt.Errorf("Score: %w", err)
	}
	for i := range rewards {
		rewards[i].CreatedAt = time.Time{}
	}
	seen.Scores = rewards
	return nil
}

func tools(e env.Env) []toolSpec {
	tooled, ok := e.(env.Tooled)
	if !ok {
		return nil
	}
	var specs []toolSpec
	for _, t := range tooled.Tools() {
		specs = append(specs, toolSpec{t.Name, t.Description, string(t.Parameters), t.Call != nil})
	}
	return specs
}

func timeless(messages []dataset.Message) []dataset.Message {
	out := make([]dataset.Message, len(messages))
	for i, m := range messages {
		m.CreatedAt = time.Time{}
		out[i] = m
	}
	return out
}
