package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/runner"
)

// factory makes riddles, which share nothing.
type factory struct{}

func (factory) New() (env.Env, error)       { return riddle{}, nil }
func (factory) Close(context.Context) error { return nil }

// riddle is an env of one question.
type riddle struct{}

func (riddle) Reset(_ context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	return []dataset.Message{{Role: dataset.User, Content: ep.Task.Input}}, nil
}

func (riddle) Step(context.Context, dataset.Message) (env.Result, error) {
	return env.Result{Done: true}, nil
}

func (riddle) Close(context.Context) error { return nil }

// shout is a rollout whose policy answers every question in capitals.
type shout struct{}

func (shout) Run(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
	messages, err := e.Reset(ctx, ep)
	if err != nil {
		return err
	}
	tr.Messages = messages
	reply := dataset.Message{
		Role: dataset.Assistant, Policy: true, Agent: dataset.AgentPolicy, Turn: 1,
		Content: strings.ToUpper(messages[0].Content),
	}
	tr.Messages = append(tr.Messages, reply)
	if _, err := e.Step(ctx, reply); err != nil {
		return err
	}
	tr.ExitReason = dataset.ExitEnvDone
	return nil
}

// exact is a scorer that compares the last reply with the task's target.
type exact struct{}

func (exact) Score(_ context.Context, t dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
	value := 0.0
	if tr.FinalText() == t.Target {
		value = 1
	}
	return []dataset.Reward{{Name: "exact", Value: &value, Chosen: true}}, nil
}

// printer is a sink that records nothing but lines.
type printer struct{ lines []string }

func (p *printer) Write(_ context.Context, trs []*dataset.Trajectory) error {
	for _, tr := range trs {
		p.lines = append(p.lines, fmt.Sprintf("%s: %s, reward %v", tr.Episode.Task.ID, tr.FinalText(), *tr.Reward))
	}
	return nil
}

func (*printer) Rewards(context.Context, []dataset.LateReward) error { return nil }

// Example runs two tasks under one variant and prints what is recorded.
func Example() {
	plan := runner.Plan{
		Samples: 1,
		Tasks: func(yield func(dataset.Task, error) bool) {
			_ = yield(dataset.Task{ID: "a", Input: "hello", Target: "HELLO"}, nil) &&
				yield(dataset.Task{ID: "b", Input: "world", Target: "world"}, nil)
		},
		Cells: [][]runner.Cell{{{
			Variant: dataset.Variant{Name: "shout", Hash: "1"},
			Env:     factory{},
			Rollout: shout{},
			Scorers: []runner.Scorer{exact{}},
		}}},
	}
	sink := new(printer)
	r, err := runner.New(plan, sink, runner.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background() // a program cancels the first on its first signal, the second on its second
	summary, err := r.Run(ctx, ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	slices.Sort(sink.lines)
	fmt.Println(strings.Join(sink.lines, "\n"))
	fmt.Printf("mean reward %v over %d episodes\n", *summary.Total.Reward.Value, summary.Total.Planned)
	// Output:
	// a: HELLO, reward 1
	// b: WORLD, reward 0
	// mean reward 0.5 over 2 episodes
}
