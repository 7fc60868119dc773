package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/agent"
	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/tool/args"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/envtest"
	"github.com/talaria-run/talaria/eval/score"
)

// TestExtendingPage wants the Go code of docs/extending.md to stand in tests:
// here, or where a provider is tested.
func TestExtendingPage(t *testing.T) {
	code := string(readFile(t, "docs_extending_test.go")) +
		string(readFile(t, filepath.Join("..", "..", "agent", "model", "openai", "openai_test.go")))
	blocks := regexp.MustCompile("(?s)\n```go\n(.+?\n)```\n").FindAllStringSubmatch(docs(t, "extending.md"), -1)
	if len(blocks) < 6 {
		t.Fatalf("the page has %d blocks of Go, want at least 6", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(code, b[1]) {
			t.Errorf("no test has the code:\n%s", b[1])
		}
	}
}

// NewRiddle is the constructor of an env: a question, and hints after wrong
// answers.
func NewRiddle(setup env.Setup) (env.Factory, error) {
	f := riddles{prompt: setup.Prompt, params: riddleParams{Hints: 1}}
	if err := setup.Decode(&f.params); err != nil {
		return nil, fmt.Errorf("env riddle: %w", err)
	}
	return f, nil
}

// riddleParams are the env's keys in the config.
type riddleParams struct {
	Hints int `yaml:"hints" min:"0"`
}

// riddles is what the episodes of a variant share: nothing that changes.
type riddles struct {
	prompt func(dataset.Task) ([]dataset.Message, error)
	params riddleParams
}

func (f riddles) New() (env.Env, error)     { return &riddle{riddles: f}, nil }
func (riddles) Close(context.Context) error { return nil }

// riddle is one attempt.
type riddle struct {
	riddles
	target string
	hinted int
}

func (r *riddle) Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if ep.Task.Target == "" {
		return nil, fmt.Errorf("%w: task %q has no target", dataset.ErrTask, ep.Task.ID)
	}
	r.target = ep.Task.Target
	messages, err := r.prompt(ep.Task)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", dataset.ErrTask, err)
	}
	return messages, nil
}

func (r *riddle) Step(_ context.Context, reply dataset.Message) (env.Result, error) {
	if strings.Contains(reply.Content, r.target) || r.hinted == r.params.Hints {
		return env.Result{Done: true}, nil
	}
	r.hinted++
	hint := fmt.Sprintf("No. It has %d letters.", len([]rune(r.target)))
	return env.Result{Messages: []dataset.Message{{Role: dataset.User, Content: hint}}}, nil
}

func (*riddle) Close(context.Context) error { return nil }

func TestRiddle(t *testing.T) {
	prompt := func(t dataset.Task) ([]dataset.Message, error) {
		return []dataset.Message{{Role: dataset.User, Content: t.Input}}, nil
	}
	envtest.Run(t, envtest.Case{
		New: func() (env.Factory, error) {
			return NewRiddle(env.Setup{Prompt: prompt, Decode: func(any) error { return nil }})
		},
		Episodes: []dataset.Episode{
			{ID: "a", Task: dataset.Task{ID: "1", Input: "What runs and has no legs?", Target: "river"}},
			{ID: "b", Task: dataset.Task{ID: "2", Input: "What has 42 legs?", Target: "42"}},
		},
		Broken: []dataset.Episode{{ID: "c", Task: dataset.Task{ID: "3", Input: "No answer is known."}}},
	})
}

// WordCount is a tool.
func WordCount() env.Tool {
	return env.Tool{
		Name:        "word_count",
		Description: "Counts the words of a text.",
		Parameters: json.RawMessage(
			`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		Call: func(_ context.Context, arguments json.RawMessage) (env.ToolResult, error) {
			var p struct {
				Text string `json:"text"`
			}
			if err := args.Decode(arguments, &p); err != nil {
				return env.ToolResult{Content: err.Error(), IsError: true}, nil //nolint:nilerr // the model's mistake is text for it
			}
			return env.ToolResult{Content: strconv.Itoa(len(strings.Fields(p.Text)))}, nil
		},
	}
}

// prefix is a scorer: the answer begins with the target. Its exported fields
// are its parameters.
type prefix struct {
	CaseSensitive bool `yaml:"case_sensitive" json:"case_sensitive"`
}

func newPrefix(decode func(into any) error) (score.Judge, error) {
	p := &prefix{CaseSensitive: true}
	return p, decode(p)
}

func (p *prefix) Judge(answer, target string) (score.Verdict, error) {
	if !p.CaseSensitive {
		answer, target = strings.ToLower(answer), strings.ToLower(target)
	}
	if strings.HasPrefix(answer, target) {
		return score.Verdict{Passed: true, Explanation: "begins with the target"}, nil
	}
	return score.Verdict{Explanation: "does not begin with the target"}, nil
}

func TestPrefix(t *testing.T) {
	set, err := score.Registry{"prefix": newPrefix}.New([]score.Config{{Name: "prefix"}})
	if err != nil {
		t.Fatal(err)
	}
	for reply, want := range map[string]float64{"river, I think": 1, "the river": 0, "": 0} {
		rewards, err := set.Scorers[0].Score(t.Context(), dataset.Task{Target: "river"}, &dataset.Trajectory{Answer: &reply})
		if err != nil || len(rewards) != 1 || *rewards[0].Value != want {
			t.Errorf("%q: got %+v and error %v, want %v", reply, rewards, err, want)
		}
	}
}

// Parrot is a model: it repeats what it heard last.
type Parrot struct{}

// Generate implements [model.Model].
func (Parrot) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	if ctx.Err() != nil {
		return model.Response{}, &model.Error{Class: model.ClassCancelled, Err: context.Cause(ctx)}
	}
	last := req.Messages[len(req.Messages)-1].Content
	return model.Response{
		Message:     dataset.Message{Role: dataset.Assistant, Content: last, FinishReason: model.FinishStop},
		Usage:       &dataset.Usage{Input: int64(len(last)), Output: int64(len(last))},
		ModelServed: "parrot",
	}, nil
}

// TestExtensionsPlay plays the extensions of the page together.
func TestExtensionsPlay(t *testing.T) {
	loop, err := agent.New(agent.Options{Model: Parrot{}, Tools: []env.Tool{WordCount()}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewRiddle(env.Setup{
		Prompt: func(t dataset.Task) ([]dataset.Message, error) {
			return []dataset.Message{{Role: dataset.User, Content: t.Input}}, nil
		},
		Decode: func(any) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.New()
	if err != nil {
		t.Fatal(err)
	}
	ep := dataset.Episode{ID: "a", Task: dataset.Task{ID: "1", Input: "A river?", Target: "sea"}}
	tr := &dataset.Trajectory{Episode: ep}
	if err := loop.Run(t.Context(), e, ep, tr); err != nil {
		t.Fatal(err)
	}
	if tr.ExitReason != dataset.ExitAnswered || tr.Turns() != 2 || tr.FinalText() != "No. It has 3 letters." {
		t.Errorf("ended as %s after %d turns with %q", tr.ExitReason, tr.Turns(), tr.FinalText())
	}
	result, err := WordCount().Call(t.Context(), json.RawMessage(`{"text":"two words"}`))
	if err != nil || result.Content != "2" {
		t.Errorf("got %+v and error %v, want 2", result, err)
	}
}
