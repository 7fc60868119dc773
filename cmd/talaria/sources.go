package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/source"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// sources are a run's sources of tasks, read one after the other.
type sources []*source.Source

// openSources opens all sources. earlier is the run that is gone on with; nil: a
// new one.
func openSources(ctx context.Context, cfg *configs.Run, earlier *store.Run, std *stdio) (sources, error) {
	columns, err := promptColumns(cfg)
	if err != nil {
		return nil, err
	}
	list := cfg.Sources()
	counter := source.NewCounter(len(list))
	var opened sources
	for i, src := range list {
		where, err := parseWhere(cfg, src)
		if err != nil {
			return nil, err
		}
		place := cfg.Place(fmt.Sprintf("tasks.%d.path", i))
		snap, err := fetchHub(ctx, src, earlier, std)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		s, err := source.Open(source.Options{
			Path: src.Path, Hub: snap, Name: src.Name, Split: src.Split,
			Columns: src.Columns, Require: columns[i], Keep: src.Keep, KeepAll: src.KeepAll,
			SkipBadRows: src.SkipBadRows, Where: where, Shuffle: src.Shuffle, Limit: src.Limit,
			Source: src.Index, Counter: counter,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		opened = append(opened, s)
	}
	return opened, nil
}

func parseWhere(cfg *configs.Run, src configs.Source) (*source.Where, error) {
	if src.Where == "" {
		return nil, nil //nolint:nilnil // none is what there is
	}
	where, err := source.ParseWhere(src.Where)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; the language is that of expr-lang.org", cfg.Place(fmt.Sprintf("tasks.%d.where", src.Index)), err)
	}
	return where, nil
}

// promptColumns is which columns the rows of each source must have, for the
// prompts of all variants.
func promptColumns(cfg *configs.Run) ([][]string, error) {
	variants, err := cfg.Variants()
	if err != nil {
		return nil, err
	}
	columns := make([][]string, len(cfg.Sources()))
	for _, v := range variants {
		prompt, err := v.Run.Prompt()
		if err != nil {
			return nil, err
		}
		for i := range columns {
			columns[i] = append(columns[i], prompt.Columns(i)...)
		}
	}
	for i := range columns {
		slices.Sort(columns[i])
		columns[i] = slices.Compact(columns[i])
	}
	return columns, nil
}

func (s sources) tasks() iter.Seq2[dataset.Task, error] { return source.Join(s...) }

// count goes through all tasks once, before anything is spent, so that a bad
// row is found now and not in the night. It counts those of the shard, and takes
// in the types of the columns that are kept of all.
func (s sources) count(ctx context.Context, shard runner.Shard, kept *store.KeptTypes) (int, error) {
	n := 0
	for task, err := range s.tasks() {
		if row, ok := errors.AsType[source.RowError](err); ok {
			return 0, fmt.Errorf("%w; mend the row or what tasks.columns says of it, or set on_bad_row: skip to do without such rows", row)
		}
		if err != nil {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		kept.Add(task.Keep)
		if shard.Has(task) {
			n++
		}
	}
	return n, nil
}

// skipped is how many bad rows the last pass went over.
func (s sources) skipped() int {
	n := 0
	for _, src := range s {
		n += src.Bad().Count
	}
	return n
}

// warn names what the last pass left out.
func (s sources) warn(log *slog.Logger) {
	if out := s.leftOut(); len(out) > 0 {
		log.Warn("tasks are left out: this machine cannot run them",
			slog.Int("count", len(out)), slog.String("tasks", strings.Join(out, ", ")))
	}
}

// leftOut tells which tasks the last pass left out because this machine cannot
// run them, each with its reason.
func (s sources) leftOut() []string {
	var all []string
	for _, src := range s {
		for _, skip := range src.Skipped() {
			all = append(all, skip.Task+" ("+skip.Reason+")")
		}
	}
	return all
}

// fingerprints tell which files the tasks came from.
func (s sources) fingerprints() ([]store.Fingerprint, error) {
	var all []store.Fingerprint
	for _, src := range s {
		files, err := src.Fingerprint()
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			read := store.Fingerprint{Path: f.Path, Bytes: f.Bytes, SHA256: f.SHA256, Revision: f.Revision}
			if f.Revision != "" {
				read.Source = src.Path()
			}
			all = append(all, read)
		}
	}
	return all, nil
}
