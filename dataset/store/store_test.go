package store

import (
	"path/filepath"
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
