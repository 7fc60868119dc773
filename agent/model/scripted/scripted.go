// Package scripted has models that need no server:
//
//	oracle   gives the task's own answer
//	null     gives up at once
//	random   gives a random word or number, sometimes after a few tool calls
//	loop     calls a tool for ever, or says nothing of use
//	replay   gives recorded answers
//
// What they reply is a function of the request and the seeds, never of time or
// of other calls, so that two runs give equal rows.
//
// [New] makes a [Model]; one value serves all episodes of a variant.
package scripted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// Provider is the name under which the models are priced: they cost nothing.
const Provider = "scripted"

// Names lists the models.
func Names() []string { return []string{"loop", "null", "oracle", "random", "replay"} }

// Options of a model. The zero Options is an instant model that never fails.
type Options struct {
	// Solution is the oracle's answer to a task; default its Target.
	Solution func(*dataset.Task) string
	// Replay is what replay replies; it has no default.
	Replay *Replay

	// Seed of the latency and the failures.
	Seed int64
	// Each try takes from LatencyMin to LatencyMax.
	LatencyMin, LatencyMax time.Duration
	// FailureRate is the share of tries that fail as an overloaded server does,
	// 0 to 1.
	FailureRate float64
}

// Model is a [model.Model] without a server.
type Model struct {
	name  string
	o     Options
	reply func(*Model, *model.Request) (dataset.Message, error)
}

var _ model.Model = (*Model)(nil)

// New makes the model of a name.
func New(name string, o Options) (*Model, error) {
	replies := map[string]func(*Model, *model.Request) (dataset.Message, error){
		"oracle": (*Model).oracle, "null": (*Model).null, "random": (*Model).random, "loop": (*Model).loop, "replay": (*Model).replay,
	}
	reply := replies[name]
	switch {
	case reply == nil:
		return nil, fmt.Errorf("there is no scripted model %q: want one of %s", name, strings.Join(Names(), ", "))
	case name == "replay" && o.Replay == nil:
		return nil, errors.New("scripted/replay needs recorded answers: set agent.replay.path and agent.replay.column")
	case o.LatencyMin < 0 || o.LatencyMax < 0 || !(o.FailureRate >= 0 && o.FailureRate <= 1):
		return nil, fmt.Errorf("scripted/%s: latency %v to %v, failure rate %v: want no negative value, and a rate up to 1", name, o.LatencyMin, o.LatencyMax, o.FailureRate)
	}
	if o.Solution == nil {
		o.Solution = func(t *dataset.Task) string { return t.Target }
	}
	o.LatencyMax = max(o.LatencyMax, o.LatencyMin)
	return &Model{name: name, o: o, reply: reply}, nil
}

// Generate replies after the simulated latency, or fails.
func (m *Model) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	if err := m.wait(ctx, &req); err != nil {
		return model.Response{}, err
	}
	if m.o.FailureRate > 0 && m.draws("fail", &req).Float64() < m.o.FailureRate {
		return model.Response{}, &model.Error{Class: model.ClassOverloaded, Retryable: true, Err: errors.New("a simulated failure")}
	}
	msg, err := m.reply(m, &req)
	if err != nil {
		return model.Response{}, err
	}
	msg.Role = dataset.Assistant
	return model.Response{Message: msg, Usage: usage(&req, &msg), ModelServed: Provider + "/" + m.name}, nil
}

func (m *Model) wait(ctx context.Context, req *model.Request) error {
	if ctx.Err() != nil {
		return &model.Error{Class: model.ClassCancelled, Err: context.Cause(ctx)}
	}
	if m.o.LatencyMax == 0 {
		return nil
	}
	span := m.o.LatencyMax - m.o.LatencyMin
	timer := time.NewTimer(m.o.LatencyMin + time.Duration(m.draws("latency", req).Int64N(int64(span)+1)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &model.Error{Class: model.ClassCancelled, Err: context.Cause(ctx)}
	}
}

// usage counts a token for every four bytes begun.
func usage(req *model.Request, reply *dataset.Message) *dataset.Usage {
	prompt := 0
	for i := range req.Messages {
		prompt += messageBytes(&req.Messages[i])
	}
	for _, t := range req.Tools {
		prompt += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return &dataset.Usage{Input: tokens(prompt), Output: tokens(messageBytes(reply))}
}

func messageBytes(m *dataset.Message) int {
	n := len(m.Content)
	if n == 0 {
		n = len(m.Parts)
	}
	n += len(m.Reasoning)
	for i := range m.ToolCalls {
		n += len(m.ToolCalls[i].Name) + len(m.ToolCalls[i].Arguments)
	}
	return n
}

func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

// turn counts the replies of the policy that the conversation holds.
func turn(req *model.Request) int {
	n := 0
	for i := range req.Messages {
		if req.Messages[i].Policy {
			n++
		}
	}
	return n
}

// say is a reply of text.
func say(text string) dataset.Message {
	return dataset.Message{Content: text, FinishReason: model.FinishStop}
}

func (m *Model) null(*model.Request) (dataset.Message, error) {
	return dataset.Message{FinishReason: model.FinishGaveUp}, nil
}

// oracle submits the task's answer where there is a tool for it, and says it
// otherwise or when that did not end the episode. Where the task has files, its
// solution is a script, which runs in the terminal.
func (m *Model) oracle(req *model.Request) (dataset.Message, error) {
	if req.Episode == nil {
		return dataset.Message{}, errors.New("scripted/oracle: the request has no episode")
	}
	solution := m.o.Solution(&req.Episode.Task)
	if solution == "" {
		return dataset.Message{}, fmt.Errorf("%w: task %q has no target: scripted/oracle has nothing to answer", dataset.ErrTask, req.Episode.Task.ID)
	}
	if tool := offered(req, terminal); tool != nil && req.Episode.Task.Files != nil {
		if turn(req) == 0 {
			return call(req, tool, solution), nil
		}
		return say("Done."), nil
	}
	if tool := offered(req, submitAnswer); tool != nil && turn(req) == 0 {
		return call(req, tool, solution), nil
	}
	return say(solution), nil
}

// loop calls a tool without effect, each time with another argument, so that
// it does not look like a repetition. Its text holds no letter and no digit:
// no extractor finds an answer in it.
func (m *Model) loop(req *model.Request) (dataset.Message, error) {
	tool := offered(req, calculator)
	if tool == nil {
		tool = otherThan(req, submitAnswer)
	}
	if tool == nil {
		return say("..."), nil
	}
	return call(req, tool, fmt.Sprintf("%d + 1", turn(req))), nil
}

func (m *Model) replay(req *model.Request) (dataset.Message, error) {
	if req.Episode == nil {
		return dataset.Message{}, errors.New("scripted/replay: the request has no episode")
	}
	return m.o.Replay.reply(req.Episode, turn(req))
}

// Tools that the models know by name.
const (
	submitAnswer = "submit_answer"
	calculator   = "calculator"
	terminal     = "terminal"
)

func offered(req *model.Request, name string) *model.ToolSpec {
	i := slices.IndexFunc(req.Tools, func(t model.ToolSpec) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &req.Tools[i]
}

func otherThan(req *model.Request, name string) *model.ToolSpec {
	i := slices.IndexFunc(req.Tools, func(t model.ToolSpec) bool { return t.Name != name })
	if i < 0 {
		return nil
	}
	return &req.Tools[i]
}
