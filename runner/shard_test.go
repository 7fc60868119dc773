package runner

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

func TestParseShard(t *testing.T) {
	tests := []struct {
		text string
		want Shard
		err  string
	}{
		{text: "0/8", want: Shard{0, 8}},
		{text: "7/8", want: Shard{7, 8}},
		{text: "0/1", want: Shard{0, 1}},
		{text: "03/08", want: Shard{3, 8}},
		{text: "8/8", err: "8/8: shards count from 0: the first of 8 is 0/8, the last 7/8"},
		{text: "1/1", err: "1/1: shards count from 0: the first of 1 is 0/1, the last 0/1"},
		{text: "-1/8", err: "-1/8: shards count from 0: the first of 8 is 0/8, the last 7/8"},
		{text: "0/0", err: "0/0: there must be at least one shard"},
		{text: "0/-1", err: "0/-1: there must be at least one shard"},
		{text: "3", err: `want a shard as i/n, 0/8 to 7/8, got "3"`},
		{text: "1/2/3", err: `want a shard as i/n, 0/8 to 7/8, got "1/2/3"`},
		{text: "", err: `want a shard as i/n, 0/8 to 7/8, got ""`},
		{text: "99999999999999999999/8", err: `want a shard as i/n, 0/8 to 7/8, got "99999999999999999999/8"`},
	}
	for _, test := range tests {
		got, err := ParseShard(test.text)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != test.want || text != test.err {
			t.Errorf("%q: got %v, %q, want %v, %q", test.text, got, text, test.want, test.err)
		}
	}
}

// The shards of a plan have each task once, in order, and pass errors on.
func TestShardsArePartition(t *testing.T) {
	bad := errors.New("a bad row")
	tasks := func(yield func(dataset.Task, error) bool) {
		for i := range 200 {
			if !yield(dataset.Task{ID: strconv.Itoa(i / 2), Occurrence: i % 2}, nil) {
				return
			}
		}
		yield(dataset.Task{}, bad)
	}
	const n = 8
	all := make([]string, 0, 200)
	for i := range n {
		var mine []string
		failed := false
		for task, err := range (Shard{i, n}).Of(tasks) {
			failed = failed || errors.Is(err, bad)
			if err == nil {
				mine = append(mine, task.Key())
			}
		}
		if len(mine) < 10 || !failed {
			t.Errorf("shard %d has %d of 200 tasks, saw the error: %t", i, len(mine), failed)
		}
		all = append(all, mine...)
	}
	var want []string
	for task, err := range (Shard{}).Of(tasks) {
		if err == nil {
			want = append(want, task.Key())
		}
	}
	slices.Sort(all)
	slices.Sort(want)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("tasks of all shards (-want +got):\n%s", diff)
	}
}
