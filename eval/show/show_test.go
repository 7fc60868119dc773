//go:build cgo

package show_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/eval/evaltest"
	"github.com/talaria-run/talaria/eval/show"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// id of the first sample of a task.
func id(t *testing.T, run *evaltest.Run, variant, task string) string {
	t.Helper()
	for _, tr := range run.Trajectories {
		if e := tr.Episode; e.Variant == variant && e.Task.ID == task && e.Sample == 0 {
			return e.ID
		}
	}
	t.Fatalf("the fixture has no episode %s %s", variant, task)
	return ""
}

func TestShow(t *testing.T) {
	alpha, beta := evaltest.Alpha(t), evaltest.Beta(t)
	a, b := evaltest.DB(t, alpha), evaltest.DB(t, beta)
	tests := []struct {
		name   string
		live   bool
		id     string
		opts   show.Options
		asJSON bool
	}{
		{name: "retried", id: id(t, alpha, "good", "t1")},
		{name: "retried_first", id: id(t, alpha, "good", "t1"), opts: show.Options{Attempt: new(int32(0))}},
		{name: "late_reward", id: id(t, alpha, "weak", "t2")},
		{name: "delegating", id: id(t, alpha, "weak", "t3")},
		{name: "delegated", id: dataset.ChildID(id(t, alpha, "weak", "t3"), 0)},
		{name: "hostile_narrow", live: true, id: id(t, beta, "good", "t2"), opts: show.Options{Width: 40}},
		{name: "retried", id: id(t, alpha, "good", "t1")[:6], asJSON: true},
		{name: "hostile", live: true, id: id(t, beta, "good", "t2"), asJSON: true},
	}
	for _, tt := range tests {
		db := a
		if tt.live {
			db = b
		}
		tr, err := show.Load(t.Context(), db, tt.id)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		name := tt.name + ".txt"
		if tt.asJSON {
			name = tt.name + ".json"
			err = tr.WriteJSON(&out)
		} else {
			err = tr.Write(&out, tt.opts)
		}
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

func TestNothingReachesTheTerminal(t *testing.T) {
	run := evaltest.Beta(t)
	tr, err := show.Load(t.Context(), evaltest.DB(t, run), id(t, run, "good", "t2"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := tr.Write(&out, show.Options{}); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(out.String(), "\x1b\x07\r\u202e\t"); i >= 0 {
		t.Errorf("a control character at %d of %q", i, out.String())
	}
}

func TestLoadNeedsOneEpisode(t *testing.T) {
	db := evaltest.DB(t, evaltest.Alpha(t))
	var failure *show.NotFoundError
	_, err := show.Load(t.Context(), db, "xyz")
	if !errors.As(err, &failure) || len(failure.Candidates) != 0 {
		t.Errorf("got %v, want that there is none", err)
	}
	_, err = show.Load(t.Context(), db, "")
	if !errors.As(err, &failure) || len(failure.Candidates) != 10 {
		t.Errorf("got %v, want ten candidates", err)
	}
	tr, err := show.Load(t.Context(), db, id(t, evaltest.Alpha(t), "good", "t0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Write(&strings.Builder{}, show.Options{Attempt: new(int32(5))}); err == nil {
		t.Error("an attempt that does not exist was shown")
	}
}
