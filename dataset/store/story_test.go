package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
)

const crashDir = "/runs/r"

// story is a run of four parts as its caller sees it: what it asked the store
// to record, and what the store acknowledged.
type story struct {
	sequences bool
	settle    func() // waits for the part writer, where the order of operations must be fixed

	want   map[attemptKey]*Rows // of what was sent
	acked  []attemptKey
	late   []dataset.LateReward // acknowledged
	calls  []dataset.Call       // acknowledged
	synced int                  // of calls: those that a later acknowledged write made durable
	closed bool

	parts map[string]*Rows // that were read before, by the hashes of their files; nil: an image that was verified
	where string           // what verify verifies, for the log of a failure
}

func (st *story) options(fsys FS) Options { return Options{FS: fsys, PartRows: 3} }

// tell runs the story until the store fails or its end. Attempts 12 and 13
// make calls all the while; 12 ends in the last part and 13 never.
func (st *story) tell(fsys FS) {
	st.want = map[attemptKey]*Rows{}
	s, err := Create(crashDir, sampleRun(), st.options(fsys))
	if err != nil {
		return
	}
	st.acts(s)
	st.closed = s.Close() == nil
}

const (
	slowAttempt = 12
	lostAttempt = 13
)

func (st *story) acts(s *Store) {
	slow, lost := sampleEpisode(slowAttempt), sampleEpisode(lostAttempt)
	for i := range 12 {
		ep := sampleEpisode(i)
		ok := st.call(s, &ep, 0) && st.call(s, &slow, i) && st.write(s, i)
		if ok && i%3 == 0 {
			ok = st.startOnly(s, &lost, i)
		}
		if ok && i%4 == 1 {
			ok = st.reward(s, i)
		}
		if !ok {
			return
		}
	}
	st.write(s, slowAttempt)
}

func (st *story) call(s *Store, ep *dataset.Episode, n int) bool {
	start, end := sampleCalls(ep, n)
	for _, c := range []dataset.Call{start, end} {
		if s.Call(context.Background(), c) != nil {
			return false
		}
		st.calls = append(st.calls, c)
	}
	return true
}

func (st *story) startOnly(s *Store, ep *dataset.Episode, n int) bool {
	start, _ := sampleCalls(ep, n)
	if s.Call(context.Background(), start) != nil {
		return false
	}
	st.calls = append(st.calls, start)
	return true
}

func (st *story) write(s *Store, i int) bool {
	tr := sampleTrajectory(i, st.sequences)
	key := attemptKey{tr.Episode.ID, 0}
	st.want[key] = expectedRows(sampleRun(), tr)
	calls := len(st.calls)
	if s.Write(context.Background(), []*dataset.Trajectory{tr}) != nil {
		return false
	}
	st.acked, st.synced = append(st.acked, key), calls
	st.settle()
	return true
}

func (st *story) reward(s *Store, i int) bool {
	late := dataset.LateReward{EpisodeID: sampleEpisode(i - 1).ID, Reward: dataset.Reward{
		Name: fmt.Sprintf("group-%d", i), Source: dataset.FromGroup, Value: new(0.25), Chosen: true,
	}}
	calls := len(st.calls)
	if s.Rewards(context.Background(), []dataset.LateReward{late}) != nil {
		return false
	}
	st.late, st.synced = append(st.late, late), calls
	st.settle()
	return true
}

// verify opens what a crash left and compares it with the story; further tells
// it to go on with the run then.
func (st *story) verify(t *testing.T, fsys *memFS, mode crashMode, further bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(st.where)
		}
	}()
	if st.known(fsys, mode, further) {
		return
	}
	readableByOthers(t, fsys)
	s, err := Open(crashDir, st.options(fsys))
	if errors.Is(err, ErrNotRun) && len(st.acked)+len(st.late)+len(st.calls) == 0 {
		st.createAgain(t, fsys)
		return
	}
	if err != nil {
		t.Fatalf("opening again: %v", err)
	}
	rows := st.read(t, fsys)
	st.compare(t, rows)
	if mode == keepUnsynced {
		st.compareCalls(t, rows, st.calls)
	} else {
		st.compareCalls(t, rows, st.calls[:st.synced])
	}
	compareIndex(t, s, rows)
	if further {
		st.goOn(t, s, fsys, rows)
		return
	}
	mustClose(t, s)
}

// readableByOthers fails if the folder of a table holds what is no whole part:
// other readers take the folder as it is, whatever its files are called.
func readableByOthers(t *testing.T, fsys FS) {
	t.Helper()
	for _, table := range Tables() {
		names, _ := fsys.ReadDir(filepath.Join(crashDir, table)) // before it is made there is none
		for _, name := range names {
			f, err := fsys.OpenFile(filepath.Join(crashDir, table, name), toRead)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := footerRows(f); err != nil {
				t.Fatalf("%s/%s: %v", table, name, err)
			}
			closeRead(f)
		}
	}
}

// known reports whether the same files were verified before, with the same
// acknowledged: most operations leave nothing that a crash would keep.
func (st *story) known(fsys *memFS, mode crashMode, further bool) bool {
	image := sha256.New()
	for _, path := range fsys.files("/") {
		b, err := readFile(fsys, path)
		image.Write(fmt.Appendln(nil, path, len(b), err))
		image.Write(b)
	}
	calls := st.synced
	if mode == keepUnsynced {
		calls = len(st.calls)
	}
	key := fmt.Sprintf("%x %d %d %d %t", image.Sum(nil), len(st.acked), len(st.late), calls, further)
	_, seen := st.parts[key]
	st.parts[key] = nil
	return seen
}

// read reads every committed row, each file with the same content once.
func (st *story) read(t *testing.T, fsys FS) *Rows {
	t.Helper()
	man, err := readManifest(fsys, crashDir)
	if err != nil {
		t.Fatal(err)
	}
	rows := &Rows{}
	for _, p := range man.parts {
		key := ""
		var keySb159 strings.Builder
		for _, f := range p.Files {
			keySb159.WriteString(f.SHA256)
			if err := verify(fsys, crashDir, f, true); err != nil {
				t.Fatal(err)
			}
		}
		key += keySb159.String()
		part := st.parts[key]
		if part == nil {
			part = partRows(t, fsys, crashDir, p)
			st.parts[key] = part
		}
		rows.Attempts = append(rows.Attempts, part.Attempts...)
		rows.Tasks = append(rows.Tasks, part.Tasks...)
		rows.Messages = append(rows.Messages, part.Messages...)
		rows.ToolCalls = append(rows.ToolCalls, part.ToolCalls...)
		rows.Spans = append(rows.Spans, part.Spans...)
		rows.Rewards = append(rows.Rewards, part.Rewards...)
		rows.Sequences = append(rows.Sequences, part.Sequences...)
	}
	return rows
}

// createAgain makes sure that a run whose making was cut off can be made.
func (st *story) createAgain(t *testing.T, fsys *memFS) {
	t.Helper()
	s := mustCreate(t, crashDir, st.options(fsys))
	mustWrite(t, s, sampleTrajectory(0, st.sequences))
	mustClose(t, s)
}

// byAttempt sorts rows by their attempt and counts late rewards by name. A late
// one is told by its source here.
func byAttempt(rows *Rows) (perKey map[attemptKey]*Rows, late map[string]int) {
	perKey, late = map[attemptKey]*Rows{}, map[string]int{}
	at := func(id string, attempt int32) *Rows {
		key := attemptKey{id, attempt}
		if perKey[key] == nil {
			perKey[key] = &Rows{}
		}
		return perKey[key]
	}
	for _, r := range rows.Attempts {
		k := at(r.EpisodeID, r.Attempt)
		k.Attempts = append(k.Attempts, r)
	}
	for _, r := range rows.Messages {
		k := at(r.EpisodeID, r.Attempt)
		k.Messages = append(k.Messages, r)
	}
	for _, r := range rows.ToolCalls {
		k := at(r.EpisodeID, r.Attempt)
		k.ToolCalls = append(k.ToolCalls, r)
	}
	for _, r := range rows.Spans {
		k := at(r.EpisodeID, r.Attempt)
		k.Spans = append(k.Spans, r)
	}
	for _, r := range rows.Sequences {
		k := at(r.EpisodeID, r.Attempt)
		k.Sequences = append(k.Sequences, r)
	}
	for _, r := range rows.Rewards {
		if r.Source == dataset.FromGroup {
			late[r.Name]++
			continue
		}
		k := at(r.EpisodeID, r.Attempt)
		k.Rewards = append(k.Rewards, r)
	}
	return perKey, late
}

// compare checks that each acknowledged attempt and reward is there once, in
// every table, and nothing twice.
func (st *story) compare(t *testing.T, got *Rows) {
	t.Helper()
	perKey, late := byAttempt(got)
	for _, key := range st.acked {
		if perKey[key] == nil {
			t.Fatalf("acknowledged attempt %v is lost", key)
		}
		want := *st.want[key]
		want.Tasks = nil
		if reflect.DeepEqual(&want, perKey[key]) {
			continue
		}
		if diff := cmp.Diff(&want, perKey[key], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("acknowledged attempt %v (-want +got):\n%s", key, diff)
		}
	}
	for key, rows := range perKey {
		if len(rows.Attempts) != 1 {
			t.Fatalf("attempt %v has %d rows", key, len(rows.Attempts))
		}
	}
	for _, l := range st.late {
		if late[l.Reward.Name] != 1 {
			t.Fatalf("late reward %s is there %d times", l.Reward.Name, late[l.Reward.Name])
		}
	}
	st.compareTasks(t, got)
}

func (st *story) compareTasks(t *testing.T, got *Rows) {
	t.Helper()
	tasks := map[string]TaskRow{}
	for _, row := range got.Tasks {
		if had, ok := tasks[row.TaskID]; ok && !cmp.Equal(had, row) {
			t.Fatalf("task %s has two different rows", row.TaskID)
		}
		tasks[row.TaskID] = row
	}
	for _, key := range st.acked {
		want := st.want[key].Tasks[0]
		if diff := cmp.Diff(want, tasks[want.TaskID]); diff != "" {
			t.Fatalf("task of %v (-want +got):\n%s", key, diff)
		}
	}
}

// compareCalls checks that calls of attempts without a row of their own are in
// rows of outcome operator, with what they cost.
func (st *story) compareCalls(t *testing.T, got *Rows, calls []dataset.Call) {
	t.Helper()
	books := map[attemptKey]*dataset.Books{}
	open := map[string]bool{}
	for _, c := range calls {
		key := attemptKey{c.Episode.ID, int32(c.Episode.Attempt)}
		if books[key] == nil {
			books[key] = &dataset.Books{}
		}
		if c.Phase == dataset.CallEnd {
			books[key].Add(c)
		}
		open[c.CallID] = c.Phase == dataset.CallStart
	}
	rows := map[attemptKey]AttemptRow{}
	for _, r := range got.Attempts {
		rows[attemptKey{r.EpisodeID, r.Attempt}] = r
	}
	for key, want := range books {
		row, ok := rows[key]
		if !ok {
			t.Fatalf("the calls of attempt %v are lost", key)
		}
		if row.Outcome != string(dataset.OutcomeOperator) {
			continue // its own row tells its cost
		}
		if row.InputTokens < want.Usage.Input || row.CostKnownNanoUSD < want.CostKnown || row.Reward != nil {
			t.Fatalf("attempt %v: %d tokens and cost %d; its calls had %d and %d",
				key, row.InputTokens, row.CostKnownNanoUSD, want.Usage.Input, want.CostKnown)
		}
		st.compareWhole(t, key, row)
	}
	for id, unended := range open {
		key := attemptKey{strings.SplitN(id, "-", 2)[0], 0}
		if unended && rows[key].UnreportedCalls == 0 && rows[key].Outcome == string(dataset.OutcomeOperator) {
			t.Fatalf("call %s never ended and attempt %v has no unreported call", id, key)
		}
	}
}

// compareWhole checks that an operator's row counts no call twice.
func (st *story) compareWhole(t *testing.T, key attemptKey, row AttemptRow) {
	t.Helper()
	var all dataset.Books
	ids := map[string]bool{}
	for _, c := range st.calls {
		if c.Episode.ID != key.episodeID {
			continue
		}
		ids[c.CallID] = true
		if c.Phase == dataset.CallEnd {
			all.Add(c)
		}
	}
	// One line more than was acknowledged may be on disk: a call's two lines.
	if row.Requests > int32(len(ids))+1 || row.InputTokens > all.Usage.Input+100 {
		t.Fatalf("attempt %v counts %d calls with %d tokens; %d with %d were made",
			key, row.Requests, row.InputTokens, len(ids), all.Usage.Input)
	}
}

// compareIndex checks that the index and the books say what the rows say.
func compareIndex(t *testing.T, s *Store, rows *Rows) {
	t.Helper()
	var input, cost int64
	for _, r := range rows.Attempts {
		input += r.InputTokens
		cost += r.CostKnownNanoUSD
		state := s.Index().State(r.EpisodeID)
		if state.Attempts != 1 || string(state.Outcome) != r.Outcome {
			t.Fatalf("episode %s: the index says %+v, the row %s", r.EpisodeID, state, r.Outcome)
		}
	}
	spent := s.Spent()
	if spent.Usage.Input != input || spent.CostKnown != cost {
		t.Fatalf("spent %d tokens and %d; the rows say %d and %d", spent.Usage.Input, spent.CostKnown, input, cost)
	}
}

// goOn writes one more attempt, closes, and reads all of it again.
func (st *story) goOn(t *testing.T, s *Store, fsys *memFS, before *Rows) {
	t.Helper()
	mustWrite(t, s, sampleTrajectory(20, st.sequences))
	mustClose(t, s)
	after := st.read(t, fsys)
	if got, want := len(after.Attempts), len(before.Attempts)+1; got != want {
		t.Fatalf("after one more attempt: %d rows, want %d", got, want)
	}
	st.compare(t, after)
	for _, f := range fsys.files(crashDir) {
		if strings.HasSuffix(f, tmpSuffix) && !strings.Contains(f, runFile) || strings.Contains(f, "seg-") {
			t.Fatalf("%s is left after Close", f)
		}
	}
}
