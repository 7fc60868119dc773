package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// observation is what a run used, as an example for another.
type observation struct {
	planExample

	variants []dataset.Variant
	used     map[string]store.Tally // by variant hash
}

// examples is how many runs are looked into for an estimate, newest first.
const examples = 5

// observe finds the runs to estimate from: the one that is gone on with, and
// those that were named, or recent ones of the same tasks.
func (p *planner) observe() ([]*observation, error) {
	dirs := slices.Clone(p.opts.Like)
	if len(dirs) == 0 {
		dirs = p.recent()
	}
	if p.record != nil {
		dirs = slices.Insert(dirs, 0, p.dir)
	}
	var seen []*observation
	for _, dir := range dirs {
		o, err := observeRun(dir)
		if err != nil && (slices.Contains(p.opts.Like, dir) || dir == p.dir) {
			return nil, err
		}
		if err == nil { // a run that cannot be read is no example
			seen = append(seen, o)
		}
	}
	return seen, nil
}

// recent are complete runs of the same tasks in the config's folder of runs,
// newest first.
func (p *planner) recent() []string {
	files, err := p.session.sources.fingerprints()
	if err != nil {
		return nil
	}
	runs, _ := filepath.Glob(filepath.Join(p.session.cfg.Out, "*", "run.json")) // the pattern is right; names with marks of patterns are passed over
	type found struct {
		dir string
		run store.Run
	}
	var fitting []found
	for _, path := range runs {
		dir := filepath.Dir(path)
		run, err := store.ReadRun(dir)
		if err == nil && run.State == store.StateComplete && sameFiles(run.Datasets, files) {
			fitting = append(fitting, found{dir, run})
		}
	}
	slices.SortStableFunc(fitting, func(a, b found) int { return b.run.CreatedAt.Compare(a.run.CreatedAt) })
	var dirs []string
	for _, f := range fitting[:min(examples, len(fitting))] {
		dirs = append(dirs, f.dir)
	}
	return dirs
}

// sameFiles tells whether two datasets have the same content.
func sameFiles(a, b []store.Fingerprint) bool {
	sums := func(files []store.Fingerprint) []string {
		all := map[string]bool{}
		for _, f := range files {
			all[f.SHA256] = true
		}
		return slices.Sorted(maps.Keys(all))
	}
	return slices.Equal(sums(a), sums(b))
}

func observeRun(dir string) (*observation, error) {
	views, done, err := openViews([]string{dir})
	if err != nil {
		return nil, err
	}
	defer done()
	index, err := views[0].Index()
	if err != nil {
		return nil, fmt.Errorf("reading what %s used: %w", dir, err)
	}
	run := views[0].Run
	o := &observation{
		planExample: planExample{Run: dir, Episodes: index.Len(), PerSecond: episodesPerSecond(run, index.Len())},
		variants:    run.Variants, used: map[string]store.Tally{},
	}
	for _, t := range index.Tallies() {
		o.used[t.VariantHash] = t
	}
	if cfg, err := configs.FromResolved(run.Config, configs.Options{Recorded: true}); err == nil {
		o.AtOnce = cfg.Limits.Concurrency.Episodes
	}
	return o, nil
}

// episodesPerSecond over all invocations, 0 if the end of one is not on record.
func episodesPerSecond(run store.Run, episodes int) float64 {
	seconds := 0.0
	for _, i := range run.Invocations {
		if i.EndedAt == nil {
			return 0
		}
		seconds += i.EndedAt.Sub(i.StartedAt).Seconds()
	}
	if seconds == 0 {
		return 0
	}
	return float64(episodes) / seconds
}

// of is what the run used for a variant: the same one, else one of the same
// model, env and tools.
func (o *observation) of(v dataset.Variant) (used store.Tally, ok bool) {
	if t := o.used[v.Hash]; t.Total() > 0 {
		return t, true
	}
	for _, other := range o.variants {
		t := o.used[other.Hash]
		alike := other.Provider == v.Provider && other.Model == v.Model && other.Env == v.Env && slices.Equal(other.Tools, v.Tools)
		if alike && t.Total() > 0 {
			return t, true
		}
	}
	return used, false
}

// checkLike refuses what is no run.
func checkLike(dirs []string) error {
	for _, dir := range dirs {
		if _, err := store.ReadRun(dir); err != nil {
			if errors.Is(err, store.ErrNotRun) || errors.Is(err, os.ErrNotExist) {
				return usageErrorf("talaria plan", "--like: %w", err)
			}
			return fmt.Errorf("--like: %w", err)
		}
	}
	return nil
}
