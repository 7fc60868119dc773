package runner

import (
	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// Spent is what all attempts in an index used and cost, as a run's budget
// counts it: unreported calls by what they may have used at most, as the gate
// of the invocation that made them did.
func Spent(ix *store.Index) model.Spend {
	var s dataset.Spend
	for _, t := range ix.Tallies() {
		s.Add(dataset.Spend{NanoUSD: t.CostKnown, Tokens: t.Usage.Total()})
		s.Add(t.Lost)
	}
	return s
}

// names maps each variant hash of the plan to its variant.
func (p Plan) variantOf() map[string]int {
	of := map[string]int{}
	for v, cells := range p.Cells {
		for i := range cells {
			of[cells[i].Variant.Hash] = v
		}
	}
	return of
}

// tallies sums the index up by variant of the plan; other holds what belongs to
// variants that are not in the plan any more.
func (r *Runner) tallies() (variants, other []store.Tally) {
	variants = make([]store.Tally, len(r.plan.Cells))
	for i := range variants {
		variants[i].Episodes = map[dataset.Outcome]int{}
	}
	for _, t := range r.opts.Index.Tallies() {
		if v, ok := r.variantOf[t.VariantHash]; ok {
			addTally(&variants[v], t)
			continue
		}
		other = append(other, t)
	}
	return variants, other
}

// addTally adds t to sum.
func addTally(sum *store.Tally, t store.Tally) {
	if sum.Episodes == nil {
		sum.Episodes = map[dataset.Outcome]int{}
	}
	for outcome, n := range t.Episodes {
		sum.Episodes[outcome] += n
	}
	sum.Scored += t.Scored
	sum.Passed += t.Passed
	sum.Unscored += t.Unscored
	sum.RewardSum += t.RewardSum
	sum.Truncated += t.Truncated
	sum.Attempts += t.Attempts
	sum.Usage.Add(t.Usage)
	sum.CostKnown += t.CostKnown
	sum.CostUnknown += t.CostUnknown
	sum.Unreported += t.Unreported
	sum.Lost.Add(t.Lost)
}
