package store

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/talaria-run/talaria/dataset"
)

// Write records attempts. Each of them, with its children, is safe on disk
// when Write returns nil. It blocks while the disk is full or two parts wait to
// be written. After an error other than that of ctx nothing more is recorded;
// if ctx ends first, the attempts may be recorded or not. One goroutine calls
// Write; it does not keep trs.
func (s *Store) Write(ctx context.Context, trs []*dataset.Trajectory) error {
	if len(trs) == 0 {
		return nil
	}
	records := make([]*record, len(trs))
	for i, tr := range trs {
		r, err := s.encode(tr)
		if err != nil {
			return err
		}
		records[i] = &r
	}
	return s.submit(ctx, s.committer.rows, records...)
}

// encode turns an attempt into a record. The first attempt at a task brings
// the task's row along.
func (s *Store) encode(tr *dataset.Trajectory) (record, error) {
	rows := new(Rows)
	s.flat.together().trajectory(rows, tr)
	s.newTasks(rows, tr)
	s.seeEnd(rows)
	err := insist(s.log, s.opts.DiskWait, "blob", func() error { return s.blobs.moveAll(rows) })
	if err != nil {
		return record{}, err
	}
	return s.enc.rows(kindAttempt, lineAttempt, rows)
}

// seeEnd keeps the latest end of an attempt. Only Write, which one goroutine
// calls, sets it.
func (s *Store) seeEnd(rows *Rows) {
	latest := s.ended.Load()
	for i := range rows.Attempts {
		latest = max(latest, rows.Attempts[i].EndedAt)
	}
	s.ended.Store(latest)
}

func (s *Store) newTasks(rows *Rows, tr *dataset.Trajectory) {
	if s.tasks.add(taskKey(tr.Episode.Task.ID, tr.Episode.Task.Occurrence)) {
		rows.Tasks = append(rows.Tasks, s.flat.task(tr.Episode.Task))
	}
	for _, child := range tr.Children {
		s.newTasks(rows, child)
	}
}

// recentTasks remembers whose row was written, in bounded memory: attempts at
// a task come close together. One that comes late brings its task's row again,
// and readers keep one. Its zero value is ready to use.
type recentTasks struct{ young, old map[[16]byte]struct{} }

// maxRecentTasks bounds each of the two generations.
const maxRecentTasks = 16 << 10

// add reports whether the task is new.
func (r *recentTasks) add(key [16]byte) bool {
	if _, ok := r.young[key]; ok {
		return false
	}
	_, known := r.old[key]
	if r.young == nil || len(r.young) == maxRecentTasks {
		r.young, r.old = map[[16]byte]struct{}{}, r.young
	}
	r.young[key] = struct{}{}
	return !known
}

// taskKey is the key of the tasks table, in little memory.
func taskKey(id string, occurrence int) (key [16]byte) {
	b, err := hex.DecodeString(dataset.ID("task_key", id, strconv.Itoa(occurrence)))
	if err != nil {
		panic("store: an id is not hexadecimal: " + err.Error())
	}
	copy(key[:], b)
	return key
}

// Rewards records rewards of attempts that are recorded already. They are safe
// on disk when it returns nil.
func (s *Store) Rewards(ctx context.Context, late []dataset.LateReward) error {
	if len(late) == 0 {
		return nil
	}
	rows := &Rows{Rewards: make([]RewardRow, len(late))}
	for i := range late {
		rows.Rewards[i] = s.flat.lateReward(late[i])
		// Younger than any attempt beside it: that is how a part tells a late
		// reward from an attempt's own, whatever the clock did.
		rows.Rewards[i].CreatedAt = max(rows.Rewards[i].CreatedAt, s.ended.Load()+1)
	}
	r, err := s.enc.rows(kindReward, lineReward, rows)
	if err != nil {
		return err
	}
	return s.submit(ctx, s.committer.rows, &r)
}

var errNoEpisode = errors.New("a call without its episode")

// Call records one of the two lines of a model call: [dataset.CallStart]
// before the request leaves, [dataset.CallEnd] after its answer. When it
// returns nil the line is with the operating system, so that it survives the
// death of the process; the next Write syncs it. If the attempt never ends, its
// lines become a row with outcome operator and the cost that is known.
func (s *Store) Call(ctx context.Context, c dataset.Call) error {
	if c.Episode == nil {
		return errNoEpisode
	}
	r := s.enc.call(s.callRow(&c), c.Phase)
	return s.submit(ctx, s.committer.calls, &r)
}

func (s *Store) callRow(call *dataset.Call) CallRow {
	ep, clean := call.Episode, s.flat.clean
	return CallRow{
		CallID: call.CallID, Agent: call.Agent, AtUS: call.AtUnixUS,
		EpisodeID: ep.ID, Attempt: ep.Attempt, GroupID: ep.GroupID, Sample: ep.Sample, Epoch: ep.Epoch,
		Variant: clean.text(ep.Variant), VariantHash: ep.VariantHash, Seed: ep.Seed,
		TaskID: clean.text(ep.Task.ID), TaskHash: ep.Task.Hash, Occurrence: ep.Task.Occurrence,
		Dataset: clean.text(ep.Task.Dataset), Split: clean.opt(ep.Task.Split),
		MostTokens: call.Most.Tokens, MostNanoUSD: call.Most.NanoUSD,
		Usage: call.Usage, CostNanoUSD: call.CostNanoUSD, Unreported: call.Unreported,
		ErrorClass: clean.text(call.ErrorClass),
	}
}
