package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	trs := make([]*dataset.Trajectory, 5)
	for i := range trs {
		trs[i] = sampleTrajectory(2*i, true) // each of another task
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

func mustOpen(tb testing.TB, dir string, opts Options) *Store {
	tb.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		tb.Fatalf("opening a run: %v", err)
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
		r.Invocations = append(r.Invocations, Invocation{PID: 1, ExitCode: new(0)})
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
