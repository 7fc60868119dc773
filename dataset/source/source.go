// Package source reads tasks from files.
//
// [Open] finds the files of a source and recognises their format by content;
// [Source.Tasks] streams its tasks, one row at a time, as often as it is ranged
// over. [Join] makes one stream of a run's sources. A row that cannot be a task
// is reported as "file:line: what" and ends the stream, or is counted in
// [Source.Bad] and skipped.
//
// Rows are JSONL, CSV, Parquet or Arrow, all but Parquet also within gzip or
// zstd, and are the same from each: the values that JSON has, those of CSV all
// text. A folder of Harbor
// tasks is a source too: each task is a row with the columns id, input (its
// instruction), target (its solution), description, keywords and its metadata.
// A task that cannot be run without an image, or for which this machine lacks a
// program, is skipped and named in [Source.Skipped].
package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/source/hub"
)

// Names that columns are mapped to. Every other name in Options.Columns is a
// further name of a column.
const (
	Input  = "input"
	Target = "target"
	ID     = "id"
)

// Options say what to read and how rows become tasks.
type Options struct {
	// Path is a file, a glob, harbor:DIR for a Harbor task or a folder of
	// them, bundled:NAME for embedded tasks, or hf://... for a dataset on a hub.
	Path string
	// Hub is the dataset on a hub that Path names, as fetched; else nil.
	Hub *hub.Snapshot
	// Name is the dataset's name in the rows; default: Path.
	Name string
	// Split is the dataset's split in the rows, where it has one; default: that
	// of Hub.
	Split string
	// Columns maps names to columns of the rows, each by its name or a dotted
	// path, see [dataset.Lookup]: Input (default "input"),
	// Target (default "target"; an empty column: the tasks have none), ID
	// (default: none, the content identifies a task; "id", the name, for Harbor
	// tasks) and further names, under
	// which Task.Row holds the column too. Mapped columns make the task's hash.
	Columns map[string]string
	// Require names further columns that a row must have.
	Require []string
	// Keep names columns for Task.Keep; KeepAll keeps every column that is not
	// mapped.
	Keep    []string
	KeepAll bool
	// SkipBadRows counts rows that cannot be tasks instead of ending the
	// stream.
	SkipBadRows bool
	// Lenient is for recorded answers, which need not be whole tasks: a row may
	// lack the target, and either the id or the input.
	Lenient bool
	// Where leaves out the tasks of whose row it is not true; nil: none.
	Where *Where
	// Shuffle puts the tasks into an order that depends on this seed; nil: as
	// read. The file is then read whole before the first task.
	Shuffle *int64
	// Limit ends the stream after so many tasks, of those that are left and as
	// shuffled; 0: none. Duplicates are numbered over all rows.
	Limit int
	// Source is the index of this source in the run's list.
	Source int
	// Counter numbers duplicates over all sources of a run; nil: over this
	// source alone.
	Counter *Counter
}

// Source is an opened source of tasks. One goroutine uses it at a time.
type Source struct {
	opts    Options
	columns map[string]string // Options.Columns with defaults, without empty ones
	names   []string          // their names, sorted
	mapped  map[string]bool   // columns and further names that are no columns of their own
	parts   []part
	// revision of the dataset, where it has one.
	revision string
	bad      BadRows
	skipped  []Skip
	found    map[string]bool // columns of Options.Keep and Options.Where that some row had
	sums     []File          // of a complete pass
}

// part is what a source consists of: a file of rows or a folder of tasks.
type part interface {
	// check looks at the beginning. It is empty if there is no row.
	check() (empty bool, err error)
	// read hands all rows to the pass and tells what was read.
	read(p *pass) (File, error)
	fingerprint() (File, error)
}

// Open finds the files of a source and looks at the beginning of each. It is an
// error if there are none, if one is not JSONL, or if all are empty.
func Open(o Options) (*Source, error) {
	o.Name = cmp.Or(o.Name, o.Path)
	if o.Counter == nil {
		o.Source, o.Counter = 0, NewCounter(1)
	}
	s := &Source{opts: o, columns: map[string]string{Input: "input", Target: "target"}}
	maps.Copy(s.columns, o.Columns)
	parts, err := find(o)
	if err != nil {
		return nil, err
	}
	if s.parts = parts; o.Hub != nil {
		s.opts.Split = cmp.Or(o.Split, o.Hub.Split)
		s.revision = o.Hub.Commit
	}
	if _, named := s.columns[ID]; !named && harborTasks(parts) {
		s.columns[ID] = ID
	}
	maps.DeleteFunc(s.columns, func(_, column string) bool { return column == "" })
	s.names = slices.Sorted(maps.Keys(s.columns))
	s.mapped = map[string]bool{}
	for name, column := range s.columns {
		s.mapped[column] = true
		if !standard(name) {
			s.mapped[name] = true
		}
	}
	empty := true
	for _, part := range parts {
		blank, err := part.check()
		if err != nil {
			return nil, err
		}
		empty = empty && blank
	}
	if empty {
		return nil, emptyError(o.Path)
	}
	return s, nil
}

func emptyError(path string) error {
	return fmt.Errorf("%s: the dataset is empty: there is not one row", path)
}

// find lists what a path stands for, sorted by name.
func find(o Options) ([]part, error) {
	path := o.Path
	if path == "" {
		return nil, errors.New("no path of a dataset was given")
	}
	if strings.HasPrefix(path, hub.Prefix) {
		return findHub(path, o.Hub)
	}
	if name, ok := strings.CutPrefix(path, bundledPrefix); ok {
		return findBundled(name)
	}
	if dir, ok := strings.CutPrefix(path, harborPrefix); ok {
		return findHarbor(path, os.DirFS(dir))
	}
	if _, err := os.Stat(path); err == nil {
		f, err := regular(path)
		return []part{f}, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for the dataset: %w", err)
	}
	return glob(path)
}

// findHub lists the files of a dataset from a hub.
func findHub(path string, snap *hub.Snapshot) ([]part, error) {
	if snap == nil || len(snap.Files) == 0 {
		return nil, fmt.Errorf("%s: a dataset on a hub is not read here; download it and name its files", path)
	}
	parts := make([]part, len(snap.Files))
	for i, f := range snap.Files {
		parts[i] = file{
			path: hub.Prefix + snap.Dataset + "/" + f.Name, revision: snap.Commit, sha256: f.SHA256, cached: f.Path,
			open: func() (fs.File, error) { return os.Open(f.Path) },
		}
	}
	return parts, nil
}

func glob(pattern string) ([]part, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return nil, fmt.Errorf("%s: no such file", pattern)
	}
	if strings.Contains(pattern, "**") {
		return nil, fmt.Errorf("%s: ** is not supported; * matches within one folder", pattern)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: not a valid pattern: %w", pattern, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no file matches", pattern)
	}
	slices.Sort(paths)
	parts := make([]part, len(paths))
	for i, p := range paths {
		if parts[i], err = regular(p); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// regular refuses what cannot be read twice.
func regular(path string) (file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, fmt.Errorf("looking for the dataset: %w", err)
	}
	if info.IsDir() {
		return file{}, fmt.Errorf("%s: it is a folder; name its files, such as %s, or %s%s if it holds Harbor tasks",
			path, filepath.Join(path, "*.jsonl"), harborPrefix, path)
	}
	if !info.Mode().IsRegular() {
		return file{}, fmt.Errorf("%s: it is not a regular file; a dataset is read more than once", path)
	}
	return file{path: path, open: func() (fs.File, error) { return os.Open(path) }}, nil
}

// Path is Options.Path.
func (s *Source) Path() string { return s.opts.Path }

// Join makes one stream of the sources of a run, in order. They share a
// [Counter], so that the stream may be ranged over again too.
func Join(sources ...*Source) iter.Seq2[dataset.Task, error] {
	return func(yield func(dataset.Task, error) bool) {
		for _, s := range sources {
			for t, err := range s.Tasks() {
				if !yield(t, err) || err != nil {
					return
				}
			}
		}
	}
}

// BadRows are the rows of a pass that could not be tasks and were skipped.
type BadRows struct {
	Count int
	First []RowError // the first few
}

// RowError says where a row is and why it cannot be a task.
type RowError struct {
	File   string
	Line   int // from 1; 0: the file as a whole, or one without lines
	Row    int // from 1, in a file without lines
	Reason string
}

func (e RowError) Error() string {
	switch {
	case e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	case e.Row > 0:
		return fmt.Sprintf("%s: row %d: %s", e.File, e.Row, e.Reason)
	}
	return e.File + ": " + e.Reason
}

// maxBadRows is how many bad rows are kept: enough to see what is wrong.
const maxBadRows = 10

func (b *BadRows) add(r RowError) {
	b.Count++
	if len(b.First) < maxBadRows {
		b.First = append(b.First, r)
	}
}

// Bad tells which rows the latest pass skipped so far.
func (s *Source) Bad() BadRows { return s.bad }

// Skip is a task that is in order, but cannot be run here.
type Skip struct {
	Task   string // its id
	Reason string
}

// Skipped tells which tasks the latest pass left out so far because they cannot
// be run here. Unlike bad rows they are no fault of the dataset, whatever
// Options.SkipBadRows says, and take no part in numbering.
func (s *Source) Skipped() []Skip { return s.skipped }
