//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// rowsOptions say how large the two datasets are that are compared.
type rowsOptions struct {
	Base   int // rows of the smaller one
	Rows   int // and of the larger one
	Rounds int
}

// maxBytesPerRow is what a further row of a dataset may take in memory.
const maxBytesPerRow = 128

type rowsFigures struct {
	base, rows []int64       // peak memory of each round, in bytes
	first      time.Duration // from the start of a resume to its first model call
	resume     used
}

// perRow is what a further row takes, by the medians.
func (f rowsFigures) perRow(o rowsOptions) float64 {
	return float64(middle(f.rows)-middle(f.base)) / float64(o.Rows-o.Base)
}

func middle(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func runRows(ctx context.Context, args []string) error {
	var o rowsOptions
	flags := flag.NewFlagSet("rows", flag.ContinueOnError)
	flags.IntVar(&o.Base, "base", 200_000, "rows of the smaller dataset")
	flags.IntVar(&o.Rows, "rows", 1_000_000, "rows of the larger dataset")
	flags.IntVar(&o.Rounds, "rounds", 3, "rounds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w, err := openWorkshop(ctx)
	if err != nil {
		return err
	}
	f, err := rows(ctx, w, o)
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	fmt.Printf("peak resident memory with %d rows        %s\n", o.Base, mib(middle(f.base)))
	fmt.Printf("peak resident memory with %d rows        %s\n", o.Rows, mib(middle(f.rows)))
	fmt.Printf("  for each further row, median of %d rounds   %.0f bytes (at most %d)\n", o.Rounds, f.perRow(o), maxBytesPerRow)
	fmt.Printf("resume with %d recorded episodes: %.1f s to the first model call, %.1f s of CPU in all, %s\n",
		o.Rows, f.first.Seconds(), f.resume.cpu.Seconds(), mib(f.resume.peak))
	return nil
}

// rows runs both datasets in turn, and resumes the last run of the larger one
// with one row more.
func rows(ctx context.Context, w *workshop, o rowsOptions) (f rowsFigures, err error) {
	if err := w.tasks(o.Rows+1, 0); err != nil {
		return f, err
	}
	err = w.write("rows.yaml", `version: 1
name: rows
tasks: {path: tasks.jsonl, columns: {id: id, input: question, target: answer}}
env: {name: answer}
agent: {model: scripted/null}
score: [{name: numeric, extract: last_number}]
`)
	if err != nil {
		return f, err
	}
	for range o.Rounds {
		base, err := nullRun(ctx, w, o.Base)
		if err != nil {
			return f, err
		}
		large, err := nullRun(ctx, w, o.Rows)
		if err != nil {
			return f, err
		}
		f.base, f.rows = append(f.base, base.peak), append(f.rows, large.peak)
	}
	f.first, f.resume, err = resume(ctx, w, o.Rows+1)
	return f, err
}

// nullRun runs the first n rows in the folder run.
func nullRun(ctx context.Context, w *workshop, n int) (used, error) {
	if err := os.RemoveAll(w.path("run")); err != nil {
		return used{}, err
	}
	return w.run(ctx, "run", w.path("rows.yaml"), "--limit", strconv.Itoa(n), "--out", w.path("run"), "--quiet")
}

// resume goes on with the run to the n-th row. The first model call is there
// when its line is in the journal, which is before the request leaves.
func resume(ctx context.Context, w *workshop, n int) (first time.Duration, u used, err error) {
	cmd := exec.CommandContext(ctx, w.talaria, "resume", w.path("run"), "--set", "tasks.limit="+strconv.Itoa(n), "--quiet")
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, u, err
	}
	ended := make(chan error, 1) // from Wait
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return first, used{cpu: cpuOf(cmd), peak: peakOf(cmd)}, err
		case now := <-tick.C:
			if first == 0 && journalBegun(w.path("run")) {
				first = now.Sub(begin)
			}
		}
	}
}

func journalBegun(run string) bool {
	segments, err := filepath.Glob(filepath.Join(run, "journal", "*"))
	return err == nil && len(segments) > 0
}
