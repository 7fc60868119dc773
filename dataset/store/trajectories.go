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
//
// The rows of one part at a time are in memory, with the tasks of two. Besides,
// it holds the index, about 40 bytes for each task, and the rewards that were
// given when their attempt was in an earlier part.
func (v *View) Trajectories(keep func(*AttemptRow) bool) iter.Seq2[*dataset.Trajectory, error] {
	return func(yield func(*dataset.Trajectory, error) bool) {
		err := v.join(keep, func(tr *dataset.Trajectory) error {
			if !yield(tr, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// errStop ends a reading whose consumer has had enough.
var errStop = errors.New("stop")

func (v *View) join(keep func(*AttemptRow) bool, yield func(*dataset.Trajectory) error) error {
	index, err := v.Index()
	if err != nil {
		return err
	}
	j := joiner{
		view: v, blobs: newBlobs(v.fsys, v.Dir), keep: keep, index: index,
		tasks: taskFinder{view: v}, late: map[attemptKey][]RewardRow{},
	}
	if err := errors.Join(j.tasks.find(), j.findLate()); err != nil {
		return err
	}
	for i := range v.Parts {
		if err := j.part(i, yield); err != nil {
			return err
		}
	}
	return eachLine(v, func(l *line) error { return j.line(l, yield) })
}

// joiner puts the rows of attempts together again.
type joiner struct {
	view  *View
	blobs *blobs
	keep  func(*AttemptRow) bool // nil: all
	index *Index
	tasks taskFinder
	late  map[attemptKey][]RewardRow // those that are not beside their attempt
}

func (j *joiner) current(episodeID string, attempt int32) bool {
	return j.index.State(episodeID).Current == int(attempt)
}

func (j *joiner) wants(a *AttemptRow) bool {
	return a.ParentEpisodeID == nil && j.current(a.EpisodeID, a.Attempt) && (j.keep == nil || j.keep(a))
}

// findLate collects the rewards of current attempts that lie in another part or
// line than the attempt does.
func (j *joiner) findLate() error {
	v := j.view
	for _, p := range v.Parts {
		own := map[attemptKey]bool{}
		err := eachRow(v.fsys, v.Dir, p, tAttempts, func(a *keyHead) error {
			own[attemptKey{a.EpisodeID, a.Attempt}] = true
			return nil
		})
		if err != nil {
			return err
		}
		err = eachRow(v.fsys, v.Dir, p, tRewards, func(r *RewardRow) error {
			j.addLate(r, own)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return eachLine(v, func(l *line) error {
		own := map[attemptKey]bool{}
		for i := range l.Attempts {
			own[l.Attempts[i].key()] = true
		}
		for i := range l.Rewards {
			j.addLate(&l.Rewards[i], own)
		}
		return nil
	})
}

// keyHead is the key of an attempt's row.
type keyHead struct {
	EpisodeID string `parquet:"episode_id"`
	Attempt   int32  `parquet:"attempt"`
}

func (a *AttemptRow) key() attemptKey { return attemptKey{a.EpisodeID, a.Attempt} }

func (j *joiner) addLate(r *RewardRow, own map[attemptKey]bool) {
	key := attemptKey{r.EpisodeID, r.Attempt}
	if !own[key] && j.current(r.EpisodeID, r.Attempt) {
		j.late[key] = append(j.late[key], *r)
	}
}

// part yields the wanted attempts of a part.
func (j *joiner) part(i int, yield func(*dataset.Trajectory) error) error {
	v, p := j.view, j.view.Parts[i]
	var wanted []AttemptRow
	err := eachRow(v.fsys, v.Dir, p, tAttempts, func(a *AttemptRow) error {
		if j.wants(a) {
			wanted = append(wanted, *a)
		}
		return nil
	})
	if err != nil || len(wanted) == 0 {
		return err
	}
	t := newTalk(wanted)
	if err := t.read(v, p); err != nil {
		return err
	}
	return j.yield(wanted, t, yield)
}

// line yields the wanted attempts of a journal line.
func (j *joiner) line(l *line, yield func(*dataset.Trajectory) error) error {
	var wanted []AttemptRow
	for i := range l.Attempts {
		if j.wants(&l.Attempts[i]) {
			wanted = append(wanted, l.Attempts[i])
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	t := newTalk(wanted)
	t.add(&l.Rows)
	return j.yield(wanted, t, yield)
}

func (j *joiner) yield(wanted []AttemptRow, t *talk, yield func(*dataset.Trajectory) error) error {
	tasks, err := j.tasks.of(wanted)
	if err != nil {
		return err
	}
	for i := range wanted {
		tr, err := j.trajectory(&wanted[i], t)
		if err != nil {
			return err
		}
		if tasks[i] != nil {
			tasks[i].fill(&tr.Episode.Task)
		}
		if err := yield(tr); err != nil {
			return err
		}
	}
	return nil
}

func (j *joiner) trajectory(a *AttemptRow, t *talk) (*dataset.Trajectory, error) {
	tr, key := a.trajectory(), a.key()
	for _, m := range t.messages[key] {
		msg, err := m.message(j.blobs)
		if err != nil {
			return nil, err
		}
		tr.Messages = append(tr.Messages, msg)
	}
	for _, c := range t.toolCalls[key] {
		if at := int(c.Position); at < len(tr.Messages) {
			tr.Messages[at].ToolCalls = append(tr.Messages[at].ToolCalls, c.toolCall())
		}
	}
	tr.Spans = t.spans[key]
	for _, given := range [][]RewardRow{t.rewards[key], j.late[key]} {
		for i := range given {
			tr.Rewards = append(tr.Rewards, given[i].reward())
		}
	}
	return tr, nil
}
