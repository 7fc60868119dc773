package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
)

// expectedRows are the rows of trajectories as a flattener makes them, without
// the kept columns of tasks, which readers see as columns.
func expectedRows(run Run, trs ...*dataset.Trajectory) *Rows {
	f := newFlattener(run, Options{})
	rows := &Rows{}
	for _, tr := range trs {
		f.trajectory(rows, tr)
		task := f.task(tr.Episode.Task)
		task.Meta = nil
		rows.Tasks = append(rows.Tasks, task)
	}
	return rows
}

func TestWriteAndReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "one")
	s := mustCreate(t, dir, Options{})
	var trs []*dataset.Trajectory
	for i := range 5 {
		trs = append(trs, sampleTrajectory(2*i, true)) // each of another task
	}
	mustWrite(t, s, trs...)
	mustClose(t, s)

	got := allRows(t, osFS{}, dir)
	if diff := cmp.Diff(expectedRows(sampleRun(), trs...), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rows read back (-want +got):\n%s", diff)
	}
	if left, err := segments(osFS{}, dir); err != nil || len(left) != 0 {
		t.Errorf("segments after Close: %v, %v; want none", left, err)
	}
}

// TestTaskRows writes the row of a task with its first attempt, once in an
// invocation.
func TestTaskRows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{})
	mustWrite(t, s, sampleTrajectory(0, false), sampleTrajectory(1, false)) // one task
	mustWrite(t, s, sampleTrajectory(2, false))
	mustClose(t, s)
	if got := len(allRows(t, osFS{}, dir).Tasks); got != 2 {
		t.Errorf("%d rows of tasks, want 2", got)
	}
	s = mustOpen(t, dir, Options{})
	mustWrite(t, s, sampleTrajectory(3, false))
	mustClose(t, s)
	if got := len(allRows(t, osFS{}, dir).Tasks); got != 3 {
		t.Errorf("%d rows of tasks after another invocation, want 3", got)
	}
}

func mustOpen(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatalf("opening a run: %v", err)
	}
	return s
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Create(dir, sampleRun(), Options{})
	if err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("error = %v, want one that names the file", err)
	}
	run := filepath.Join(t.TempDir(), "run")
	mustClose(t, mustCreate(t, run, Options{}))
	if _, err := Create(run, sampleRun(), Options{}); err == nil {
		t.Error("a run was made over another")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrNotRun) {
		t.Errorf("error = %v, want ErrNotRun", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("Open left %v in a directory that is no run", names)
	}
	if _, err := OpenView(filepath.Join(dir, "absent"), dir); !errors.Is(err, ErrNotRun) {
		t.Errorf("error = %v, want ErrNotRun", err)
	}
	run := filepath.Join(t.TempDir(), "run")
	mustClose(t, mustCreate(t, run, Options{}))
	later := sampleRun()
	later.SchemaVersion = SchemaVersion + 1
	if err := writeRun(osFS{}, run, later); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(run, Options{}); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("error = %v, want one that asks for a newer release", err)
	}
}

func TestTwoWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{})
	for name, open := range map[string]func() (*Store, error){
		"Open":   func() (*Store, error) { return Open(dir, Options{}) },
		"Create": func() (*Store, error) { return Create(dir, sampleRun(), Options{}) },
	} {
		_, err := open()
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d on ", os.Getpid())) {
			t.Errorf("%s: error = %v, want ErrLocked with the owner", name, err)
		}
	}
	mustClose(t, s)
	mustClose(t, mustOpen(t, dir, Options{}))
}

func TestUpdateRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{})
	err := s.UpdateRun(func(r *Run) {
		r.State = StateComplete
		r.Invocations = append(r.Invocations, Invocation{PID: 1, ExitCode: ptr(0)})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := s.Run()
	mustClose(t, s)
	s = mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	if diff := cmp.Diff(want, s.Run(), rawJSON()); diff != "" {
		t.Errorf("run.json (-want +got):\n%s", diff)
	}
	if want.State != StateComplete || len(want.Invocations) != 1 {
		t.Errorf("state %q and %d invocations, want what was set", want.State, len(want.Invocations))
	}
}

// TestMask looks for a secret in every file of a run, while it is written and
// after.
func TestMask(t *testing.T) {
	const secret = "sk-very-secret"
	fsys := newMemFS()
	opts := Options{FS: fsys, Mask: func(s string) string { return strings.ReplaceAll(s, secret, "***") }}
	s := mustCreate(t, crashDir, opts)
	tr := sampleTrajectory(0, true)
	leak := "a " + secret + " b"
	tr.Messages[1].Content, tr.Messages[1].Parts = leak, []byte(`[{"text":"`+leak+strings.Repeat("x", maxInlinePart)+`"}]`)
	tr.Messages[2].Reasoning, tr.Messages[2].ToolCalls[0].Arguments = leak, leak
	tr.Error, tr.Answer, tr.Extra = leak, &leak, map[string]any{leak: []any{leak}}
	tr.Spans[0].Attrs, tr.Spans[0].Name = map[string]any{"k": leak}, leak
	tr.Rewards[0].Explanation, tr.Rewards[0].Raw = leak, leak
	tr.Episode.Task.Input, tr.Episode.Task.Keep = leak, map[string]any{"x": leak}
	start, _ := sampleCalls(&tr.Episode, 0)
	start.ErrorClass = leak
	if err := s.Call(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, tr)
	lookFor(t, fsys, secret)
	mustClose(t, s)
	lookFor(t, fsys, secret)
	if row := allRows(t, fsys, crashDir).Messages[1]; row.Content != "a *** b" {
		t.Errorf("content = %q, want it masked", row.Content)
	}
}

// lookFor reads every file of a run and everything in its journal.
func lookFor(t *testing.T, fsys *memFS, secret string) {
	t.Helper()
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	for _, path := range fsys.files(crashDir) {
		b, err := readFile(fsys, path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), secret) {
			t.Errorf("%s has the secret", path)
		}
		_, err = scan(b, func(f frame, _ []byte) error {
			var l any
			if err := dec.decode(f, &l); err != nil {
				return err
			}
			if strings.Contains(fmt.Sprint(l), secret) {
				t.Errorf("a record in %s has the secret", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// slowOnce makes the first operation of a kind wait until release is closed;
// others go on meanwhile.
func slowOnce(fsys *memFS, kind, name string, release <-chan struct{}) {
	var once sync.Once
	fsys.before = func(op memOp) fault {
		if op.kind == kind && strings.Contains(op.name, name) {
			once.Do(func() {
				fsys.mu.Unlock()
				<-release
				fsys.mu.Lock()
			})
		}
		return fault{}
	}
}

// TestGroupCommit makes many callers wait on one slow sync: all that queued up
// meanwhile shares the next.
func TestGroupCommit(t *testing.T) {
	const callers = 40
	fsys := newMemFS()
	synctest.Test(t, func(t *testing.T) {
		s := mustCreate(t, crashDir, Options{FS: fsys})
		release := make(chan struct{})
		slowOnce(fsys, "sync", journalDir, release)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				late := []dataset.LateReward{{EpisodeID: sampleEpisode(i).ID, Reward: dataset.Reward{Name: "x"}}}
				if err := s.Rewards(context.Background(), late); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait() // the first one is in its sync
			}
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if got := fsys.syncs[journalDir]; got != 2 {
			t.Errorf("%d syncs for %d callers, want 2", got, callers)
		}
		mustClose(t, s)
	})
	if got := len(allRows(t, fsys, crashDir).Rewards); got != callers {
		t.Errorf("%d rewards, want %d", got, callers)
	}
}

// TestCallsDoNotSync: a call line is with the operating system when Call
// returns, and costs no sync.
func TestCallsDoNotSync(t *testing.T) {
	fsys := newMemFS()
	s := mustCreate(t, crashDir, Options{FS: fsys})
	ep := sampleEpisode(0)
	for n := range 20 {
		start, end := sampleCalls(&ep, n)
		for _, c := range []dataset.Call{start, end} {
			if err := s.Call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := fsys.syncs[journalDir]; got != 0 {
		t.Errorf("%d syncs for calls, want none", got)
	}
	if err := s.Call(t.Context(), dataset.Call{}); err == nil {
		t.Error("a call without an episode was taken")
	}
	mustClose(t, s)
}

// TestRotation writes a part at so many attempts, at so many bytes, and when
// the first row is old, also if nothing more is written.
func TestRotation(t *testing.T) {
	tests := []struct {
		name  string
		opts  Options
		wait  time.Duration
		parts int // before Close
	}{
		{"rows", Options{PartRows: 2}, 0, 2},
		{"bytes", Options{PartBytes: 1}, 0, 5},
		{"age", Options{PartAge: time.Minute}, time.Minute + time.Second, 1},
		{"not yet", Options{}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := newMemFS()
			tt.opts.FS = fsys
			synctest.Test(t, func(t *testing.T) {
				s := mustCreate(t, crashDir, tt.opts)
				for i := range 5 {
					mustWrite(t, s, sampleTrajectory(i, false))
					synctest.Wait()
				}
				time.Sleep(tt.wait) //nolint:forbidigo // in a bubble
				synctest.Wait()
				man, err := readManifest(fsys, crashDir)
				if err != nil || len(man.parts) != tt.parts {
					t.Errorf("%d parts, %v; want %d", len(man.parts), err, tt.parts)
				}
				mustClose(t, s)
			})
			if got := len(allRows(t, fsys, crashDir).Attempts); got != 5 {
				t.Errorf("%d attempts, want 5", got)
			}
		})
	}
}

// TestBackPressure: one batch may wait for the part writer, then Write blocks;
// calls go on.
func TestBackPressure(t *testing.T) {
	fsys := newMemFS()
	synctest.Test(t, func(t *testing.T) {
		s := mustCreate(t, crashDir, Options{FS: fsys, PartRows: 1})
		release := make(chan struct{})
		slowOnce(fsys, "create", tAttempts, release)
		done := 0
		go func() {
			for i := range 6 {
				if err := s.Write(context.Background(), []*dataset.Trajectory{sampleTrajectory(i, false)}); err != nil {
					t.Error(err)
				}
				done++
			}
		}()
		synctest.Wait()
		if done != 3 { // one is written, one waits, one fills
			t.Errorf("%d writes came through, want 3", done)
		}
		ep := sampleEpisode(9)
		start, _ := sampleCalls(&ep, 0)
		if err := s.Call(t.Context(), start); err != nil {
			t.Error(err)
		}
		close(release)
		synctest.Wait()
		if done != 6 {
			t.Errorf("%d writes came through after that, want 6", done)
		}
		mustClose(t, s)
	})
	if got := len(allRows(t, fsys, crashDir).Attempts); got != 7 {
		t.Errorf("%d attempts, want 6 and the one that never ended", got)
	}
}

// TestDiskFull fills the disk while a run is recorded.
func TestDiskFull(t *testing.T) {
	full := func(from, until *bool, where string) func(memOp) fault {
		return func(op memOp) fault {
			grows := op.kind == "write" || op.kind == "create"
			if *from && !*until && grows && strings.Contains(op.name, where) {
				return fault{err: syscall.ENOSPC, half: true}
			}
			return fault{}
		}
	}
	for _, where := range []string{journalDir, tMessages, manifestFile, "/"} {
		for _, space := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/space again %t", strings.Trim(where, "/"), space), func(t *testing.T) {
				fsys := newMemFS()
				opts := Options{FS: fsys, PartRows: 2, DiskWait: time.Minute}
				acked := 0
				synctest.Test(t, func(t *testing.T) {
					s := mustCreate(t, crashDir, opts)
					mustWrite(t, s, sampleTrajectory(0, false))
					acked++
					isFull, isFree := true, false
					fsys.before = full(&isFull, &isFree, where)
					began := time.Now()
					if space {
						time.AfterFunc(40*time.Second, func() { isFree = true })
					}
					var err error
					for i := 1; i < 9 && err == nil; i++ {
						if err = s.Write(t.Context(), []*dataset.Trajectory{sampleTrajectory(i, false)}); err == nil {
							acked++
						}
					}
					err = errors.Join(err, s.Close())
					waited := time.Since(began)
					switch {
					case space && err != nil:
						t.Errorf("error with space again: %v", err)
					case !space && !errors.Is(err, syscall.ENOSPC):
						t.Errorf("error = %v, want one of a full disk", err)
					case waited < 40*time.Second || waited > 2*time.Minute+time.Second:
						t.Errorf("waited %v", waited)
					}
				})
				fsys.before = nil
				mustClose(t, mustOpen(t, crashDir, opts))
				got := len(allRows(t, fsys, crashDir).Attempts)
				if got < acked || space && got != 9 {
					t.Errorf("%d attempts, %d were acknowledged", got, acked)
				}
			})
		}
	}
}

// TestClosed: after Close nothing is taken any more.
func TestClosed(t *testing.T) {
	s := mustCreate(t, filepath.Join(t.TempDir(), "run"), Options{})
	mustClose(t, s)
	mustClose(t, s)
	if err := s.Write(t.Context(), []*dataset.Trajectory{sampleTrajectory(0, false)}); !errors.Is(err, ErrClosed) {
		t.Errorf("Write: %v, want ErrClosed", err)
	}
	ep := sampleEpisode(0)
	start, _ := sampleCalls(&ep, 0)
	if err := s.Call(t.Context(), start); !errors.Is(err, ErrClosed) {
		t.Errorf("Call: %v, want ErrClosed", err)
	}
}
