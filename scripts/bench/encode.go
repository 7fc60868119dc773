//go:build unix

package main

import (
	"context"
	"errors"
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
	run, trs, err := readRun(args[0], temp)
	if err != nil {
		return err
	}
	variants := map[string]dataset.Variant{}
	for _, v := range run.Variants {
		variants[v.Hash] = v
	}
	return measure(func() error {
		st, err := store.Create(filepath.Join(temp, "again"), run, store.Options{Variants: variants})
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(trs, batchSize) {
			if err := st.Write(ctx, batch); err != nil {
				return errors.Join(err, st.Close())
			}
		}
		return st.Close()
	})
}

func readRun(dir, temp string) (store.Run, []*dataset.Trajectory, error) {
	view, err := store.OpenView(dir, temp)
	if err != nil {
		return store.Run{}, nil, err
	}
	var trs []*dataset.Trajectory
	for tr, err := range view.Trajectories(func(*store.AttemptRow) bool { return true }) {
		if err != nil {
			return store.Run{}, nil, err
		}
		trs = append(trs, tr)
	}
	return view.Run, trs, nil
}
