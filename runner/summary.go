package runner

import (
	"time"

	"github.com/talaria-run/talaria/dataset/store"
)

// Summary is how a run ended, over all its invocations.
type Summary struct {
	// Variants are those of the plan in its order, then those that earlier
	// invocations ran and the plan has no more: these have no name and nothing
	// planned.
	Variants    []VariantSummary
	Total       VariantSummary // over the variants of the plan; its costs are over all
	SkippedRows int            // bad rows of the sources
	Skipped     int            // episodes that an earlier invocation had ended
	Rescored    int            // attempts that got a late reward in this invocation
	Duration    time.Duration  // of this invocation
	// Stopped and Interrupted tell why episodes of the plan are left to run. A
	// limit that was reached, or a signal that came, when everything had ended is
	// not told.
	Stopped     Stop
	Interrupted bool
	Fatal       []error // a [VariantError] for each variant that was stopped
}

// VariantSummary sums one variant up. The embedded tally counts what is
// recorded.
type VariantSummary struct {
	Name    string
	Hashes  []string // of its cells, one a source of tasks, repeats left out
	Planned int      // episodes; those seen so far if the run ended early and Plan.Total is 0
	Reward  Mean     // over the planned episodes
	store.Tally
}

// Mean is an observed mean and its bounds: what it would be if every episode
// whose reward is missing had 0, and if it had 1. Each is nil if there is no
// episode to take it over.
type Mean struct{ Value, Low, High *float64 }

func meanOf(sum float64, scored, planned int) Mean {
	var m Mean
	if scored > 0 {
		m.Value = ratio(sum, scored)
	}
	if planned = max(planned, scored); planned > 0 {
		m.Low = ratio(sum, planned)
		m.High = ratio(sum+float64(planned-scored), planned)
	}
	return m
}

func ratio(a float64, b int) *float64 {
	q := a / float64(b)
	return &q
}

func (r *Runner) summary(interrupted bool) Summary {
	tallies, other := r.tallies()
	planned, p := r.meter.planned(r.plan.Total), r.Progress()
	s := Summary{
		SkippedRows: r.opts.SkippedRows(),
		Skipped:     p.Skipped, Rescored: p.Rescored, Duration: p.Elapsed,
		Fatal: r.halts.errors(),
	}
	for v, t := range tallies {
		s.Variants = append(s.Variants, r.variantSummary(v, planned[v], t))
		s.Total.Planned += s.Variants[v].Planned
		addTally(&s.Total.Tally, t)
	}
	s.Total.Reward = meanOf(s.Total.RewardSum, s.Total.Scored, s.Total.Planned)
	for _, t := range other {
		s.Variants = append(s.Variants, VariantSummary{
			Hashes: []string{t.VariantHash}, Tally: t, Reward: meanOf(t.RewardSum, t.Scored, t.Total()),
		})
		addSpent(&s.Total.Tally, t)
	}
	if !r.meter.whole() {
		s.Interrupted, s.Stopped = interrupted, r.opts.Budget.usedUp()
	}
	return s
}

func (r *Runner) variantSummary(v, planned int, t store.Tally) VariantSummary {
	planned = max(planned, t.Total()) // a resume may plan fewer than it finds
	s := VariantSummary{
		Name: r.halts.names[v], Planned: planned, Tally: t,
		Reward: meanOf(t.RewardSum, t.Scored, planned),
	}
	seen := map[string]bool{}
	for _, cell := range r.plan.Cells[v] {
		if hash := cell.Variant.Hash; !seen[hash] {
			seen[hash] = true
			s.Hashes = append(s.Hashes, hash)
		}
	}
	return s
}

// planned is the number of planned episodes of each variant, or of those seen so
// far if it is not known.
func (m *meter) planned(total int) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	planned := make([]int, len(m.variants))
	for v, c := range m.variants {
		planned[v] = max(c.planned, m.share(c, total))
	}
	return planned
}
