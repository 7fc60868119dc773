package store

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/talaria-run/talaria/dataset"
)

// Index knows of every episode of a run how it stands, and sums each variant
// up. A store fills it from the rows when it opens; whoever writes attempts
// adds each one once it is acknowledged. It holds at most 64 bytes an episode
// and is safe for concurrent use.
type Index struct {
	mu      sync.RWMutex
	places  map[[16]byte]uint32 // of each episode, its place in entries
	entries [][]entry           // in chunks: a map of entries would take half as much again
	origins []origin            // interned
	byName  map[origin]uint16
	tallies map[string]*Tally
}

// origin is what many entries have in common.
type origin struct{ variantHash, scorerHash string }

// entry is one episode. Its fields after attempts and infra are the current
// attempt's.
type entry struct {
	reward   [8]byte // a float64 without its alignment
	attempts uint16  // recorded ones: the highest number + 1
	infra    uint16  // how many ended as infra
	current  uint16  // number of the current attempt
	origin   uint16  // index in origins
	outcome  uint8   // index in outcomes
	flags    uint8
}

const entryChunk = 4096

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

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{places: map[[16]byte]uint32{}, byName: map[origin]uint16{}, tallies: map[string]*Tally{}}
}

// maxAttempt is the highest attempt number that an entry holds.
const maxAttempt = math.MaxUint16 - 1

// Add takes an attempt in. Attempts of one episode may come in any order; the
// same attempt must not come twice.
func (ix *Index) Add(a Attempt) error {
	key, err := episodeKey(a.EpisodeID)
	if err != nil {
		return err
	}
	if a.Attempt < 0 || a.Attempt > maxAttempt {
		return fmt.Errorf("episode %s: attempt %d is out of range", a.EpisodeID, a.Attempt)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	o, err := ix.intern(origin{a.VariantHash, a.ScorerHash})
	if err != nil {
		return err
	}
	t := ix.tally(a.VariantHash)
	t.pay(a)
	if a.Child {
		return nil
	}
	e, seen := ix.entry(key)
	number := uint16(a.Attempt)
	e.attempts = max(e.attempts, number+1)
	e.infra += bit[uint16](a.Outcome == dataset.OutcomeInfra, 1)
	if seen && !supersedes(a, *e) {
		return nil
	}
	if seen {
		ix.tally(ix.origins[e.origin].variantHash).count(*e, -1)
	}
	e.current, e.origin = number, o
	e.become(a)
	t.count(*e, +1)
	return nil
}

// entry of an episode, which is made where there is none. The caller holds mu.
func (ix *Index) entry(key [16]byte) (e *entry, seen bool) {
	place, seen := ix.places[key]
	if !seen {
		place = uint32(len(ix.places)) //nolint:gosec // memory ends long before
		ix.places[key] = place
		if place%entryChunk == 0 {
			ix.entries = append(ix.entries, make([]entry, entryChunk))
		}
	}
	return &ix.entries[place/entryChunk][place%entryChunk], seen
}

// find is the entry of an episode, nil if there is none. The caller holds mu.
func (ix *Index) find(key [16]byte) *entry {
	place, ok := ix.places[key]
	if !ok {
		return nil
	}
	return &ix.entries[place/entryChunk][place%entryChunk]
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

// become sets what an entry says of its current attempt.
func (e *entry) become(a Attempt) {
	i := slices.Index(outcomes, a.Outcome)
	if i < 0 { // of a later release: never the model's doing
		i = slices.Index(outcomes, dataset.OutcomeInfra)
	}
	e.outcome = uint8(i) //nolint:gosec // an index of outcomes
	e.flags = bit(slices.Contains(a.Flags, dataset.FlagUnscored), isUnscored) |
		bit(slices.Contains(a.Flags, dataset.FlagNeedsWorld), isNeedsWorld) |
		bit(a.Truncated, isTruncated)
	e.score(a.Reward, a.Passed)
}

// score sets the reward, or none where value is nil or not finite.
func (e *entry) score(value *float64, passed *bool) {
	e.flags &^= isScored | isPassed
	e.reward = [8]byte{}
	if value = dataset.Finite(value); value != nil {
		binary.LittleEndian.PutUint64(e.reward[:], math.Float64bits(*value))
		e.flags |= isScored | bit(passed != nil && *passed, isPassed)
	}
}

// Reward takes a late chosen reward in. One without a value, or for an attempt
// that is not current, changes nothing. An empty scorerHash leaves the one
// that was known.
func (ix *Index) Reward(episodeID string, attempt int, scorerHash string, value *float64, passed *bool) error {
	key, err := episodeKey(episodeID)
	if err != nil {
		return err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	e := ix.find(key)
	if e == nil || int(e.current) != attempt || dataset.Finite(value) == nil {
		return nil
	}
	o := ix.origins[e.origin]
	o.scorerHash = cmp.Or(scorerHash, o.scorerHash)
	number, err := ix.intern(o)
	if err != nil {
		return err
	}
	t := ix.tally(o.variantHash)
	t.count(*e, -1)
	e.flags &^= isUnscored
	e.origin = number
	e.score(value, passed)
	t.count(*e, +1)
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
	e := ix.find(key)
	if e == nil {
		return State{}
	}
	return ix.state(e)
}

// state is e as callers see it. The caller holds mu.
func (ix *Index) state(e *entry) State {
	return State{
		Attempts:    int(e.attempts),
		Current:     int(e.current),
		Outcome:     outcomes[e.outcome],
		Infra:       int(e.infra),
		VariantHash: ix.origins[e.origin].variantHash,
		ScorerHash:  ix.origins[e.origin].scorerHash,
		Unscored:    e.flags&isUnscored != 0,
		NeedsWorld:  e.flags&isNeedsWorld != 0,
	}
}

// Any reports whether an episode stands so that is holds.
func (ix *Index) Any(is func(State) bool) bool {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for place := range len(ix.places) {
		if is(ix.state(&ix.entries[place/entryChunk][place%entryChunk])) {
			return true
		}
	}
	return false
}

// Len is the number of episodes with a row.
func (ix *Index) Len() int {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return len(ix.places)
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

func (ix *Index) tally(variantHash string) *Tally {
	t, ok := ix.tallies[variantHash]
	if !ok {
		t = &Tally{VariantHash: variantHash, Episodes: map[dataset.Outcome]int{}}
		ix.tallies[variantHash] = t
	}
	return t
}

func (ix *Index) intern(o origin) (uint16, error) {
	if i, ok := ix.byName[o]; ok {
		return i, nil
	}
	if len(ix.origins) > math.MaxUint16 {
		return 0, errors.New("more than 65,536 combinations of variant and scorer hash in one run")
	}
	i := uint16(len(ix.origins)) //nolint:gosec // checked above
	ix.origins, ix.byName[o] = append(ix.origins, o), i
	return i, nil
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
