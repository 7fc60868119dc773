package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// MismatchError tells that two runs are not of one plan.
type MismatchError struct {
	First, Other string   // directories
	What         []string // what differs, as "seed: 1 -> 2"
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s and %s are not runs of one plan: %s", e.First, e.Other, strings.Join(e.What, "; "))
}

// compatible refuses a run that is not of the first one's plan.
func compatible(first, other *mergeInput) error {
	a, b := &first.run, &other.run
	var what []string
	if a.Seed != b.Seed {
		what = append(what, fmt.Sprintf("seed: %d -> %d", a.Seed, b.Seed))
	}
	if a.IdentityHash != b.IdentityHash {
		what = append(what, fmt.Sprintf("identity of the episodes: %s -> %s", a.IdentityHash, b.IdentityHash))
	}
	what = append(what, compareFiles(a.Datasets, b.Datasets)...)
	if len(what) == 0 && !shareVariant(a.Variants, b.Variants) {
		what = append(what, "no variant is in both")
	}
	if len(what) == 0 {
		return nil
	}
	return &MismatchError{First: first.dir, Other: other.dir, What: what}
}

// compareFiles compares the content of the dataset's files; where they lie may
// differ between machines.
func compareFiles(a, b []Fingerprint) []string {
	if len(a) != len(b) {
		return []string{fmt.Sprintf("dataset: %d files -> %d files", len(a), len(b))}
	}
	var what []string
	for i := range a {
		if a[i].SHA256 != b[i].SHA256 {
			what = append(what, fmt.Sprintf("dataset: %s (%d bytes, sha256 %.8s) -> %s (%d bytes, sha256 %.8s)",
				a[i].Path, a[i].Bytes, a[i].SHA256, b[i].Path, b[i].Bytes, b[i].SHA256))
		}
	}
	return what
}

func shareVariant(a, b []dataset.Variant) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(v dataset.Variant) bool {
		return slices.ContainsFunc(b, func(w dataset.Variant) bool { return v.Hash == w.Hash })
	})
}

// mergeRuns is run.json of the merged run: what describes the plan from the
// first, and what the runs hold together.
func mergeRuns(inputs []*mergeInput, made Run) (run Run, missing []string) {
	run = inputs[0].run
	run.SchemaVersion, run.RunID = SchemaVersion, made.RunID
	run.Version, run.Commit, run.Go, run.Host = made.Version, made.Commit, made.Go, made.Host
	run.Shard, run.EndedAt = "", nil
	run.Tags, run.Variants, run.Invocations, run.Merged = nil, nil, nil, nil
	for _, in := range inputs {
		run.take(in)
	}
	slices.SortStableFunc(run.Invocations, func(a, b Invocation) int { return a.StartedAt.Compare(b.StartedAt) })
	plan := planOf(run.Merged)
	run.Total, run.State = plan.total, StateInterrupted // resume goes on
	if plan.complete {
		run.State = StateComplete
	}
	return run, plan.missing
}

// take adds what an input holds besides its rows.
func (r *Run) take(in *mergeInput) {
	from := &in.run
	if from.CreatedAt.Before(r.CreatedAt) {
		r.CreatedAt = from.CreatedAt
	}
	r.EndedAt = latest(r.EndedAt, from.EndedAt)
	for _, tag := range from.Tags {
		if !slices.Contains(r.Tags, tag) {
			r.Tags = append(r.Tags, tag)
		}
	}
	for _, v := range from.Variants {
		if !slices.ContainsFunc(r.Variants, func(w dataset.Variant) bool { return w.Hash == v.Hash }) {
			r.Variants = append(r.Variants, v)
		}
	}
	r.Invocations = append(r.Invocations, from.Invocations...)
	r.Merged = append(r.Merged, MergedRun{
		RunID: from.RunID, Name: from.Name, Dir: in.dir, Shard: from.Shard, State: from.State, Total: from.Total,
		CreatedAt: from.CreatedAt, EndedAt: from.EndedAt, Host: from.Host,
	})
	if from.Total == 0 { // merged itself, and not the whole plan
		r.Merged = append(r.Merged, from.Merged...)
	}
}

func latest(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.After(*a) {
		return b
	}
	return a
}

// wholePlan is what merged runs are of their plan.
type wholePlan struct {
	total    int // episodes, 0 if that is not known
	missing  []string
	complete bool
}

// planOf finds the whole plan among runs: one that was not split, or all shards
// of one number. Else it tells which shards are missing to the number that lacks
// the fewest.
func planOf(runs []MergedRun) wholePlan {
	var whole wholePlan
	shards := map[int]map[int]MergedRun{} // by number of shards and index
	for _, r := range runs {
		var index, count int
		if _, err := fmt.Sscanf(r.Shard, "%d/%d", &index, &count); err != nil {
			whole.total = max(whole.total, r.Total)
			whole.complete = whole.complete || r.State == StateComplete && r.Total > 0
			continue
		}
		if shards[count] == nil {
			shards[count] = map[int]MergedRun{}
		}
		if had, again := shards[count][index]; !again || had.State != StateComplete {
			shards[count][index] = r
		}
	}
	if whole.total > 0 {
		return whole
	}
	for _, count := range slices.Sorted(maps.Keys(shards)) {
		plan := planOfShards(count, shards[count])
		if len(plan.missing) == 0 {
			return plan
		}
		if whole.missing == nil || len(plan.missing) < len(whole.missing) {
			whole.missing = plan.missing
		}
	}
	return whole
}

func planOfShards(count int, of map[int]MergedRun) wholePlan {
	plan := wholePlan{complete: true}
	for i := range count {
		r, ok := of[i]
		if !ok {
			plan.missing = append(plan.missing, fmt.Sprintf("%d/%d", i, count))
		}
		plan.total += r.Total
		plan.complete = plan.complete && r.State == StateComplete
	}
	return plan
}
