package store

import (
	"encoding/binary"
	"math"

	"github.com/talaria-run/talaria/dataset"
)

// Attempt is what the index keeps of an attempt.
type Attempt struct {
	EpisodeID   string
	Attempt     int
	VariantHash string
	ScorerHash  string
	Outcome     dataset.Outcome
	Flags       []string
	Reward      *float64
	Passed      *bool
	Truncated   bool
	Usage       dataset.Usage
	CostKnown   int64 // nano-dollars
	CostUnknown bool  // some of its calls are unpriced or unreported
	Unreported  int
	Lost        dataset.Spend // what unreported calls may have used
	Child       bool          // a delegated episode: its tokens and cost count, it is no episode of the plan
}

// AttemptOf is what the index keeps of a trajectory.
func AttemptOf(tr *dataset.Trajectory, scorerHash string) Attempt {
	return Attempt{
		EpisodeID:   tr.Episode.ID,
		Attempt:     tr.Episode.Attempt,
		VariantHash: tr.Episode.VariantHash,
		ScorerHash:  scorerHash,
		Outcome:     tr.Outcome(),
		Flags:       tr.Flags,
		Reward:      tr.Reward,
		Passed:      tr.Passed,
		Truncated:   tr.ExitReason.Truncated(),
		Usage:       tr.Books.Usage,
		CostKnown:   tr.Books.CostKnown,
		CostUnknown: tr.Books.Cost() == nil,
		Unreported:  tr.Books.Unreported,
		Lost:        tr.Books.Lost,
		Child:       tr.ParentEpisodeID != "",
	}
}

// Tally sums up one variant. Episodes counts current attempts; usage and cost
// count every attempt, since each was paid for.
type Tally struct {
	VariantHash string
	Episodes    map[dataset.Outcome]int
	Scored      int // current attempts of outcome model with a reward
	Passed      int
	Unscored    int
	RewardSum   float64
	Truncated   int
	Attempts    int
	Usage       dataset.Usage
	CostKnown   int64 // nano-dollars
	CostUnknown int   // attempts whose cost is not wholly known
	Unreported  int
	Lost        dataset.Spend // what unreported calls may have used besides
}

// Total is the number of episodes with a row.
func (t *Tally) Total() int {
	n := 0
	for _, k := range t.Episodes {
		n += k
	}
	return n
}

// Add adds u to t; VariantHash stays.
func (t *Tally) Add(u Tally) {
	if t.Episodes == nil {
		t.Episodes = map[dataset.Outcome]int{}
	}
	for outcome, n := range u.Episodes {
		t.Episodes[outcome] += n
	}
	t.Scored += u.Scored
	t.Passed += u.Passed
	t.Unscored += u.Unscored
	t.RewardSum += u.RewardSum
	t.Truncated += u.Truncated
	t.Attempts += u.Attempts
	t.Usage.Add(u.Usage)
	t.CostKnown += u.CostKnown
	t.CostUnknown += u.CostUnknown
	t.Unreported += u.Unreported
	t.Lost.Add(u.Lost)
}

// pay takes an attempt's cost in, whatever came of it.
func (t *Tally) pay(a Attempt) {
	t.Attempts++
	t.Usage.Add(a.Usage)
	t.CostKnown += a.CostKnown
	t.CostUnknown += bit(a.CostUnknown, 1)
	t.Unreported += a.Unreported
	t.Lost.Add(a.Lost)
}

func (t *Tally) count(e entry, sign int) {
	outcome := outcomes[e.outcome]
	t.Episodes[outcome] += sign
	if t.Episodes[outcome] == 0 {
		delete(t.Episodes, outcome)
	}
	t.Unscored += sign * bit(e.flags&isUnscored != 0, 1)
	t.Truncated += sign * bit(e.flags&isTruncated != 0, 1)
	if outcome != dataset.OutcomeModel || e.flags&isScored == 0 {
		return
	}
	t.Scored += sign
	t.Passed += sign * bit(e.flags&isPassed != 0, 1)
	t.RewardSum += float64(sign) * math.Float64frombits(binary.LittleEndian.Uint64(e.reward[:]))
}
