package runner

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// Shard is one of Count parts of a plan, which together are the whole: the
// tasks that [dataset.Shard] gives to Index, with all their variants and
// samples, so that groups and pairs stay together. Which they are depends on
// the task alone, so that processes share a plan without talking to each other.
// The zero Shard is the whole plan.
type Shard struct{ Index, Count int } // 0 <= Index < Count

// ParseShard reads "i/n", where i counts from 0.
func ParseShard(text string) (Shard, error) {
	index, count, found := strings.Cut(text, "/")
	i, errIndex := strconv.Atoi(index)
	n, errCount := strconv.Atoi(count)
	if !found || errors.Join(errIndex, errCount) != nil {
		return Shard{}, fmt.Errorf("want a shard as i/n, 0/8 to 7/8, got %q", text)
	}
	switch {
	case n < 1:
		return Shard{}, fmt.Errorf("%s: there must be at least one shard", text)
	case i < 0 || i >= n:
		return Shard{}, fmt.Errorf("%s: shards count from 0: the first of %d is 0/%d, the last %d/%d", text, n, n, n-1, n)
	default:
		return Shard{Index: i, Count: n}, nil
	}
}

// Whole reports whether s is the whole plan, not given as a shard of it.
func (s Shard) Whole() bool { return s == Shard{} }

// String is "i/n", or "" for the whole plan.
func (s Shard) String() string {
	if s.Whole() {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Has reports whether a task is one of the shard's.
func (s Shard) Has(task dataset.Task) bool {
	return s.Whole() || dataset.Shard(task, s.Count) == s.Index
}

// Of passes on the tasks of the shard, in order, and every error.
func (s Shard) Of(tasks iter.Seq2[dataset.Task, error]) iter.Seq2[dataset.Task, error] {
	if s.Whole() {
		return tasks
	}
	return func(yield func(dataset.Task, error) bool) {
		for task, err := range tasks {
			if err == nil && !s.Has(task) {
				continue
			}
			if !yield(task, err) {
				return
			}
		}
	}
}
