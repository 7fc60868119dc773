package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/talaria-run/talaria/dataset"
)

// Spend is an amount of the run's budget.
type Spend = dataset.Spend

// Budget is what a run may spend. Its methods are safe for concurrent use.
type Budget interface {
	// Reserve sets worst aside. It may wait until calls in flight have
	// settled; when worst will never fit, it returns an error that wraps
	// [dataset.ErrRunBudget].
	Reserve(ctx context.Context, worst Spend) error
	// Settle gives worst back and books actual.
	Settle(worst, actual Spend)
}

type gated struct {
	inner  Model
	budget Budget
	rates  Rates
}

// Gate lets a call through when the most that it can cost fits into what is
// left of the budget, so that calls in flight together cannot overspend it.
//
// The bound is the request's bytes and max_tokens as tokens, at the dearest
// rate that may apply. What is not known counts as 0 in it: without max_tokens
// the reply, without rates the cost; so does an image given by its address. A
// try that may have been paid for and never reported its usage is booked as that
// bound.
func Gate(inner Model, b Budget, r Rates) Model {
	return &gated{inner: inner, budget: b, rates: r}
}

func (g *gated) Unwrap() Model { return g.inner }

func (g *gated) Generate(ctx context.Context, req Request) (resp Response, err error) {
	worst := g.worst(&req)
	wait, err := stall(ctx, func() error { return g.budget.Reserve(ctx, worst) })
	if err != nil {
		resp.waitedBefore(wait)
		return resp, fmt.Errorf("reserving budget for call %s: %w", req.CallID, err)
	}
	actual := worst // should the call panic
	defer func() { g.budget.Settle(worst, actual) }()
	resp, err = g.inner.Generate(ctx, req)
	actual = g.actual(&resp, worst)
	resp.waitedBefore(wait)
	return resp, err
}

func (g *gated) worst(req *Request) Spend {
	in, out := promptBytes(req), MaxOutput(&req.Sampling)
	dearest := maxRate(g.rates.Input, g.rates.CacheRead, g.rates.CacheWrite)
	cost, known := Rates{Input: dearest, Output: g.rates.Output}.Cost(dataset.Usage{Input: in, Output: out})
	if !known {
		cost = 0
	}
	most := Spend{NanoUSD: cost, Tokens: in}
	most.Add(Spend{Tokens: out})
	return most
}

func (g *gated) actual(resp *Response, worst Spend) Spend {
	var s Spend
	if resp.Usage != nil {
		s.Tokens = resp.Usage.Total()
		s.NanoUSD, _ = g.rates.Cost(*resp.Usage)
	}
	if resp.CostNanoUSD != nil {
		s.NanoUSD = *resp.CostNanoUSD
	}
	for range resp.Unreported {
		s.Add(worst)
	}
	return s
}

// framing bounds what a chat template adds to each message and tool, in tokens.
const framing = 32

// promptBytes bounds the prompt's tokens: a token is at least one byte.
func promptBytes(req *Request) int64 {
	n := framing
	for i := range req.Messages {
		m := &req.Messages[i]
		n += framing + len(m.Content) + len(m.Parts) + len(m.Reasoning) + len(m.ReasoningSignature) + len(m.ToolCallID) + len(m.ToolName)
		for _, c := range m.ToolCalls {
			n += framing + len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += framing + len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return int64(n)
}

// MaxOutput is the most tokens that a reply may have, 0 if nothing bounds it.
func MaxOutput(s *dataset.Sampling) int64 {
	var limit int64
	if s.MaxTokens != nil {
		limit = int64(*s.MaxTokens)
	}
	switch n := s.Extra["max_completion_tokens"].(type) {
	case int:
		limit = max(limit, int64(n))
	case int64:
		limit = max(limit, n)
	case float64:
		limit = max(limit, int64(n))
	case json.Number:
		if v, err := n.Int64(); err == nil {
			limit = max(limit, v)
		}
	}
	return max(limit, 0)
}

func maxRate(rates ...*int64) *int64 {
	var dearest *int64
	for _, r := range rates {
		if r != nil && (dearest == nil || *r > *dearest) {
			dearest = r
		}
	}
	return dearest
}
