package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/runner"
)

// planPrompt is the first request of a source's first task, under all variants
// that send the same.
type planPrompt struct {
	Source   string           `json:"source"`
	Task     string           `json:"task"`
	Variants []string         `json:"variants"`
	Messages []planMessage    `json:"messages"`
	Tools    []model.ToolSpec `json:"tools"`
}

// planMessage is a message as it is sent.
type planMessage struct {
	Role    dataset.Role    `json:"role"`
	Content string          `json:"content"`
	Parts   json.RawMessage `json:"parts,omitempty"`
}

// measured is the most first requests of a cell that are made to measure them.
const measured = 10_000

// rehearse makes the first requests of all cells, of a large dataset those of
// evenly spread tasks, and measures them.
func (p *planner) rehearse(ctx context.Context) error {
	s := p.session
	seen := make([]int, len(p.report.Sources)) // tasks
	for task, err := range s.plan().Tasks {
		if err != nil {
			return fmt.Errorf("reading the tasks: %w", err)
		}
		n := seen[task.Source]
		seen[task.Source]++
		if step := 1 + (p.report.Sources[task.Source].Tasks-1)/measured; n%step != 0 {
			continue
		}
		for v := range s.cells {
			if err := p.rehearseTask(ctx, v, task, n == 0); err != nil {
				return err
			}
		}
	}
	for i := range p.report.Cells {
		p.report.Cells[i].finishPrompts()
	}
	return nil
}

func (p *planner) rehearseTask(ctx context.Context, v int, task dataset.Task, first bool) error {
	cell := &p.session.cells[v][task.Source]
	req, err := p.rehearsal.first(ctx, cell, p.session.cfg.Seed, task)
	if err != nil {
		return fmt.Errorf("variant %q: %w", cell.Variant.Name, err)
	}
	c := p.report.cell(p.session, v, task.Source)
	c.measure(req)
	c.MaxCalls = p.maxCalls(v, cell, req)
	if first && p.opts.ShowPrompt {
		p.report.show(c, task, req)
	}
	return nil
}

// cell is the report's cell of a variant and a source.
func (r *planReport) cell(s *session, v, source int) *planCell {
	at := source
	for i := range v {
		at += len(s.cells[i])
	}
	return &r.Cells[at]
}

// maxCalls is how many calls an episode makes at most, 0 if nothing bounds them:
// a question without tools is asked once.
func (p *planner) maxCalls(v int, cell *runner.Cell, req model.Request) int {
	if cell.Variant.Env == "answer" && len(req.Tools) == 0 {
		return 1
	}
	return p.variants[v].Run.Limits.Episode.Turns
}

// measure takes in the size of a request. Until finishPrompts Prompt is a sum.
func (c *planCell) measure(req model.Request) {
	n := promptTokens(req)
	c.Prompts++
	c.Prompt += n
	c.PromptMax = max(c.PromptMax, n)
}

func (c *planCell) finishPrompts() {
	if c.Prompts > 0 {
		c.Prompt /= int64(c.Prompts)
	}
}

const (
	bytesPerToken = 4 // of English text and of code, about; the scripted models count so
	perMessage    = 4 // tokens that a chat template adds, about
)

// promptTokens is about the tokens of a request.
func promptTokens(req model.Request) int64 {
	n := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		n += perMessage*bytesPerToken + len(m.Content) + len(m.Parts)
		for _, call := range m.ToolCalls {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += perMessage*bytesPerToken + len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return int64((n + bytesPerToken - 1) / bytesPerToken)
}

// show keeps a request to be shown, once for all variants that send it.
func (r *planReport) show(c *planCell, task dataset.Task, req model.Request) {
	p := planPrompt{Source: c.Source, Task: task.ID, Variants: []string{c.Variant}, Tools: slices.Clone(req.Tools)}
	for i := range req.Messages {
		m := &req.Messages[i]
		p.Messages = append(p.Messages, planMessage{Role: m.Role, Content: m.Content, Parts: m.Parts})
	}
	for i := range r.Prompts {
		if other := &r.Prompts[i]; other.Source == p.Source && other.Task == p.Task && sameRequest(*other, p) {
			other.Variants = append(other.Variants, c.Variant)
			return
		}
	}
	r.Prompts = append(r.Prompts, p)
}

func sameRequest(a, b planPrompt) bool {
	return slices.EqualFunc(a.Messages, b.Messages, func(x, y planMessage) bool {
		return x.Role == y.Role && x.Content == y.Content && string(x.Parts) == string(y.Parts)
	}) && slices.EqualFunc(a.Tools, b.Tools, func(x, y model.ToolSpec) bool {
		return x.Name == y.Name && x.Description == y.Description && string(x.Parameters) == string(y.Parameters)
	})
}
