package store

import (
	"errors"

	"github.com/talaria-run/talaria/dataset"
)

// talk is what was said, done and given in some attempts, by attempt.
type talk struct {
	wanted    map[attemptKey]bool
	messages  map[attemptKey][]MessageRow
	toolCalls map[attemptKey][]ToolCallRow
	spans     map[attemptKey][]dataset.Span
	rewards   map[attemptKey][]RewardRow
}

func newTalk(wanted []AttemptRow) *talk {
	t := &talk{
		wanted: map[attemptKey]bool{}, messages: map[attemptKey][]MessageRow{}, toolCalls: map[attemptKey][]ToolCallRow{},
		spans: map[attemptKey][]dataset.Span{}, rewards: map[attemptKey][]RewardRow{},
	}
	for i := range wanted {
		t.wanted[wanted[i].key()] = true
	}
	return t
}

// read adds the rows of a part.
func (t *talk) read(v *View, p Part) error {
	return errors.Join(
		eachRow(v.fsys, v.Dir, p, tMessages, t.message),
		eachRow(v.fsys, v.Dir, p, tToolCalls, t.toolCall),
		eachRow(v.fsys, v.Dir, p, tSpans, t.span),
		eachRow(v.fsys, v.Dir, p, tRewards, t.reward),
	)
}

// add adds rows that are in memory.
func (t *talk) add(rows *Rows) {
	for i := range rows.Messages {
		_ = t.message(&rows.Messages[i]) // none of these fails
	}
	for i := range rows.ToolCalls {
		_ = t.toolCall(&rows.ToolCalls[i])
	}
	for i := range rows.Spans {
		_ = t.span(&rows.Spans[i])
	}
	for i := range rows.Rewards {
		_ = t.reward(&rows.Rewards[i])
	}
}

// The rest add a row if it is of an attempt that is wanted. Their errors are
// nil: they are what eachRow calls.

func (t *talk) message(m *MessageRow) error {
	if key := (attemptKey{m.EpisodeID, m.Attempt}); t.wanted[key] {
		t.messages[key] = append(t.messages[key], *m)
	}
	return nil
}

func (t *talk) toolCall(c *ToolCallRow) error {
	if key := (attemptKey{c.EpisodeID, c.Attempt}); t.wanted[key] {
		t.toolCalls[key] = append(t.toolCalls[key], *c)
	}
	return nil
}

func (t *talk) span(s *SpanRow) error {
	if key := (attemptKey{s.EpisodeID, s.Attempt}); t.wanted[key] {
		t.spans[key] = append(t.spans[key], s.span())
	}
	return nil
}

func (t *talk) reward(r *RewardRow) error {
	if key := (attemptKey{r.EpisodeID, r.Attempt}); t.wanted[key] {
		t.rewards[key] = append(t.rewards[key], *r)
	}
	return nil
}
