package store

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/talaria-run/talaria/dataset"
)

// Index knows of every episode of a run how it stands, and sums each variant
// up. A store fills it from the rows when it opens; whoever writes attempts
// adds each one once it is acknowledged. It holds about 64 bytes an episode
// and is safe for concurrent use.
type Index struct {
	mu       sync.RWMutex
	episodes map[[16]byte]entry
	names    []string // interned variant hashes and scorer hashes
	byName   map[string]uint16
	tallies  map[string]*Tally
}

// entry is one episode. Its fields after attempts and infra are the current
// attempt's.
type entry struct {
	reward   float64
	attempts uint16 // recorded ones: the highest number + 1
	infra    uint16 // how many ended as infra
	current  uint16 // number of the current attempt
	variant  uint16 // index in names
	scorer   uint16 // index in names
	outcome  uint8  // index in outcomes
	flags    uint8
}

const (
	isUnscored uint8 = 1 << iota
	isNeedsWorld
	isScored
	isPassed
	isTruncated
)

// outcomes in the order in which summaries list them.
var outcomes = []dataset.Outcome{ //nolint:gochecknoglobals // a constant table
	dataset.OutcomeModel, dataset.OutcomeTask, dataset.OutcomeInfra, dataset.OutcomeBudget, dataset.OutcomeOperator,
}

// State is how one episode stands.
type State struct {
	Attempts    int             // recorded attempts; the next one's number
	Current     int             // number of the current attempt
	Outcome     dataset.Outcome // of the current attempt, "" if there is none
	Infra       int             // attempts that ended as infra, over all invocations
	VariantHash string
	ScorerHash  string // of the latest chosen reward
	Unscored    bool   // the current attempt waits for its reward
	NeedsWorld  bool   // and only a new attempt can give it
}

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
	Child       bool // a delegated episode: its tokens and cost count, it is no episode of the plan
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
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{episodes: map[[16]byte]entry{}, byName: map[string]uint16{}, tallies: map[string]*Tally{}}
}

// Add takes an attempt in. Attempts of one episode may come in any order; the
// same attempt must not come twice.
func (ix *Index) Add(a Attempt) error {
	key, err := episodeKey(a.EpisodeID)
	if err != nil {
		return err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t := ix.tally(a.VariantHash)
	t.Attempts++
	t.Usage.Add(a.Usage)
	t.CostKnown += a.CostKnown
	t.Unreported += a.Unreported
	if a.CostUnknown {
		t.CostUnknown++
	}
	if a.Child {
		return nil
	}
	e, seen := ix.episodes[key]
	e.attempts = max(e.attempts, uint16(a.Attempt+1))
	e.infra += bit[uint16](a.Outcome == dataset.OutcomeInfra, 1)
	if !seen || supersedes(a, e) {
		if seen {
			ix.tally(ix.names[e.variant]).count(e, -1)
		}
		e = ix.currentEntry(e, a)
		t.count(e, +1)
	}
	ix.episodes[key] = e
	return nil
}

// supersedes reports whether a becomes the current attempt: the highest that
// is neither infra nor operator, else the highest.
func supersedes(a Attempt, e entry) bool {
	if done, was := ended(a.Outcome), ended(outcomes[e.outcome]); done != was {
		return done
	}
	return a.Attempt > int(e.current)
}

func ended(o dataset.Outcome) bool {
	return o != dataset.OutcomeInfra && o != dataset.OutcomeOperator
}

func (ix *Index) currentEntry(e entry, a Attempt) entry {
	e.current = uint16(a.Attempt)
	e.variant, e.scorer = ix.intern(a.VariantHash), ix.intern(a.ScorerHash)
	e.outcome = uint8(max(slices.Index(outcomes, a.Outcome), 0))
	e.flags = bit(slices.Contains(a.Flags, dataset.FlagUnscored), isUnscored) |
		bit(slices.Contains(a.Flags, dataset.FlagNeedsWorld), isNeedsWorld) |
		bit(a.Truncated, isTruncated)
	return e.scored(a.Reward, a.Passed)
}

// scored is e with a reward, or without one where value is nil.
func (e entry) scored(value *float64, passed *bool) entry {
	e.flags &^= isScored | isPassed
	e.reward = 0
	if value != nil {
		e.reward = *value
		e.flags |= isScored | bit(passed != nil && *passed, isPassed)
	}
	return e
}

// Reward takes a late chosen reward in. One without a value, or for an attempt
// that is not current, changes nothing.
func (ix *Index) Reward(episodeID string, attempt int, scorerHash string, value *float64, passed *bool) error {
	key, err := episodeKey(episodeID)
	if err != nil {
		return err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	e, ok := ix.episodes[key]
	if !ok || int(e.current) != attempt || value == nil {
		return nil
	}
	t := ix.tally(ix.names[e.variant])
	t.count(e, -1)
	e.flags &^= isUnscored
	e.scorer = ix.intern(scorerHash)
	e = e.scored(value, passed)
	t.count(e, +1)
	ix.episodes[key] = e
	return nil
}

// State of an episode; the zero State if none of its attempts is recorded.
func (ix *Index) State(episodeID string) State {
	key, err := episodeKey(episodeID)
	if err != nil {
		return State{}
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	e, ok := ix.episodes[key]
	if !ok {
		return State{}
	}
	return ix.state(e)
}

// state is e as callers see it. The caller holds mu.
func (ix *Index) state(e entry) State {
	return State{
		Attempts:    int(e.attempts),
		Current:     int(e.current),
		Outcome:     outcomes[e.outcome],
		Infra:       int(e.infra),
		VariantHash: ix.names[e.variant],
		ScorerHash:  ix.names[e.scorer],
		Unscored:    e.flags&isUnscored != 0,
		NeedsWorld:  e.flags&isNeedsWorld != 0,
	}
}

// Any reports whether an episode stands so that is holds.
func (ix *Index) Any(is func(State) bool) bool {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for _, e := range ix.episodes {
		if is(ix.state(e)) {
			return true
		}
	}
	return false
}

// Len is the number of episodes with a row.
func (ix *Index) Len() int {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return len(ix.episodes)
}

// Tallies sums up each variant, sorted by hash.
func (ix *Index) Tallies() []Tally {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	all := make([]Tally, 0, len(ix.tallies))
	for _, t := range ix.tallies {
		c := *t
		c.Episodes = maps.Clone(t.Episodes)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Tally) int { return cmp.Compare(a.VariantHash, b.VariantHash) })
	return all
}

func (t *Tally) count(e entry, sign int) {
	outcome := outcomes[e.outcome]
	t.Episodes[outcome] += sign
	if t.Episodes[outcome] == 0 {
		delete(t.Episodes, outcome)
	}
	t.Unscored += sign * bit(e.flags&isUnscored != 0, 1)
	t.Truncated += sign * bit(e.flags&isTruncated != 0, 1)
	t.Passed += sign * bit(e.flags&isPassed != 0, 1)
	if e.flags&isScored != 0 {
		t.Scored += sign
		t.RewardSum += float64(sign) * e.reward
	}
}

func (ix *Index) tally(variantHash string) *Tally {
	t, ok := ix.tallies[variantHash]
	if !ok {
		t = &Tally{VariantHash: variantHash, Episodes: map[dataset.Outcome]int{}}
		ix.tallies[variantHash] = t
	}
	return t
}

func (ix *Index) intern(name string) uint16 {
	if i, ok := ix.byName[name]; ok {
		return i
	}
	i := uint16(len(ix.names))
	ix.names, ix.byName[name] = append(ix.names, name), i
	return i
}

func bit[T uint8 | uint16 | int](b bool, v T) T {
	if b {
		return v
	}
	return 0
}

func episodeKey(id string) (key [16]byte, err error) {
	if len(id) != 2*len(key) {
		return key, fmt.Errorf("episode id %q is not 32 hex digits", id)
	}
	if _, err := hex.Decode(key[:], []byte(id)); err != nil {
		return key, fmt.Errorf("episode id %q: %w", id, err)
	}
	return key, nil
}
