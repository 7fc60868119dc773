package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

const mergedDir = "/out/merged"

func shardDirs() []string { return []string{"/runs/s0", "/runs/s1", "/runs/s2"} }

// shardRuns are the runs of three shards: the first has a late reward and a
// blob, the process of the last was killed with attempts in its journal and one
// in flight.
func shardRuns(tb testing.TB) *memFS {
	tb.Helper()
	fsys := newMemFS()
	for shard, dir := range shardDirs() {
		run := sampleRun()
		run.RunID, run.Shard, run.State, run.Total = dataset.ID("run", dir), fmt.Sprintf("%d/3", shard), StateComplete, 4
		if shard == 2 {
			run.State = StateRunning
		}
		s, err := Create(dir, run, Options{FS: fsys, PartRows: 2})
		if err != nil {
			tb.Fatal(err)
		}
		for i := range 12 {
			if i/2%3 == shard { // both samples of a task
				mustWrite(tb, s, shardTrajectory(i))
			}
		}
		if shard == 2 {
			return diesInFlight(tb, fsys, s)
		}
		if shard == 0 {
			late := dataset.LateReward{EpisodeID: sampleEpisode(0).ID, Reward: dataset.Reward{Name: "group", Source: dataset.FromGroup, Value: new(0.25), Chosen: true}}
			mustReward(tb, s, late)
		}
		mustClose(tb, s)
	}
	panic("store: there are three shards")
}

// diesInFlight kills the process of a run with calls of an attempt in flight.
func diesInFlight(tb testing.TB, fsys *memFS, s *Store) *memFS {
	tb.Helper()
	ep := sampleEpisode(16)
	start, end := sampleCalls(&ep, 0)
	open, _ := sampleCalls(&ep, 1)
	for _, c := range []dataset.Call{start, end, open} {
		if err := s.Call(context.Background(), c); err != nil {
			tb.Fatal(err)
		}
	}
	image := fsys.crash(keepUnsynced, 0)
	if s.Close() == nil {
		tb.Fatal("a dead store closed well")
	}
	return image
}

func mustReward(tb testing.TB, s *Store, late dataset.LateReward) {
	tb.Helper()
	if err := s.Rewards(context.Background(), []dataset.LateReward{late}); err != nil {
		tb.Fatalf("rewarding: %v", err)
	}
}

func shardTrajectory(i int) *dataset.Trajectory {
	tr := sampleTrajectory(i, true)
	if i == 1 {
		tr.Messages[1].Parts = json.RawMessage(`[{"type":"image","data":"` + strings.Repeat("A", maxInlinePart) + `"}]`)
	}
	return tr
}

func mergeOf(fsys FS, prefer Prefer, dirs ...string) (Merged, error) {
	return Merge(context.Background(), mergedDir, dirs, MergeOptions{
		FS: fsys, Prefer: prefer, Run: Run{RunID: dataset.ID("run", "merged"), Version: "test"},
	})
}

// texts are rows by table as sorted JSON, without the run and repeated tasks.
func rowTexts(rows *Rows) map[string][]string {
	all := map[string][]string{}
	add := func(table string, row any) {
		b, err := json.Marshal(row)
		if err != nil {
			panic(err)
		}
		_, rest, _ := strings.Cut(string(b), ",") // behind run_id
		all[table] = append(all[table], rest)
	}
	for i := range rows.Attempts {
		add(tAttempts, rows.Attempts[i])
	}
	for i := range rows.Tasks {
		add(tTasks, rows.Tasks[i])
	}
	for i := range rows.Messages {
		add(tMessages, rows.Messages[i])
	}
	for i := range rows.ToolCalls {
		add(tToolCalls, rows.ToolCalls[i])
	}
	for i := range rows.Spans {
		add(tSpans, rows.Spans[i])
	}
	for i := range rows.Rewards {
		add(tRewards, rows.Rewards[i])
	}
	for i := range rows.Sequences {
		add(tSequences, rows.Sequences[i])
	}
	for table := range all {
		slices.Sort(all[table])
	}
	all[tTasks] = slices.Compact(all[tTasks])
	return all
}

// expectedMerge is what the inputs hold once they are opened, on a copy.
func expectedMerge(tb testing.TB, fsys *memFS, dirs ...string) map[string][]string {
	tb.Helper()
	fsys = fsys.copied()
	rows := &Rows{}
	for _, dir := range dirs {
		s := mustOpen(tb, dir, Options{FS: fsys})
		mustClose(tb, s)
		add := allRows(tb, fsys, dir)
		rows.Attempts = append(rows.Attempts, add.Attempts...)
		rows.Tasks = append(rows.Tasks, add.Tasks...)
		rows.Messages = append(rows.Messages, add.Messages...)
		rows.ToolCalls = append(rows.ToolCalls, add.ToolCalls...)
		rows.Spans = append(rows.Spans, add.Spans...)
		rows.Rewards = append(rows.Rewards, add.Rewards...)
		rows.Sequences = append(rows.Sequences, add.Sequences...)
	}
	return rowTexts(rows)
}

// copied is a file layer with the same content.
func (m *memFS) copied() *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newMemFS()
	next.root = m.root.after(keepUnsynced, nil, map[*memNode]*memNode{})
	return next
}

// below is the part of a state under a directory.
func below(state map[string]string, dir string) map[string]string {
	maps.DeleteFunc(state, func(path, _ string) bool { return !strings.HasPrefix(path, dir+"/") })
	return state
}

// wantMerged wants the merged run to be whole and sound and to hold want.
func wantMerged(tb testing.TB, fsys *memFS, want map[string][]string) {
	tb.Helper()
	if diff := cmp.Diff(want, rowTexts(allRows(tb, fsys, mergedDir))); diff != "" {
		tb.Fatalf("rows (-want +got):\n%s", diff)
	}
	v, err := openView(fsys, mergedDir, "/")
	if err != nil {
		tb.Fatal(err)
	}
	if err := v.Verify(); err != nil {
		tb.Error(err)
	}
	n := 0
	for tr, err := range v.Trajectories(nil) {
		if err != nil {
			tb.Fatal(err)
		}
		if n++; len(tr.Messages) == 0 && tr.Outcome() != dataset.OutcomeOperator {
			tb.Errorf("episode %s has no messages", tr.Episode.ID)
		}
	}
	if n != len(want[tAttempts]) {
		tb.Errorf("%d trajectories, want %d", n, len(want[tAttempts]))
	}
	s := mustOpen(tb, mergedDir, Options{FS: fsys})
	mustClose(tb, s)
}

func TestMergeShards(t *testing.T) {
	fsys := shardRuns(t)
	want := expectedMerge(t, fsys, shardDirs()...)
	before := below(fsys.state(), "/runs")
	m, err := mergeOf(fsys, PreferNone, shardDirs()...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, below(fsys.state(), "/runs")); diff != "" {
		t.Errorf("inputs were changed:\n%s", diff)
	}
	if m.Attempts != 13 || m.Run.Total != 12 || m.Run.State != StateInterrupted || len(m.Missing) > 0 || m.Run.Shard != "" {
		t.Errorf("merged %d attempts: %+v", m.Attempts, m.Run)
	}
	for _, a := range allRows(t, fsys, mergedDir).Attempts {
		if a.RunID != m.Run.RunID {
			t.Fatalf("a row has run_id %s, want %s", a.RunID, m.Run.RunID)
		}
	}
	wantMerged(t, fsys, want)
	if n := len(fsys.files(mergedDir + "/blobs")); n != 1 {
		t.Errorf("%d blobs, want 1", n)
	}
	if exists(fsys, mergedDir+"/"+mergeFile) {
		t.Error("the mark of the merge is left")
	}
}

// Kept columns come through, with the types that their values have together.
func TestMergeKeptColumns(t *testing.T) {
	fsys := shardRuns(t)
	if _, err := mergeOf(fsys, PreferNone, shardDirs()...); err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]any{}
	for _, path := range fsys.files(mergedDir + "/tasks") {
		f, err := fsys.OpenFile(path, toRead)
		if err != nil {
			t.Fatal(err)
		}
		p, err := openParquet(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := readTasks(p, func(row TaskRow) error { got[row.Input] = row.Meta; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d tasks, want 6", len(got))
	}
	want := map[string]any{"level": int64(2), "easy": false}
	if diff := cmp.Diff(want, got["What is 5 + 5?"]); diff != "" {
		t.Errorf("kept columns (-want +got):\n%s", diff)
	}
}

// A column keeps the type that it has in the runs, also where the values of a
// part would fit another, and gets the least that holds both where they differ.
func TestMergeKeptTypes(t *testing.T) {
	fsys := newMemFS()
	for i, dir := range []string{"/runs/0", "/runs/1"} {
		kept := new(KeptTypes)
		kept.Add(map[string]any{"level": 0.5, "easy": i == 0})
		if i == 1 {
			kept.Add(map[string]any{"easy": "maybe"})
		}
		s, err := Create(dir, sampleRun(), Options{FS: fsys, Kept: kept})
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, s, sampleTrajectory(2*i, false)) // its level is an integer
		mustClose(t, s)
	}
	if _, err := mergeOf(fsys, PreferNone, "/runs/0", "/runs/1"); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.OpenFile(fsys.only(t, mergedDir, "tasks/part"), toRead)
	if err != nil {
		t.Fatal(err)
	}
	p, err := openParquet(f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]metaType{}
	for _, field := range p.Schema().Fields() {
		if name, kept := strings.CutPrefix(field.Name(), metaPrefix); kept {
			got[name] = metaTypeIn(field)
		}
	}
	want := map[string]metaType{"level": metaDouble, "easy": metaString}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

// TestMergeRefuses names what is wrong and writes nothing.
func TestMergeRefuses(t *testing.T) {
	file := func(sum string) []Fingerprint { return []Fingerprint{{Path: "tasks.jsonl", Bytes: 5, SHA256: sum}} }
	tests := []struct {
		name   string
		change func(*Run)
		before func(t *testing.T, fsys *memFS) // the merge
		is     error
		want   string
	}{
		{name: "seed", change: func(r *Run) { r.Seed = 8 }, want: "seed: 7 -> 8"},
		{name: "identity", change: func(r *Run) { r.IdentityHash = "other" }, want: "identity of the episodes: identity -> other"},
		{name: "dataset", change: func(r *Run) { r.Datasets = file("bbbbbbbbbb") }, want: "dataset: tasks.jsonl (5 bytes, sha256 aaaaaaaa) -> tasks.jsonl (5 bytes, sha256 bbbbbbbb)"},
		{name: "datasets", change: func(r *Run) { r.Datasets = nil }, want: "dataset: 1 files -> 0 files"},
		{name: "variants", change: func(r *Run) { r.Variants[0].Hash = "other" }, want: "no variant is in both"},
		{name: "running", before: func(t *testing.T, fsys *memFS) {
			t.Helper()
			lock, err := fsys.Lock("/runs/1/lock", "me")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lock.Close() })
		}, is: ErrLocked, want: "/runs/1: another process writes this run (somebody): wait for its end, or interrupt it"},
		{name: "no run", before: func(t *testing.T, fsys *memFS) {
			t.Helper()
			if err := fsys.Remove("/runs/1/run.json"); err != nil {
				t.Fatal(err)
			}
		}, is: ErrNotRun, want: "/runs/1: not a run directory"},
		{name: "damaged part", before: func(t *testing.T, fsys *memFS) {
			t.Helper()
			fsys.content(t, fsys.only(t, "/runs/1", "messages/part")).data[40] ^= 1
		}, want: "is damaged"},
		{name: "something else in the way", before: func(t *testing.T, fsys *memFS) {
			t.Helper()
			mustMkdir(t, fsys, "/out", mergedDir, mergedDir+"/mine")
		}, is: ErrNotEmpty, want: "/out/merged is not empty (it has mine)"},
		{name: "a run in the way", before: func(t *testing.T, fsys *memFS) {
			t.Helper()
			again(t, fsys, mergedDir, nil, sampleTrajectory(0, false))
		}, is: ErrIsRun, want: "/out/merged: it holds a run already"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys := newMemFS()
			again(t, fsys, "/runs/0", func(r *Run) { r.Datasets = file("aaaaaaaaaa") }, sampleTrajectory(0, false))
			again(t, fsys, "/runs/1", func(r *Run) {
				r.Datasets = file("aaaaaaaaaa")
				if test.change != nil {
					test.change(r)
				}
			}, sampleTrajectory(2, false))
			if test.before != nil {
				test.before(t, fsys)
			}
			err := wantRefused(t, fsys, test.want, test.is)
			if _, ok := errors.AsType[*MismatchError](err); ok != (test.change != nil) {
				t.Errorf("%v is a mismatch: %t", err, ok)
			}
		})
	}
	if _, err := mergeOf(newMemFS(), PreferNone); err == nil {
		t.Error("no run at all was merged")
	}
	fsys := shardRuns(t)
	if _, err := mergeOf(fsys, PreferNone, "/runs/s0", "/runs/s1/../s0"); !errors.Is(err, ErrNamedTwice) {
		t.Errorf("a run with itself: %v", err)
	}
}

func wantRefused(t *testing.T, fsys *memFS, want string, is error) error {
	t.Helper()
	before := fsys.state()
	_, err := mergeOf(fsys, PreferNone, "/runs/0", "/runs/1")
	if err == nil || !strings.Contains(err.Error(), want) || is != nil && !errors.Is(err, is) {
		t.Errorf("got %v, want %q", err, want)
	}
	if diff := cmp.Diff(before, fsys.state()); diff != "" {
		t.Errorf("files were changed:\n%s", diff)
	}
	return err
}

func mustMkdir(t *testing.T, fsys FS, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := fsys.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
}

func TestPlanOf(t *testing.T) {
	shard := func(of, state string) MergedRun { return MergedRun{Shard: of, State: state, Total: 10} }
	tests := []struct {
		name     string
		runs     []MergedRun
		total    int
		missing  []string
		complete bool
	}{
		{name: "all shards", runs: []MergedRun{shard("0/2", StateComplete), shard("1/2", StateComplete)}, total: 20, complete: true},
		{name: "an empty shard", runs: []MergedRun{shard("0/2", StateComplete), {Shard: "1/2", State: StateComplete}}, total: 10, complete: true},
		{name: "an interrupted shard", runs: []MergedRun{shard("0/2", StateComplete), shard("1/2", StateRunning)}, total: 20},
		{name: "interrupted and made again", runs: []MergedRun{shard("0/2", StateComplete), shard("1/2", StateFailed), shard("1/2", StateComplete)}, total: 20, complete: true},
		{name: "missing shards", runs: []MergedRun{shard("0/4", StateComplete), shard("2/4", StateComplete)}, missing: []string{"1/4", "3/4"}},
		{name: "two numbers", runs: []MergedRun{shard("0/2", StateComplete), shard("0/4", StateComplete), shard("1/2", StateComplete)}, total: 20, complete: true},
		{name: "two incomplete numbers", runs: []MergedRun{shard("0/4", StateComplete), shard("1/2", StateComplete)}, missing: []string{"0/2"}},
		{name: "a whole run", runs: []MergedRun{shard("", StateComplete), shard("1/2", StateInterrupted)}, total: 10, complete: true},
		{name: "an interrupted whole run", runs: []MergedRun{shard("", StateInterrupted)}, total: 10},
		{name: "merged before", runs: []MergedRun{{State: StateInterrupted}, shard("0/2", StateComplete), shard("1/2", StateComplete)}, total: 20, complete: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := planOf(test.runs)
			if got.total != test.total || got.complete != test.complete || !slices.Equal(got.missing, test.missing) {
				t.Errorf("got %+v, want %d, %v, %t", got, test.total, test.missing, test.complete)
			}
		})
	}
}
