//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// batchSize is how many attempts the drain writes at once under load.
const batchSize = 16

// runEncode writes the rows of a run again, once as journal and once as
// Parquet: encode RUN.
func runEncode(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("usage: encode RUN")
	}
	temp, err := os.MkdirTemp("", "talaria-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	view, err := store.OpenView(args[0], temp)
	if err != nil {
		return err
	}
	trs, err := trajectories(view)
	if err != nil {
		return err
	}
	again := filepath.Join(temp, "again")
	if err := measure(func() error { return encode(ctx, again, view.Run, trs) }); err != nil {
		return err
	}
	return sameRows(view, again, temp)
}

func trajectories(view *store.View) ([]*dataset.Trajectory, error) {
	var trs []*dataset.Trajectory
	for tr, err := range view.Trajectories(nil) {
		if err != nil {
			return nil, err
		}
		trs = append(trs, tr)
	}
	return trs, nil
}

func encode(ctx context.Context, dir string, run store.Run, trs []*dataset.Trajectory) error {
	st, err := store.Create(dir, run, store.Options{})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(trs, batchSize) {
		if err := st.Write(ctx, batch); err != nil {
			return errors.Join(err, st.Close())
		}
	}
	return st.Close()
}

// sameRows checks that what was encoded is what the run holds, table by table.
func sameRows(view *store.View, again, temp string) error {
	encoded, err := store.OpenView(again, temp)
	if err != nil {
		return err
	}
	if got, want := rowsByTable(encoded), rowsByTable(view); !maps.Equal(got, want) {
		return fmt.Errorf("encoded %v, and the run has %v", got, want)
	}
	return nil
}

func rowsByTable(view *store.View) map[string]int64 {
	rows := map[string]int64{}
	for _, p := range view.Parts {
		for _, f := range p.Files {
			rows[f.Table] += f.Rows
		}
	}
	return rows
}
