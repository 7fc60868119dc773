package dataset

import "time"

// Sources of a reward.
const (
	FromEnv     = "env"
	FromScorer  = "scorer"
	FromGroup   = "group"
	FromJudge   = "judge"
	FromHuman   = "human"
	FromRescore = "rescore"
)

// Reward is one value given to an attempt. Value nil means that no value
// could be given; it never stands for zero.
type Reward struct {
	Name        string
	Revision    string // of the scorer's configuration; "" for the env's own
	Source      string
	Value       *float64
	Label       string
	Passed      *bool
	Weight      *float64
	Chosen      bool // the one that becomes the attempt's scalar
	Turn        *int
	Explanation string
	ScorerHash  string

	JudgeModel      string
	JudgePromptHash string
	Raw             string
	Usage           *Usage
	CostNanoUSD     *int64
	Author          string
	CreatedAt       time.Time
}

// LateReward is a reward given to an attempt that is already recorded.
type LateReward struct {
	EpisodeID string
	Attempt   int
	Reward    Reward
}
