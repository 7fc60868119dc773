// Package query answers SQL over one or many runs with DuckDB, whose only
// importer it is.
//
// [Open] makes an in-memory database with the views of a run and locks it
// down; [DB.Query] runs SQL, [Select] scans rows into structs. [PrintViews]
// writes the same views as SQL for any DuckDB client and needs no DuckDB
// itself. In a build without cgo Open returns [ErrNotBuiltIn].
//
// # Views
//
// all_<table> is everything recorded. An episode's current attempt is the
// highest whose outcome is neither infra nor operator, else the highest.
// "episodes" has the current attempts of all but delegated episodes, with
//
//   - reward, passed: the latest chosen value, null unless the outcome is
//     model. A task, infra, budget or operator outcome is never a reward of 0.
//   - reward_at_run: the value as it was when the attempt ended.
//   - attempt_count: how many attempts of the episode are recorded.
//   - cost_usd: what the policy's calls of the current attempt cost.
//   - tree_cost_usd, tree_cost_nanousd: what the episode cost in all: every
//     attempt, every delegated episode, judges and simulated users included.
//   - tree_cost_known_usd: the part of it whose price is known.
//
// An unknown cost is null, and so is every sum with an unknown cost in it.
package query

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/talaria-run/talaria/dataset/store"
)

// ErrNotBuiltIn is returned by [Open] in a build without cgo.
var ErrNotBuiltIn = errors.New("this build has no SQL: build talaria with CGO_ENABLED=1 and a C++ compiler, or install a full release")

// UnreadableError is what DuckDB says when it cannot go on reading. A damaged
// file may be behind it, which the text does not always name:
// [store.View.Verify] finds it.
type UnreadableError struct{ Text string }

func (e *UnreadableError) Error() string { return e.Text }

// Input is a run to read: what a view of it in dataset/store found committed.
type Input struct {
	Dir string
	Run store.Run
	// Files are the committed part files of each table.
	Files map[string][]string
	// Journal are files of zstd-compressed JSON lines with what is finished
	// and in no part yet: copies of the segments of that name in the run.
	Journal []string
}

// FromView is the input for a view of a run. dir is the run as the user named
// it, for paths that are shown or printed.
func FromView(v *store.View, dir string) Input {
	in := Input{Dir: dir, Run: v.Run, Files: map[string][]string{}, Journal: v.Journal}
	for name, paths := range v.Files {
		for _, path := range paths {
			if rel, err := filepath.Rel(v.Dir, path); err == nil {
				path = filepath.Join(dir, rel)
			}
			in.Files[name] = append(in.Files[name], path)
		}
	}
	return in
}

// distinct returns an error if two inputs are one run: its rows would count
// twice in every view.
func distinct(inputs []Input) error {
	dirs := map[string]string{}
	for _, in := range inputs {
		if other, seen := dirs[in.Run.RunID]; seen {
			return fmt.Errorf("%s and %s are the same run (%s): name it once", other, in.Dir, in.Run.RunID)
		}
		dirs[in.Run.RunID] = in.Dir
	}
	return nil
}

// Options bound what a database may use. The zero value of each field is the
// default.
type Options struct {
	MemoryLimit string // as DuckDB takes it; default 4GB: what is beyond it spills to TempDir
	Threads     int    // default: DuckDB's, all cores
	TempDir     string // parent of a folder that Close removes; default: the system's
}
