package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

func rows(ids string) []byte {
	var b strings.Builder
	for id := range strings.FieldsSeq(ids) {
		fmt.Fprintf(&b, `{"id":%q,"input":"q","target":"a"}`+"\n", id)
	}
	return []byte(b.String())
}

// open opens one source for each list of ids, under one counter.
func open(t *testing.T, limits []int, ids ...string) []*Source {
	t.Helper()
	counter := NewCounter(len(ids))
	sources := make([]*Source, len(ids))
	for i := range ids {
		s, err := Open(Options{
			Path: write(t, "t.jsonl", rows(ids[i])), Columns: map[string]string{ID: "id"},
			Source: i, Counter: counter, Limit: limits[i],
		})
		if err != nil {
			t.Fatal(err)
		}
		sources[i] = s
	}
	return sources
}

func keys(tasks []dataset.Task) string {
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%d:%s%d ", t.Source, t.ID, t.Occurrence)
	}
	return strings.TrimSpace(b.String())
}

func TestOccurrences(t *testing.T) {
	tests := []struct {
		name   string
		limits []int
		ids    []string
		want   string
	}{
		{"one source", []int{0}, []string{"a b a a b"}, "0:a0 0:b0 0:a1 0:a2 0:b1"},
		{"limit", []int{3}, []string{"a b a a b"}, "0:a0 0:b0 0:a1"},
		{"two sources", []int{0, 0}, []string{"a b a", "b a c"}, "0:a0 0:b0 0:a1 1:b1 1:a2 1:c0"},
		{"a limit changes no number", []int{1, 2}, []string{"a b a", "b a c"}, "0:a0 1:b1 1:a2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sources := open(t, test.limits, test.ids...)
			for pass := range 2 {
				tasks, err := collect(Join(sources...))
				if err != nil {
					t.Fatal(err)
				}
				if got := keys(tasks); got != test.want {
					t.Errorf("pass %d: tasks %s, want %s", pass, got, test.want)
				}
			}
		})
	}
}

// Each source may be ranged over again by itself, once all were read.
func TestRangeAgain(t *testing.T) {
	sources := open(t, []int{0, 0}, "a b a", "b a c")
	first, err := collect(Join(sources...))
	if err != nil {
		t.Fatal(err)
	}
	var again []dataset.Task
	for _, s := range []*Source{sources[0], sources[1]} {
		for range 2 {
			tasks, err := collect(s.Tasks())
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, tasks...)
		}
	}
	want := append(append(append([]dataset.Task{}, first[:3]...), first[:3]...), append(append([]dataset.Task{}, first[3:]...), first[3:]...)...)
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("tasks differ (-want +got):\n%s", diff)
	}
}

func TestOutOfOrder(t *testing.T) {
	sources := open(t, []int{0, 0}, "a", "b")
	_, err := collect(sources[1].Tasks())
	if err == nil || !strings.Contains(err.Error(), "source 1 is read before source 0 was read to its end") {
		t.Errorf("error = %v", err)
	}
	for _, err := range sources[0].Tasks() {
		if err != nil {
			t.Fatal(err)
		}
		break // not to its end
	}
	if _, err := collect(sources[1].Tasks()); err == nil {
		t.Error("no error after an unfinished pass")
	}
}

// A stream may be left at any task and starts anew.
func TestStop(t *testing.T) {
	s := open(t, []int{0}, "a b a")[0]
	for stop := 1; stop <= 3; stop++ {
		var got []dataset.Task
		for task, err := range s.Tasks() {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, task); len(got) == stop {
				break
			}
		}
		want := strings.Join(strings.Fields("0:a0 0:b0 0:a1")[:stop], " ")
		if keys(got) != want {
			t.Errorf("tasks %s, want %s", keys(got), want)
		}
	}
}

// A bad row behind the limit is nobody's concern.
func TestBadRowBehindLimit(t *testing.T) {
	text := string(rows("a b")) + "[]\n" + string(rows("a"))
	counter := NewCounter(2)
	sources := make([]*Source, 2)
	for i := range sources {
		s, err := Open(Options{
			Path: write(t, "t.jsonl", []byte(text)), Columns: map[string]string{ID: "id"},
			Source: i, Counter: counter, Limit: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		sources[i] = s
	}
	tasks, err := collect(Join(sources...))
	if err != nil {
		t.Fatal(err)
	}
	if want := "0:a0 0:b0 1:a2 1:b1"; keys(tasks) != want {
		t.Errorf("tasks %s, want %s", keys(tasks), want)
	}
}

// Once all rows are counted, only the ids of several rows are kept.
func TestCounterForgets(t *testing.T) {
	sources := open(t, []int{0, 0}, "a b a c", "d e a f c")
	for range 2 {
		if _, err := collect(Join(sources...)); err != nil {
			t.Fatal(err)
		}
		counter := sources[0].opts.Counter
		if got, want := []int{len(counter.counts[0]), len(counter.counts[1])}, []int{2, 2}; !cmp.Equal(got, want) {
			t.Errorf("ids kept of each source %v, want %v", got, want)
		}
	}
}
