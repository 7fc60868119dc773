package store

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
)

// killedRun is a run of two parts whose process died with three attempts in
// the journal.
func killedRun(tb testing.TB) *memFS {
	tb.Helper()
	fsys := newMemFS()
	s := mustCreate(tb, crashDir, Options{FS: fsys, PartRows: 2})
	for i := range 4 {
		mustWrite(tb, s, sampleTrajectory(i, false))
	}
	mustClose(tb, s)
	s = mustOpen(tb, crashDir, Options{FS: fsys})
	for i := range 3 {
		mustWrite(tb, s, sampleTrajectory(10+i, false))
	}
	image := fsys.crash(dropUnsynced, 0)
	if err := s.Close(); err == nil { // its file layer is dead
		tb.Fatal("a dead store closed well")
	}
	return image
}

func (m *memFS) only(tb testing.TB, dir, contains string) string {
	tb.Helper()
	var found []string
	for _, f := range m.files(dir) {
		if strings.Contains(f, contains) {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		tb.Fatalf("files with %q: %v, want one", contains, found)
	}
	return found[0]
}

func (m *memFS) content(tb testing.TB, path string) *memNode {
	tb.Helper()
	n, err := m.find(path)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// state is the content of every file, to see that nothing was changed.
func (m *memFS) state() map[string]string {
	all := map[string]string{}
	for _, f := range m.files("/") {
		if b, err := readFile(m, f); err == nil && !strings.HasSuffix(f, lockFile) {
			all[f] = string(b)
		}
	}
	return all
}

// TestDamageIsReported damages a file in every way that must be an error: it
// names the file, says what to do, and changes nothing.
func TestDamageIsReported(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, fsys *memFS) (path string)
		want   string
	}{
		{"part with a flipped byte", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			path := filepath.Join(crashDir, tAttempts, partName(0))
			fsys.content(t, path).data[100] ^= 1
			return path
		}, "sha256"},
		{"part cut short", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			path := filepath.Join(crashDir, tMessages, partName(1))
			n := fsys.content(t, path)
			n.data = n.data[:len(n.data)-10]
			return path
		}, "bytes"},
		{"part missing", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			path := filepath.Join(crashDir, tRewards, partName(1))
			if err := fsys.Remove(path); err != nil {
				t.Fatal(err)
			}
			return path
		}, "restore the file"},
		{"uncommitted part without its segment", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			path := filepath.Join(crashDir, tMessages, partName(9))
			if err := writeSynced(fsys, path, []byte("PAR1")); err != nil {
				t.Fatal(err)
			}
			return path
		}, "seg-00009.jsonl.zst, which could rebuild it, is missing"},
		{"last manifest line lost after its segment went", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			n := fsys.content(t, filepath.Join(crashDir, manifestFile))
			n.data = n.data[:len(n.data)-30]
			return filepath.Join(crashDir, tAttempts, partName(1))
		}, "seg-00001.jsonl.zst"},
		{"manifest missing", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			path := filepath.Join(crashDir, manifestFile)
			if err := fsys.Remove(path); err != nil {
				t.Fatal(err)
			}
			return path
		}, "restore it"},
		{"run.json is no JSON", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			path := filepath.Join(crashDir, runFile)
			fsys.content(t, path).data = []byte("{")
			return path
		}, "restore it"},
		{"uncommitted part with more rows than its segment", func(t *testing.T, fsys *memFS) string {
			t.Helper()
			segment := fsys.only(t, crashDir, "seg-")
			number, _ := segmentNumber(filepath.Base(segment))
			copyFile(t, fsys, filepath.Join(crashDir, tMessages, partName(0)), filepath.Join(crashDir, tMessages, partName(number)))
			n := fsys.content(t, segment)
			_, size, _ := frameAt(n.data)
			n.data = n.data[:size+5] // one record of three
			return segment
		}, "it gives 6 rows of messages"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := killedRun(t)
			path := tt.damage(t, fsys)
			before := fsys.state()
			_, err := Open(crashDir, Options{FS: fsys})
			damage := new(DamageError)
			if !errors.As(err, &damage) {
				t.Fatalf("error = %v, want a DamageError", err)
			}
			if damage.Path != path || damage.Advice == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v\nwant one about %s with %q", err, path, tt.want)
			}
			if diff := cmp.Diff(before, fsys.state()); diff != "" {
				t.Errorf("files were changed (-before +after):\n%s", diff)
			}
			if len(fsys.locked) > 0 {
				t.Error("the lock is still held")
			}
		})
	}
}

func copyFile(t *testing.T, fsys *memFS, from, to string) {
	t.Helper()
	if err := writeSynced(fsys, to, bytes.Clone(fsys.content(t, from).data)); err != nil {
		t.Fatal(err)
	}
}

// TestJournalDamage damages the journal of a killed run; what can be read is
// recovered.
func TestJournalDamage(t *testing.T) {
	tests := []struct {
		name   string
		damage func(segment []byte, frames []int) []byte
		want   []int // of the attempts 10, 11, 12 in the journal
		kept   bool  // the damaged file is set aside
	}{
		{"whole", func(b []byte, _ []int) []byte { return b }, []int{10, 11, 12}, false},
		{"torn tail", func(b []byte, _ []int) []byte { return b[:len(b)-7] }, []int{10, 11}, false},
		{"zeros behind", func(b []byte, _ []int) []byte { return append(b, make([]byte, 4096)...) }, []int{10, 11, 12}, false},
		{"frame broken in the middle", func(b []byte, at []int) []byte {
			b[at[1]+headerSize+50] ^= 4
			return b
		}, []int{10, 12}, true},
		{"header broken in the middle", func(b []byte, at []int) []byte {
			b[at[1]+3] ^= 4
			return b
		}, []int{10, 12}, true},
		{"nothing left", func(b []byte, _ []int) []byte { return b[:9] }, nil, false},
		{"empty", func([]byte, []int) []byte { return nil }, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := killedRun(t)
			segment := fsys.only(t, crashDir, "seg-")
			n := fsys.content(t, segment)
			n.data = tt.damage(bytes.Clone(n.data), frameOffsets(t, n.data))
			s := mustOpen(t, crashDir, Options{FS: fsys})
			for _, i := range []int{10, 11, 12} {
				recorded := s.Index().State(sampleEpisode(i).ID).Attempts == 1
				if want := slices.Contains(tt.want, i); recorded != want {
					t.Errorf("attempt %d recorded: %t, want %t", i, recorded, want)
				}
			}
			mustClose(t, s)
			if got, want := len(allRows(t, fsys, crashDir).Attempts), 4+len(tt.want); got != want {
				t.Errorf("%d attempts, want %d", got, want)
			}
			if got := exists(fsys, segment+".damaged"); got != tt.kept {
				t.Errorf("damaged segment kept: %t, want %t", got, tt.kept)
			}
			if exists(fsys, segment) {
				t.Error("the segment is left after Close")
			}
		})
	}
}

func frameOffsets(t *testing.T, segment []byte) (offsets []int) {
	t.Helper()
	for at := 0; at < len(segment); {
		offsets = append(offsets, at)
		_, size, ok := frameAt(segment[at:])
		if !ok {
			t.Fatal("the segment is damaged before the test")
		}
		at += size
	}
	return offsets
}

func exists(fsys FS, path string) bool {
	f, err := fsys.OpenFile(path, toRead)
	if err == nil {
		closeRead(f)
	}
	return err == nil
}

// TestTornManifestLine cuts the last line while its segment is there: the part
// is written again from it.
func TestTornManifestLine(t *testing.T) {
	for _, cut := range []int{1, 2, 40, 200} {
		t.Run(strconv.Itoa(cut), func(t *testing.T) {
			fsys := newMemFS()
			s := mustCreate(t, crashDir, Options{FS: fsys, PartRows: 2})
			for i := range 4 {
				mustWrite(t, s, sampleTrajectory(i, true))
			}
			s.committer.stop <- struct{}{} // the committer ends as in Close, but the segments stay
			s.running.Wait()
			n := fsys.content(t, filepath.Join(crashDir, manifestFile))
			n.data = n.data[:len(n.data)-cut]
			n.synced = n.data
			after := fsys.crash(dropUnsynced, 0)
			again := mustOpen(t, crashDir, Options{FS: after})
			mustClose(t, again)
			got := allRows(t, after, crashDir)
			if len(got.Attempts) != 4 || len(got.Sequences) != 8 {
				t.Errorf("%d attempts and %d sequences, want 4 and 8", len(got.Attempts), len(got.Sequences))
			}
		})
	}
}

// killedCalls is what a crash left of an attempt with three calls, of which the
// last has no end.
func killedCalls(t *testing.T, ep *dataset.Episode) *memFS {
	t.Helper()
	fsys := newMemFS()
	s := mustCreate(t, crashDir, Options{FS: fsys})
	for n := range 3 {
		start, end := sampleCalls(ep, n)
		end.Unreported = n
		start.Most = dataset.Spend{NanoUSD: 5000, Tokens: 50}
		end.Most = start.Most
		for _, c := range []dataset.Call{start, end} {
			if n == 2 && c.Phase == dataset.CallEnd {
				break
			}
			if err := s.Call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	image := fsys.crash(keepUnsynced, 0)
	if err := s.Close(); err == nil {
		t.Fatal("a dead store closed well")
	}
	return image
}

// TestKilledAttempt is the row of an attempt of which only calls are left.
func TestKilledAttempt(t *testing.T) {
	ep := sampleEpisode(3)
	fsys := killedCalls(t, &ep)
	s := mustOpen(t, crashDir, Options{FS: fsys})
	if got := s.Index().State(ep.ID); got.Outcome != dataset.OutcomeOperator || got.Attempts != 1 {
		t.Errorf("state = %+v, want one operator attempt", got)
	}
	if spent := s.Spent(); spent.Unreported != 2 || spent.CostKnown != 2001 || spent.Cost() != nil {
		t.Errorf("spent = %+v", spent)
	}
	mustClose(t, s)
	s = mustOpen(t, crashDir, Options{FS: fsys})
	if lost := s.Index().Tallies()[0].Lost; lost != (dataset.Spend{NanoUSD: 10_000, Tokens: 100}) {
		t.Errorf("two unreported calls may have used %+v", lost)
	}
	mustClose(t, s)
	rows := allRows(t, fsys, crashDir)
	if len(rows.Attempts) != 1 || len(rows.Spans) != 3 {
		t.Fatalf("%d attempts and %d spans, want 1 and 3", len(rows.Attempts), len(rows.Spans))
	}

	f, v := newFlattener(sampleRun(), Options{}), sampleVariant()
	first := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC).UnixMicro()
	want := AttemptRow{
		RunID: sampleRun().RunID, EpisodeID: ep.ID, Outcome: string(dataset.OutcomeOperator), ExitReason: string(dataset.ExitKilled),
		Error: rows.Attempts[0].Error, RewardRule: dataset.RuleNone, PassRule: dataset.RulePassAt,
		Requests: 3, InputTokens: 10 + 11, OutputTokens: 10, CostKnownNanoUSD: 2001, UnreportedCalls: 2, CostStatus: costPartial,
		StartedAt: first, EndedAt: first + 2_000_000, TotalMS: 2000, Extra: `{"unreported_at_most":{"nanousd":10000,"tokens":100}}`,
	}
	f.identity(&want, ep, f.variants[v.Hash])
	if diff := cmp.Diff(want, rows.Attempts[0], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if span := rows.Spans[1]; *span.CallID != ep.ID+"-0-1" || span.DurationUS != 500_000 || *span.InputTokens != 11 {
		t.Errorf("span of the second call = %+v", span)
	}
	if span := rows.Spans[2]; span.InputTokens != nil || deref(span.ErrorClass) != string(dataset.ExitKilled) {
		t.Errorf("span of the call without an end = %+v", span)
	}
}

// FuzzRecovery cuts and flips a killed run's journal or manifest. Opening it
// never panics, either says what is damaged or recovers what can be read, and
// never makes an attempt of nothing or of one two.
func FuzzRecovery(f *testing.F) {
	f.Add(true, uint16(60), uint16(9000), byte(1))
	f.Add(true, uint16(2000), uint16(3000), byte(0))
	f.Add(false, uint16(700), uint16(9000), byte(0x10))
	f.Add(false, uint16(0), uint16(1900), byte(0))
	image := killedRun(f)
	known := map[string]bool{}
	for _, i := range []int{0, 1, 2, 3, 10, 11, 12} {
		known[sampleEpisode(i).ID] = true
	}
	f.Fuzz(func(t *testing.T, journal bool, flip, cut uint16, mask byte) {
		fsys := image.crash(keepUnsynced, 0)
		image.stopped = false
		path := filepath.Join(crashDir, manifestFile)
		if journal {
			path = fsys.only(t, crashDir, "seg-")
		}
		n := fsys.content(t, path)
		n.data[int(flip)%len(n.data)] ^= mask
		n.data = n.data[:int(cut)%(len(n.data)+1)]
		s, err := Open(crashDir, Options{FS: fsys})
		if err != nil {
			if damage := new(DamageError); !errors.As(err, &damage) {
				t.Errorf("error = %v, want a DamageError", err)
			}
			return
		}
		mustClose(t, s)
		count := map[string]int{}
		for _, a := range allRows(t, fsys, crashDir).Attempts {
			if count[a.EpisodeID]++; count[a.EpisodeID] > 1 || !known[a.EpisodeID] {
				t.Errorf("attempt %s is there %d times", a.EpisodeID, count[a.EpisodeID])
			}
		}
		if len(count) < 4 {
			t.Errorf("%d attempts, the parts alone hold 4", len(count))
		}
	})
}

// TestCorruptMessages: a run whose messages are damaged goes on, since resuming
// does not need them; reading them says which file it is.
func TestCorruptMessages(t *testing.T) {
	fsys := killedRun(t)
	path := filepath.Join(crashDir, tMessages, partName(0))
	n := fsys.content(t, path)
	for i := 50; i < len(n.data)/2; i++ {
		n.data[i] ^= 0x55
	}
	mustClose(t, mustOpen(t, crashDir, Options{FS: fsys}))
	if err := fsys.Mkdir("/tmp"); err != nil {
		t.Fatal(err)
	}
	v, err := openView(fsys, crashDir, "/tmp")
	if err != nil {
		t.Fatal(err)
	}
	damage := new(DamageError)
	for _, err = range v.Trajectories(nil) {
		if err != nil {
			break
		}
	}
	if !errors.As(err, &damage) || damage.Path != path {
		t.Errorf("error = %v, want one about %s", err, path)
	}
}

// TestStrayCall: a call line that comes after its attempt's row is no attempt
// of its own, neither at Close nor after a crash.
func TestStrayCall(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		fsys := newMemFS()
		s := mustCreate(t, crashDir, Options{FS: fsys, PartRows: 1})
		for i := range 2 {
			tr := sampleTrajectory(i, false)
			mustWrite(t, s, tr)
			if err := s.Index().Add(AttemptOf(tr, "")); err != nil {
				t.Fatal(err)
			}
		}
		ep := sampleEpisode(0)
		start, _ := sampleCalls(&ep, 0)
		if err := s.Call(t.Context(), start); err != nil {
			t.Fatal(err)
		}
		if crashed {
			image := fsys.crash(keepUnsynced, 0)
			if err := s.Close(); err == nil {
				t.Fatal("a dead store closed well")
			}
			fsys = image
			s = mustOpen(t, crashDir, Options{FS: fsys})
		}
		mustClose(t, s)
		if got := len(allRows(t, fsys, crashDir).Attempts); got != 2 {
			t.Errorf("crashed %t: %d attempts, want 2", crashed, got)
		}
	}
}
