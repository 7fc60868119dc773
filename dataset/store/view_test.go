package store

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// seen counts the attempts that a view shows, in parts and journal.
func seen(t *testing.T, v *View) map[attemptKey]int {
	t.Helper()
	keys := map[attemptKey]int{}
	for a, err := range v.Attempts() {
		if err != nil {
			t.Fatal(err)
		}
		keys[attemptKey{a.EpisodeID, a.Attempt}]++
	}
	return keys
}

// TestViewOfARunningRun reads again and again while a run is written: each
// attempt that was acknowledged before is there once.
func TestViewOfARunningRun(t *testing.T) {
	const attempts = 150
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{PartRows: 4})
	var acked atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range attempts {
			if err := s.Write(context.Background(), []*dataset.Trajectory{sampleTrajectory(i, false)}); err != nil {
				t.Error(err)
				return
			}
			acked.Store(int64(i + 1))
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		look(t, dir, int(acked.Load()))
	}
	mustClose(t, s)
	v, err := OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(seen(t, v)); got != attempts || len(v.Journal) != 0 {
		t.Errorf("%d attempts and journal %v after Close, want %d and none", got, v.Journal, attempts)
	}
	for table, files := range v.Files {
		for _, f := range files {
			if _, err := os.Stat(f); err != nil || !filepath.IsAbs(f) {
				t.Errorf("%s: %v", table, err)
			}
		}
	}
}

// look reads a run of which so many attempts are acknowledged.
func look(t *testing.T, dir string, acked int) {
	t.Helper()
	v, err := OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys := seen(t, v)
	for i := range acked {
		if key := (attemptKey{sampleEpisode(i).ID, 0}); keys[key] != 1 {
			t.Fatalf("attempt %d is shown %d times, of %d acknowledged", i, keys[key], acked)
		}
	}
	index, err := v.Index()
	if err != nil {
		t.Fatal(err)
	}
	if index.Len() != len(keys) {
		t.Fatalf("%d episodes in the index, %d in the rows", index.Len(), len(keys))
	}
}

// TestViewShowsARecordOnce reads a journal in which a record stands twice,
// because its first segment failed when it was synced.
func TestViewShowsARecordOnce(t *testing.T) {
	fsys := newMemFS()
	s := mustCreate(t, crashDir, Options{FS: fsys})
	ep := sampleEpisode(9)
	start, _ := sampleCalls(&ep, 0)
	if err := s.Call(t.Context(), start); err != nil { // so that the failing segment is kept
		t.Fatal(err)
	}
	fail := true
	fsys.before = func(op memOp) fault {
		if op.kind == "sync" && fail {
			fail = false
			return fault{err: syscall.EIO}
		}
		return fault{}
	}
	mustWrite(t, s, sampleTrajectory(0, false))
	if err := fsys.Mkdir("/tmp"); err != nil {
		t.Fatal(err)
	}
	numbers, err := segments(fsys, crashDir)
	if err != nil || len(numbers) != 2 {
		t.Fatalf("segments %v, %v; want the failed one and the next", numbers, err)
	}
	v, err := openView(fsys, crashDir, "/tmp")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[attemptKey]int{{sampleEpisode(0).ID, 0}: 1}, seen(t, v)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	mustClose(t, s)
	if got := len(allRows(t, fsys, crashDir).Attempts); got != 2 {
		t.Errorf("%d attempts after Close, want it once and the one that never ended", got)
	}
}

// TestLateRewards gives rewards to recorded attempts: the index of the store
// that is opened next and those of views know them.
func TestLateRewards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{})
	unscored := sampleTrajectory(0, false)
	unscored.Rewards[0].Value = nil
	unscored.AddFlag(dataset.FlagUnscored)
	unscored.ChooseReward()
	mustWrite(t, s, unscored, sampleTrajectory(1, false), sampleTrajectory(2, false))
	late := []dataset.LateReward{
		{EpisodeID: sampleEpisode(0).ID, Reward: dataset.Reward{Name: "exact", Source: dataset.FromScorer, Value: new(1.0), Chosen: true, ScorerHash: "new"}},
		{EpisodeID: sampleEpisode(1).ID, Reward: dataset.Reward{ // with a clock that went back
			Name: "group", Source: dataset.FromGroup, Value: new(0.25), Chosen: true, CreatedAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		}},
		{EpisodeID: sampleEpisode(2).ID, Reward: dataset.Reward{Name: "label", Source: dataset.FromHuman, Value: new(9.0)}},
	}
	if err := s.Rewards(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	check := func(where string, index *Index) {
		t.Helper()
		state := index.State(sampleEpisode(0).ID)
		if state.Unscored || state.ScorerHash != "new" {
			t.Errorf("%s: state %+v, want it scored", where, state)
		}
		if got := index.State(sampleEpisode(1).ID).ScorerHash; got != sampleVariant().ScorerHash {
			t.Errorf("%s: scorer hash %q, want the variant's", where, got)
		}
		got := index.Tallies()[0]
		if got.Scored != 3 || got.Passed != 1 || got.RewardSum != 1.25 || got.Unscored != 0 {
			t.Errorf("%s: tally %+v", where, got)
		}
	}
	index := func() *Index {
		v, err := OpenView(dir, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		ix, err := v.Index()
		if err != nil {
			t.Fatal(err)
		}
		return ix
	}
	check("view of the journal", index())
	mustClose(t, s)
	check("view of the part", index())
	s = mustOpen(t, dir, Options{})
	check("store", s.Index())
	if err := s.Rewards(t.Context(), nil); err != nil {
		t.Error(err)
	}
	mustClose(t, s)
	trs := viewed(t, dir)
	if len(trs) != 3 || len(trs[0].Rewards) != 2 || *trs[0].Rewards[1].Value != 1 {
		t.Errorf("trajectories do not bring their late rewards")
	}
}

// TestTrajectoriesAreCurrent leaves out attempts that another one replaced,
// delegated episodes, and what keep does not want.
func TestTrajectoriesAreCurrent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{PartRows: 1})
	first, second, other := sampleTrajectory(0, false), sampleTrajectory(0, false), sampleTrajectory(4, false)
	first.ExitReason, first.Rewards = dataset.ExitProviderError, nil
	first.ChooseReward()
	second.Episode.Attempt = 1
	child := sampleTrajectory(5, false)
	child.ParentEpisodeID, child.Episode.ID = other.Episode.ID, dataset.ChildID(other.Episode.ID, 0)
	other.Children = []*dataset.Trajectory{child}
	for _, tr := range []*dataset.Trajectory{first, second, other} {
		mustWrite(t, s, tr)
	}
	mustClose(t, s)
	all := viewed(t, dir)
	if len(all) != 2 || all[0].Episode.Attempt != 1 || all[1].Episode.ID != other.Episode.ID {
		t.Fatalf("%d trajectories, want the current two", len(all))
	}
	if all[0].Episode.Task.Input == "" {
		t.Error("the task of a part before is not found")
	}
	v, err := OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for tr, err := range v.Trajectories(func(a *AttemptRow) bool { return a.Attempt == 1 }) {
		if err != nil || tr.Episode.ID != first.Episode.ID {
			t.Errorf("%v, %v: want only the second attempt", tr, err)
		}
	}
	for _, err := range v.Trajectories(nil) {
		if err != nil {
			t.Error(err)
		}
		break // a consumer may stop
	}
	index, err := v.Index()
	if err != nil {
		t.Fatal(err)
	}
	if got := index.Tallies()[0]; index.Len() != 2 || got.Attempts != 4 || got.Total() != 2 {
		t.Errorf("index of %d episodes, tally %+v; want 2 episodes and 4 attempts", index.Len(), got)
	}
}

// TestTrajectoriesAcrossParts finds tasks and late rewards that lie many parts
// before or after their attempt.
func TestTrajectoriesAcrossParts(t *testing.T) {
	const others = 2 * maxRecentParts
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{PartRows: 1})
	first, again := sampleTrajectory(0, false), sampleTrajectory(0, false)
	first.ExitReason, first.Rewards = dataset.ExitProviderError, nil
	first.ChooseReward()
	again.Episode.Attempt = 1
	mustWrite(t, s, first)
	for i := range others {
		mustWrite(t, s, sampleTrajectory(1+i, false))
	}
	mustWrite(t, s, again)
	value := 0.25
	late := dataset.LateReward{
		EpisodeID: sampleTrajectory(1, false).Episode.ID,
		Reward:    dataset.Reward{Name: "late", Source: dataset.FromScorer, Value: &value, Chosen: true},
	}
	if err := s.Rewards(t.Context(), []dataset.LateReward{late}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	all := viewed(t, dir)
	if len(all) != others+1 {
		t.Fatalf("%d trajectories, want %d", len(all), others+1)
	}
	for _, tr := range all {
		if tr.Episode.Task.Input == "" {
			t.Errorf("the task of episode %s is not found", tr.Episode.ID)
		}
		isLate := func(r dataset.Reward) bool { return r.Name == "late" }
		if got, want := slices.ContainsFunc(tr.Rewards, isLate), tr.Episode.ID == late.EpisodeID; got != want {
			t.Errorf("episode %s: late reward %v, want %v", tr.Episode.ID, got, want)
		}
	}
}

// TestBlobs keeps long parts of messages once, beside the rows.
func TestBlobs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	long := make([]byte, maxInlinePart)
	for i := range long {
		long[i] = 'a' + byte(i%26)
	}
	parts := `[{"type":"text","text":"<short>"},{"type":"image","data":"` + string(long) + `"}]`
	for i := range 2 {
		var s *Store
		if i == 0 {
			s = mustCreate(t, dir, Options{})
		} else {
			s = mustOpen(t, dir, Options{})
		}
		tr := sampleTrajectory(i, false)
		tr.Messages[1].Parts, tr.Messages[2].Parts = []byte(parts), []byte(`"`+string(long)+`"`)
		mustWrite(t, s, tr)
		mustClose(t, s)
	}
	files, err := os.ReadDir(filepath.Join(dir, blobDir))
	if err != nil || len(files) != 2 {
		t.Fatalf("blobs %v, %v; want two", files, err)
	}
	for _, row := range allRows(t, osFS{}, dir).Messages {
		if len(deref(row.Parts)) > 300 {
			t.Errorf("a row holds %d bytes of parts", len(*row.Parts))
		}
	}
	for _, tr := range viewed(t, dir) {
		if got := string(tr.Messages[1].Parts); got != parts {
			t.Errorf("parts of %d bytes came back with %d", len(parts), len(got))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, blobDir, files[0].Name()), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	failed := false
	for _, err := range v.Trajectories(nil) {
		failed = failed || err != nil
	}
	if !failed {
		t.Error("a damaged blob was not noticed")
	}
}
