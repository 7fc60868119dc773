package store

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// With the types of all tasks every part has the same columns, whatever rows it
// has, and the recorded tasks are found again.
func TestKeptTypes(t *testing.T) {
	kept := []map[string]any{
		{"whole": json.Number("1"), "number": json.Number("1"), "mixed": true, "late": nil, "none": nil},
		{"whole": nil, "number": 2.5, "mixed": json.Number("1"), "late": nil, "none": nil},
		{"whole": json.Number("3"), "number": json.Number("3"), "mixed": "x", "late": json.Number("7"), "none": nil},
	}
	types := &KeptTypes{}
	for _, keep := range kept {
		types.Add(keep)
	}
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{PartRows: 1, Kept: types})
	want := make([]string, 0, len(kept))
	for i, keep := range kept {
		tr := sampleTrajectory(i, false)
		tr.Episode.Task.Keep, tr.Episode.Task.Occurrence = keep, i
		if err := s.Write(t.Context(), []*dataset.Trajectory{tr}); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(tr.Episode.Task.ID, i, tr.Episode.Task.Hash))
	}
	mustClose(t, s)
	s = mustOpen(t, dir, Options{})
	var got []string
	err := s.RecordedTasks(func(id string, occurrence int, hash string) error {
		got = append(got, fmt.Sprint(id, occurrence, hash))
		return nil
	})
	mustClose(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded tasks differ (-want +got):\n%s", diff)
	}
	man, err := readManifest(osFS{}, dir)
	if err != nil || len(man.parts) != len(kept) {
		t.Fatalf("%d parts, %v", len(man.parts), err)
	}
	first := openPart(t, dir, man.parts[0], tTasks).Schema().String()
	for _, p := range man.parts[1:] {
		if diff := cmp.Diff(first, openPart(t, dir, p, tTasks).Schema().String()); diff != "" {
			t.Errorf("the schema of part %d differs (-first +this):\n%s", p.Part, diff)
		}
	}
	if _, ok := openPart(t, dir, man.parts[0], tTasks).Schema().Lookup("meta_none"); ok {
		t.Error("a column of nothing but nulls is written")
	}
}
