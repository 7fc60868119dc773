package configs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Source is one source of tasks with its env and scorers, as resolved.
type Source struct {
	Index   int
	Name    string
	Path    string // absolute, may be a glob, or bundled:NAME
	Split   string
	Columns map[string]string // input, target, id and further names to columns
	Keep    []string
	KeepAll bool
	Where   string // a condition on rows, "": none
	Shuffle *int64 // the seed, nil: as read
	Limit   int    // 0: none
	// SkipBadRows counts rows that cannot be tasks instead of ending the run.
	SkipBadRows bool

	Env string // the env's name
	// EnvParams decodes the env's parameters strictly, see [Params.Decode].
	EnvParams func(into any) error
	Score     []Score
}

// Score is one scorer, as resolved: exactly one of a source's is chosen.
type Score struct {
	Name          string
	Extract       string // of the answer; "": all of it
	TargetExtract string // of the target; "": all of it
	Chosen        bool   // its value becomes the reward
	// Params decodes the scorer's parameters strictly, see [Params.Decode].
	Params func(into any) error
	// Key is the scorer's key in the config, for [Run.Place].
	Key string
}

// Sources lists the sources of tasks in order.
func (r *Run) Sources() []Source {
	sources := make([]Source, len(r.Tasks))
	for i, t := range r.Tasks {
		e := r.env(i)
		sources[i] = Source{
			Index: i, Name: t.name(), Path: t.Path, Split: t.Split,
			Columns: t.columns(), Keep: t.Keep.Names, KeepAll: t.Keep.All,
			Where: t.Where, Shuffle: r.shuffle(t.Shuffle), Limit: t.Limit, SkipBadRows: t.OnBadRow == OnBadRowSkip,
			Env: e.Name, EnvParams: e.Params.Decode, Score: r.scores(i),
		}
	}
	return sources
}

func (r *Run) shuffle(s Shuffle) *int64 {
	switch {
	case !s.On:
		return nil
	case s.Seed != nil:
		return s.Seed
	}
	return &r.Seed
}

// name is the name of the data, without the folders and endings of its file.
func (t Tasks) name() string {
	if t.Name != "" {
		return t.Name
	}
	if dataset, ok := strings.CutPrefix(t.Path, hubPrefix); ok {
		dataset, _, _ = strings.Cut(dataset, "?")
		return dataset
	}
	base := filepath.Base(strings.TrimPrefix(t.Path, bundledPrefix))
	for _, ending := range []string{".gz", ".zst", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow"} {
		base = strings.TrimSuffix(base, ending)
	}
	return base
}

// columns adds the columns that every task has.
func (t Tasks) columns() map[string]string {
	c := map[string]string{"input": "input", "target": "target"}
	maps.Copy(c, t.Columns)
	return c
}

func (r *Run) env(source int) Env {
	if e := r.Tasks[source].Env; e != nil {
		return *e
	}
	return r.Env
}

// scorers are a source's scorers as written, and their key.
func (r *Run) scorers(source int) ([]Scorer, string) {
	if own := r.Tasks[source].Score; own != nil {
		return own, r.tasksKey(source) + ".score"
	}
	return r.Score, "score"
}

func (r *Run) scores(source int) []Score {
	written, key := r.scorers(source)
	scores := make([]Score, len(written))
	chosen := max(0, slices.IndexFunc(written, func(s Scorer) bool { return s.Chosen != nil && *s.Chosen }))
	for i, s := range written {
		scores[i] = Score{
			Name: s.Name, Extract: s.Extract, TargetExtract: s.TargetExtract, Chosen: i == chosen,
			Params: s.Params.Decode, Key: fmt.Sprintf("%s.%d", key, i),
		}
	}
	return scores
}
