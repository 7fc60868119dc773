package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// wantMergeAgain merges what a cut-off merge left, which must be no run or the
// whole one.
func wantMergeAgain(t *testing.T, fsys *memFS, want, before map[string]string, rows map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(before, below(fsys.state(), "/runs")); diff != "" {
		t.Fatalf("inputs were changed:\n%s", diff)
	}
	_, err := readRun(fsys, mergedDir)
	if err == nil {
		wantMerged(t, fsys, rows)
		return
	}
	if !errors.Is(err, ErrNotRun) {
		t.Fatal(err)
	}
	if _, err := mergeOf(fsys, PreferNone, shardDirs()...); err != nil {
		t.Fatalf("merging again: %v", err)
	}
	state := below(fsys.state(), mergedDir)
	for path := range state { // the manifest has times
		if want[path] == "" && filepath.Base(path) != manifestFile {
			t.Errorf("a merge after a cut-off one has %s", path)
		}
	}
	if len(state) != len(want) {
		t.Errorf("%d files, want %d", len(state), len(want))
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestMergeCrash stops a merge at each operation of the file layer.
func TestMergeCrash(t *testing.T) {
	stride := 1
	if brief() {
		stride = 7
	}
	inputs := shardRuns(t)
	before := below(inputs.state(), "/runs")
	rows := expectedMerge(t, inputs, shardDirs()...)
	whole := inputs.copied()
	if _, err := mergeOf(whole, PreferNone, shardDirs()...); err != nil {
		t.Fatal(err)
	}
	want := below(whole.state(), mergedDir)
	seen := map[string]bool{}
	for n := 0; ; n += stride {
		fsys := inputs.copied()
		fsys.before = func(op memOp) fault { return fault{stop: op.n == n, half: n%2 == 0} }
		_, err := mergeOf(fsys, PreferNone, shardDirs()...)
		if err == nil {
			if n < 60 {
				t.Errorf("a merge has only %d operations", n)
			}
			return
		}
		for i, mode := range []crashMode{dropUnsynced, keepUnsynced, mixUnsynced} {
			image := fsys.crash(mode, uint64(n))
			key := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, image.state())))
			if seen[key] || i > 0 && n%4 > 0 {
				continue // most operations leave nothing that a crash would keep
			}
			seen[key] = true
			t.Run(fmt.Sprintf("%d %s", n, mode), func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Log("stopped at ", last(fsys.log))
					}
				}()
				wantMergeAgain(t, image, want, before, rows)
			})
		}
	}
}

// TestMergeFault makes each operation fail: the error says so, and nothing of
// the merge is left.
func TestMergeFault(t *testing.T) {
	stride := 3 // so that both failures come to all kinds of operation
	if brief() {
		stride = 7
	}
	inputs := shardRuns(t)
	before := inputs.state()
	for n := 0; ; n += stride {
		failure := []error{syscall.EIO, syscall.ENOSPC}[n/stride%2]
		fsys := inputs.copied()
		failed := false
		fsys.before = func(op memOp) fault {
			if op.n != n {
				return fault{}
			}
			failed = true
			return fault{err: failure, half: true}
		}
		_, err := mergeOf(fsys, PreferNone, shardDirs()...)
		if !failed {
			return
		}
		if err == nil {
			if strings.Contains(last(fsys.log), "remove") { // of the mark
				continue
			}
			t.Fatalf("operation %d of %d failed and nobody was told", n, len(fsys.log))
		}
		if !errors.Is(err, failure) || errors.Is(failure, syscall.ENOSPC) && !strings.Contains(err.Error(), "is full: make room or name another place, and merge again") {
			t.Fatalf("got %v, want %v", err, failure)
		}
		if diff := cmp.Diff(before, fsys.state()); diff != "" {
			t.Fatalf("operation %d, %s: files were changed or left:\n%s", n, fsys.log[n], diff)
		}
	}
}

func TestMergeInterrupted(t *testing.T) {
	inputs := shardRuns(t)
	before := inputs.state()
	for n := 0; ; n += 9 {
		fsys := inputs.copied()
		ctx, cancel := context.WithCancelCause(context.Background())
		fsys.before = func(op memOp) fault {
			if op.n == n {
				cancel(dataset.ErrInterrupted)
			}
			return fault{}
		}
		_, err := Merge(ctx, mergedDir, shardDirs(), MergeOptions{FS: fsys, Run: Run{RunID: "r"}})
		cancel(nil)
		if err == nil && n > 0 {
			return // the last rows had been read
		}
		if !errors.Is(err, dataset.ErrInterrupted) {
			t.Fatalf("operation %d: %v", n, err)
		}
		if diff := cmp.Diff(before, fsys.state()); diff != "" {
			t.Fatalf("files were changed or left:\n%s", diff)
		}
	}
}
