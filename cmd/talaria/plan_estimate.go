package main

import (
	"math"
	"slices"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// byPrompts is the basis of an estimate that no run is an example for.
const byPrompts = "prompts"

// estimate fills in what the episodes to run will use.
func (p *planner) estimate(seen []*observation) {
	s := p.session
	for v := range s.cells {
		for i := range s.cells[v] {
			c := p.report.cell(s, v, i)
			rates := p.rates(p.variants[v].Run)
			c.bound(rates)
			c.expect(s.cells[v][i].Variant, rates, seen)
		}
	}
	for _, o := range seen {
		if slices.ContainsFunc(p.report.Cells, func(c planCell) bool { return c.Basis == o.Run }) {
			p.report.Examples = append(p.report.Examples, o.planExample)
		}
	}
	p.report.Total = total(p.report.Cells)
}

// bound sets what is sure: each episode sends its prompt once, and what
// max_tokens and the number of calls allow.
func (c *planCell) bound(rates model.Rates) {
	c.Basis = byPrompts
	n := int64(c.ToRun)
	c.TokensIn.Min, c.TokensOut.Min = new(n*c.Prompt), new(int64(0))
	if c.MaxCalls == 1 { // later calls repeat what came before, of any length
		c.TokensIn.Max = new(n * c.Prompt)
	}
	if c.MaxCalls > 0 && c.MaxOutput > 0 {
		c.TokensOut.Max = product(n, int64(c.MaxCalls), c.MaxOutput)
	}
	c.CostNanoUSD.Min = price(rates, c.TokensIn.Min, c.TokensOut.Min)
	c.CostNanoUSD.Max = price(rates, c.TokensIn.Max, c.TokensOut.Max)
	if free(rates) {
		c.CostNanoUSD.Min, c.CostNanoUSD.Max = new(int64(0)), new(int64(0))
	}
	if n == 0 {
		c.TokensIn.Max, c.TokensOut.Max, c.CostNanoUSD.Max = new(int64(0)), new(int64(0)), new(int64(0))
	}
}

// free tells whether no call can cost anything.
func free(r model.Rates) bool {
	for _, rate := range []*int64{r.Input, r.CacheRead, r.CacheWrite, r.Output} {
		if rate == nil || *rate != 0 {
			return false
		}
	}
	return true
}

// product is nil beyond what a number holds.
func product(factors ...int64) *int64 {
	all := int64(1)
	for _, f := range factors {
		if f != 0 && all > math.MaxInt64/f {
			return nil
		}
		all *= f
	}
	return &all
}

// price of tokens that are not read from a cache, nil where it is not known.
func price(rates model.Rates, in, out *int64) *int64 {
	if in == nil || out == nil || !rates.Known() {
		return nil
	}
	if nano, ok := rates.Cost(dataset.Usage{Input: *in, Output: *out}); ok {
		return &nano
	}
	return nil
}

// expect sets what the first fitting of the observed runs used an episode.
func (c *planCell) expect(v dataset.Variant, rates model.Rates, seen []*observation) {
	for _, o := range seen {
		used, ok := o.of(v)
		if !ok {
			continue
		}
		c.Basis = o.Run
		share := float64(c.ToRun) / float64(used.Total())
		in := scale(used.Usage.Total()-used.Usage.Output, share)
		out := scale(used.Usage.Output, share)
		c.TokensIn.Expected, c.TokensOut.Expected = &in, &out
		c.CostNanoUSD.Expected = expectedCost(used.Usage, rates, share)
		if c.CostNanoUSD.Expected == nil && used.CostUnknown == 0 {
			c.CostNanoUSD.Expected = new(scale(used.CostKnown, share))
		}
		if o.PerSecond > 0 {
			c.ExpectedSeconds = new(float64(c.ToRun) / o.PerSecond)
		}
		return
	}
}

func scale(n int64, share float64) int64 { return int64(math.Round(float64(n) * share)) }

// expectedCost is at today's prices, nil where they are not known.
func expectedCost(u dataset.Usage, rates model.Rates, share float64) *int64 {
	nano, ok := rates.Cost(u)
	if !ok || !rates.Known() {
		return nil
	}
	return new(scale(nano, share))
}

// total sums cells up; what is not known of one is not known of all.
func total(cells []planCell) planCell {
	sum := planCell{Variant: "all"}
	for i, c := range cells {
		sum.Episodes += c.Episodes
		sum.Reused += c.Reused
		sum.ToRun += c.ToRun
		sum.Again += c.Again
		sum.Rescore += c.Rescore
		sum.Prompts += c.Prompts
		sum.PromptMax = max(sum.PromptMax, c.PromptMax)
		first := i == 0
		sum.TokensIn.add(c.TokensIn, first)
		sum.TokensOut.add(c.TokensOut, first)
		sum.CostNanoUSD.add(c.CostNanoUSD, first)
		sum.ExpectedSeconds = addKnown(sum.ExpectedSeconds, c.ExpectedSeconds, first)
	}
	return sum
}

func (a *planAmount) add(b planAmount, first bool) {
	a.Min = addKnown(a.Min, b.Min, first)
	a.Expected = addKnown(a.Expected, b.Expected, first)
	a.Max = addKnown(a.Max, b.Max, first)
}

func addKnown[T int64 | float64](a, b *T, first bool) *T {
	switch {
	case first:
		return b
	case a == nil || b == nil:
		return nil
	default:
		return new(*a + *b)
	}
}
