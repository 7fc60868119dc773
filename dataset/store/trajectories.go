package store

import (
	"errors"
	"iter"

	"github.com/talaria-run/talaria/dataset"
)

// Trajectories turns the current attempts of episodes back into trajectories,
// part by part, in the order in which they were recorded: those that keep
// accepts, or all where keep is nil. Each has its messages, tool calls, spans,
// rewards (late ones too, in the order given) and its task, whose Row is nil;
// its Reward is the one as of the attempt's end. Sequences stay in their table.
// What keep accepts is remembered by key, with its tasks and rewards; messages
// and spans of one part at a time are in memory.
func (v *View) Trajectories(keep func(*AttemptRow) bool) iter.Seq2[*dataset.Trajectory, error] {
	return func(yield func(*dataset.Trajectory, error) bool) {
		j := joiner{
			view: v, blobs: newBlobs(v.fsys, v.Dir),
			want: map[attemptKey]bool{}, tasks: map[[16]byte]*TaskRow{}, rewards: map[attemptKey][]RewardRow{},
		}
		err := j.prepare(keep)
		if err == nil && len(j.want) > 0 {
			err = j.run(yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// errStop ends a reading whose consumer has had enough.
var errStop = errors.New("stop")

// joiner puts the rows of attempts together again.
type joiner struct {
	view    *View
	blobs   *blobs
	want    map[attemptKey]bool
	tasks   map[[16]byte]*TaskRow // of wanted attempts; nil until found
	rewards map[attemptKey][]RewardRow
}

// prepare chooses the attempts and collects what may lie in other parts than
// they do: tasks and late rewards.
func (j *joiner) prepare(keep func(*AttemptRow) bool) error {
	index, err := j.view.Index()
	if err != nil {
		return err
	}
	choose := func(a *AttemptRow) error {
		current := a.ParentEpisodeID == nil && index.State(a.EpisodeID).Current == int(a.Attempt)
		if current && (keep == nil || keep(a)) {
			j.want[attemptKey{a.EpisodeID, a.Attempt}] = true
			j.tasks[taskKey(a.TaskID, int(a.Occurrence))] = nil
		}
		return nil
	}
	if err := everyRow(j.view, tAttempts, func(r *Rows) []AttemptRow { return r.Attempts }, choose); err != nil {
		return err
	}
	if len(j.want) == 0 {
		return nil
	}
	err = everyRow(j.view, tTasks, func(r *Rows) []TaskRow { return r.Tasks }, func(t *TaskRow) error {
		key := taskKey(t.TaskID, int(t.Occurrence))
		if found, wanted := j.tasks[key]; wanted && found == nil {
			row := *t
			j.tasks[key] = &row
		}
		return nil
	})
	if err != nil {
		return err
	}
	return everyRow(j.view, tRewards, func(r *Rows) []RewardRow { return r.Rewards }, func(r *RewardRow) error {
		if key := (attemptKey{r.EpisodeID, r.Attempt}); j.want[key] {
			j.rewards[key] = append(j.rewards[key], *r)
		}
		return nil
	})
}

// everyRow calls yield for each row of a table, in the parts and in the
// journal.
func everyRow[T any](v *View, table string, pick func(*Rows) []T, yield func(*T) error) error {
	for _, p := range v.Parts {
		if err := eachRow(v.fsys, v.Dir, p, table, yield); err != nil {
			return err
		}
	}
	return eachLine(v, func(l *line) error {
		rows := pick(&l.Rows)
		for i := range rows {
			if err := yield(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *joiner) run(yield func(*dataset.Trajectory, error) bool) error {
	for _, p := range j.view.Parts {
		if err := j.part(p, yield); err != nil {
			return err
		}
	}
	return eachLine(j.view, func(l *line) error {
		var t talk
		for i := range l.Messages {
			t.message(j, &l.Messages[i])
		}
		for i := range l.ToolCalls {
			t.toolCall(j, &l.ToolCalls[i])
		}
		for i := range l.Spans {
			t.span(j, &l.Spans[i])
		}
		for i := range l.Attempts {
			if err := j.yield(&l.Attempts[i], &t, yield); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *joiner) part(p Part, yield func(*dataset.Trajectory, error) bool) error {
	fsys, dir := j.view.fsys, j.view.Dir
	var t talk
	err := eachRow(fsys, dir, p, tMessages, func(m *MessageRow) error {
		t.message(j, m)
		return nil
	})
	if err != nil {
		return err
	}
	err = eachRow(fsys, dir, p, tToolCalls, func(c *ToolCallRow) error {
		t.toolCall(j, c)
		return nil
	})
	if err != nil {
		return err
	}
	err = eachRow(fsys, dir, p, tSpans, func(s *SpanRow) error {
		t.span(j, s)
		return nil
	})
	if err != nil {
		return err
	}
	return eachRow(fsys, dir, p, tAttempts, func(a *AttemptRow) error { return j.yield(a, &t, yield) })
}

// talk is what was said and done in the wanted attempts of a part.
type talk struct {
	messages  map[attemptKey][]MessageRow
	toolCalls map[attemptKey][]ToolCallRow
	spans     map[attemptKey][]dataset.Span
}

func (t *talk) span(j *joiner, s *SpanRow) {
	if t.spans == nil {
		t.spans = map[attemptKey][]dataset.Span{}
	}
	if key := (attemptKey{s.EpisodeID, s.Attempt}); j.want[key] {
		t.spans[key] = append(t.spans[key], s.span())
	}
}

func (t *talk) message(j *joiner, m *MessageRow) {
	if t.messages == nil {
		t.messages = map[attemptKey][]MessageRow{}
	}
	if key := (attemptKey{m.EpisodeID, m.Attempt}); j.want[key] {
		t.messages[key] = append(t.messages[key], *m)
	}
}

func (t *talk) toolCall(j *joiner, c *ToolCallRow) {
	if t.toolCalls == nil {
		t.toolCalls = map[attemptKey][]ToolCallRow{}
	}
	if key := (attemptKey{c.EpisodeID, c.Attempt}); j.want[key] {
		t.toolCalls[key] = append(t.toolCalls[key], *c)
	}
}

// yield joins an attempt if it is wanted.
func (j *joiner) yield(a *AttemptRow, t *talk, yield func(*dataset.Trajectory, error) bool) error {
	key := attemptKey{a.EpisodeID, a.Attempt}
	if !j.want[key] {
		return nil
	}
	tr := a.trajectory()
	if row := j.tasks[taskKey(a.TaskID, int(a.Occurrence))]; row != nil {
		row.fill(&tr.Episode.Task)
	}
	for _, m := range t.messages[key] {
		msg, err := m.message(j.blobs)
		if err != nil {
			return err
		}
		tr.Messages = append(tr.Messages, msg)
	}
	for _, c := range t.toolCalls[key] {
		if at := int(c.Position); at < len(tr.Messages) {
			tr.Messages[at].ToolCalls = append(tr.Messages[at].ToolCalls, c.toolCall())
		}
	}
	tr.Spans = t.spans[key]
	for _, r := range j.rewards[key] {
		tr.Rewards = append(tr.Rewards, r.reward())
	}
	if !yield(tr, nil) {
		return errStop
	}
	return nil
}
