package dataset

import (
	"slices"
	"time"
)

// Trajectory is what came of one attempt at an episode. The rollout fills it
// as it goes, so that a panic loses nothing that was paid for; the runner
// closes it with outcome, rewards and times; the store flattens it into rows.
//
// A Trajectory belongs to one goroutine at a time: the worker's, then the
// drain's.
type Trajectory struct {
	Episode         Episode
	ParentEpisodeID string // of a delegated child
	ReusedFrom      string // run id of a row taken over

	Messages  []Message // position 0 is the system prompt as sent, where there is one
	Spans     []Span
	Rewards   []Reward
	Sequences []Sequence
	Children  []*Trajectory // delegated episodes: rows of their own in the same record

	ExitReason ExitReason // set by the rollout; its Outcome follows from the table
	ErrorClass string
	Error      string
	Flags      []string
	Answer     *string // the final answer as submitted; nil if there is none

	Books                Books
	DiscardedGenerations int // replies that were paid for and thrown away
	ModelsServed         []string
	Fingerprints         []string
	Upstream             []string
	PriceVersion         string

	// Reward, Passed and the rules are set by [Trajectory.ChooseReward].
	Reward     *float64
	Passed     *bool
	RewardRule string
	PassRule   string

	StartedAt time.Time
	EndedAt   time.Time
	Queued    time.Duration // from admission to a worker's start
	Setup     time.Duration
	Model     time.Duration // within model calls, pauses excluded
	Throttle  time.Duration // limiter, Retry-After, backoff
	Tool      time.Duration
	Score     time.Duration
	Working   time.Duration // what limits.episode.time counts

	SandboxBackend  string
	SandboxImage    string
	SandboxEnforced []string
	Extra           map[string]any
}

// Outcome of the attempt: a function of its exit reason.
func (t *Trajectory) Outcome() Outcome { return t.ExitReason.Outcome() }

// Turns counts the policy's replies that stayed in the conversation.
func (t *Trajectory) Turns() int {
	n := 0
	for i := range t.Messages {
		if t.Messages[i].Policy {
			n++
		}
	}
	return n
}

// AddFlag adds a flag once.
func (t *Trajectory) AddFlag(flag string) {
	if !slices.Contains(t.Flags, flag) {
		t.Flags = append(t.Flags, flag)
	}
}

// FinalText is the content of the policy's last message, "" if it said nothing.
func (t *Trajectory) FinalText() string {
	for i := len(t.Messages) - 1; i >= 0; i-- {
		if m := &t.Messages[i]; m.Policy {
			return m.Content
		}
	}
	return ""
}

// PassAt is the default pass rule: a reward of at least 1.
const PassAt = 1.0

// Rules by which ChooseReward came to its scalar.
const (
	RuleChosen = "chosen" // the reward marked so
	RuleNone   = "none"   // there was none
	RulePassAt = "reward >= 1"
)

// ChooseReward sets Reward, Passed and their rules from the last reward that
// is marked chosen. A chosen reward without a finite value leaves Reward null.
func (t *Trajectory) ChooseReward() {
	t.Reward, t.Passed, t.RewardRule, t.PassRule = nil, nil, RuleNone, RulePassAt
	for i := range t.Rewards {
		r := &t.Rewards[i]
		if !r.Chosen {
			continue
		}
		t.RewardRule = RuleChosen + ":" + r.Name
		t.Reward, t.Passed = Finite(r.Value), r.Passed
		if t.Reward != nil && t.Passed == nil {
			passed := *t.Reward >= PassAt
			t.Passed = &passed
		}
	}
}
