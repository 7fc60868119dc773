package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/talaria-run/talaria/dataset"
)

// mergePlan says which number each attempt has in the merged run. Only episodes
// of which several runs hold attempts are in it: all others stay as they are.
type mergePlan struct {
	shared  map[[16]byte][]mergeAttempt // by episode; nil until it is found in two runs
	parents map[[16]byte][16]byte       // of delegated episodes
	places  map[mergeKey]mergePlace
	late    map[[sha256.Size]byte]bool // late rewards that were written
	twins   int
	dropped int
}

// mergeKey is an attempt of an input.
type mergeKey struct {
	input   int
	episode [16]byte
	attempt int32
}

type mergePlace struct {
	attempt int32 // in the merged run
	fate    mergeFate
	endedAt int64
}

type mergeFate int

const (
	kept    mergeFate = iota
	twin              // an input named earlier holds the same attempt: only late rewards may be new
	refused           // Prefer leaves it out
)

// mergeAttempt is one attempt at a shared episode; members are the inputs that
// hold it, and its number there.
type mergeAttempt struct {
	head    mergeHead // without ids and number
	members []mergeKey
}

func (a *mergeAttempt) isModels() bool { return a.head.Outcome == string(dataset.OutcomeModel) }

func (a *mergeAttempt) isOf(input int) bool {
	return slices.ContainsFunc(a.members, func(k mergeKey) bool { return k.input == input })
}

// ConflictError tells that several runs ended the same episodes, and not with
// the same attempt.
type ConflictError struct {
	Episode string // the first of them
	Dirs    []string
	Count   int
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%d episodes ended as the model's own doing in more than one run, and differently: episode %s in %s and %s",
		e.Count, e.Episode, e.Dirs[0], e.Dirs[1])
}

// planMerge goes through the attempts of all inputs, a second time if episodes
// are in several.
func planMerge(ctx context.Context, inputs []*mergeInput, prefer Prefer) (*mergePlan, error) {
	p := &mergePlan{
		shared: map[[16]byte][]mergeAttempt{}, parents: map[[16]byte][16]byte{},
		places: map[mergeKey]mergePlace{}, late: map[[sha256.Size]byte]bool{},
	}
	for _, in := range inputs {
		if err := in.buryOrphans(); err != nil {
			return nil, err
		}
	}
	if err := p.findShared(ctx, inputs); err != nil || len(p.shared) == 0 {
		return p, err
	}
	for i, in := range inputs {
		if err := in.heads(func(h *mergeHead) error { return p.gather(i, h) }); err != nil {
			return nil, err
		}
	}
	return p, p.settle(inputs, prefer)
}

// findShared finds the episodes of which several inputs hold attempts.
func (p *mergePlan) findShared(ctx context.Context, inputs []*mergeInput) error {
	first := map[[16]byte]int{} // input that holds it
	for i, in := range inputs {
		err := in.heads(func(h *mergeHead) error {
			key, err := episodeKey(h.EpisodeID)
			if err != nil || h.ParentEpisodeID != nil {
				return err
			}
			if at, seen := first[key]; seen && at != i {
				p.shared[key] = nil
			} else if !seen {
				first[key] = i
			}
			return ctx.Err()
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("reading the attempts of %s: %w", in.dir, err)
		}
	}
	return nil
}

// gather takes an attempt of a shared episode in: as another, or as one that an
// earlier input holds too.
func (p *mergePlan) gather(input int, h *mergeHead) error {
	key, err := episodeKey(h.EpisodeID)
	if err != nil {
		return err
	}
	if h.ParentEpisodeID != nil {
		p.parents[key], err = episodeKey(*h.ParentEpisodeID)
		return err
	}
	all, shared := p.shared[key]
	if !shared {
		return nil
	}
	member := mergeKey{input, key, h.Attempt}
	sign := *h
	sign.EpisodeID, sign.Attempt = "", 0
	for i := range all {
		if all[i].head == sign && !all[i].isOf(input) {
			all[i].members = append(all[i].members, member)
			return nil
		}
	}
	p.shared[key] = append(all, mergeAttempt{head: sign, members: []mergeKey{member}})
	return nil
}

// settle gives every attempt of a shared episode its place.
func (p *mergePlan) settle(inputs []*mergeInput, prefer Prefer) error {
	var conflict *ConflictError
	for key, all := range p.shared {
		rivals := rivals(all, len(inputs))
		if len(rivals) > 0 && prefer == PreferNone {
			conflict = conflict.with(key, inputs[rivals[0]].dir, inputs[rivals[1]].dir)
			continue
		}
		if len(rivals) > 0 {
			winner := rivals[0]
			if prefer == PreferLast {
				winner = rivals[len(rivals)-1]
			}
			all = p.refuse(all, winner)
		}
		p.number(all, len(inputs))
	}
	if conflict != nil {
		return conflict
	}
	return nil
}

// with counts an episode; the one with the least id is told of.
func (e *ConflictError) with(key [16]byte, a, b string) *ConflictError {
	id := hex.EncodeToString(key[:])
	if e == nil {
		return &ConflictError{Episode: id, Dirs: []string{a, b}, Count: 1}
	}
	e.Count++
	if id < e.Episode {
		e.Episode, e.Dirs = id, []string{a, b}
	}
	return e
}

// rivals are the inputs that brought an episode to its end, if they did so with
// different attempts: none of them holds all.
func rivals(all []mergeAttempt, inputs int) []int {
	models := slices.DeleteFunc(slices.Clone(all), func(a mergeAttempt) bool { return !a.isModels() })
	var found []int
	for i := range inputs {
		held := 0
		for j := range models {
			held += bit(models[j].isOf(i), 1)
		}
		if held == len(models) {
			return nil
		}
		if held > 0 {
			found = append(found, i)
		}
	}
	return found
}

// refuse leaves out the model's own attempts that the winner does not hold.
func (p *mergePlan) refuse(all []mergeAttempt, winner int) (left []mergeAttempt) {
	for _, a := range all {
		if !a.isModels() || a.isOf(winner) {
			left = append(left, a)
			continue
		}
		p.dropped++
		for _, member := range a.members {
			p.places[member] = mergePlace{fate: refused}
		}
	}
	return left
}

// number numbers the attempts of an episode: as the input that holds all of them
// did, else by the time when they ended, the model's own last.
func (p *mergePlan) number(all []mergeAttempt, inputs int) {
	whole := -1
	for i := range inputs {
		if !slices.ContainsFunc(all, func(a mergeAttempt) bool { return !a.isOf(i) }) {
			whole = i
			break
		}
	}
	slices.SortStableFunc(all, func(a, b mergeAttempt) int {
		return cmp.Or(bit(a.isModels(), 1)-bit(b.isModels(), 1), cmp.Compare(a.head.EndedAt, b.head.EndedAt))
	})
	for i, a := range all {
		to := int32Clamp(i)
		for _, member := range a.members {
			if member.input == whole {
				to = member.attempt
			}
		}
		for j, member := range a.members {
			place := mergePlace{attempt: to, endedAt: a.head.EndedAt}
			if j > 0 {
				place.fate = twin
				p.twins++
			}
			p.places[member] = place
		}
	}
}

// place is where an attempt of an input goes; shared tells whether its episode
// is in several.
func (p *mergePlan) place(input int, episodeID string, attempt int32) (at mergePlace, shared bool) {
	if len(p.shared) == 0 {
		return mergePlace{attempt: attempt}, false
	}
	key, err := episodeKey(episodeID)
	if err != nil {
		return mergePlace{attempt: attempt}, false // the attempts were looked at before
	}
	for parent, isChild := p.parents[key]; isChild; parent, isChild = p.parents[key] {
		key = parent
	}
	at, shared = p.places[mergeKey{input, key, attempt}]
	if !shared {
		at.attempt = attempt
	}
	return at, shared
}

// isNews reports whether a reward of a shared episode is to be written: with its
// attempt, or because it came later and no earlier input has it. r has the run
// and the number of the merged run.
func (p *mergePlan) isNews(r *RewardRow, at mergePlace) bool {
	if at.fate == refused {
		return false
	}
	if r.CreatedAt <= at.endedAt {
		return at.fate == kept
	}
	b, err := json.Marshal(r)
	if err != nil {
		return true // nothing like it can be known
	}
	sum := sha256.Sum256(b)
	known := p.late[sum]
	p.late[sum] = true
	return !known
}
