package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset/store"
)

type mergeOptions struct {
	Runs   []string
	Out    string
	Prefer store.Prefer
}

func newMergeCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "Makes one run of many, or of the shards of one.",
		UsageText: "talaria merge runs/shard-* --out runs/whole",
		ArgsUsage: "RUN...",
		Description: "The runs must be of one plan: the same episodes, dataset and seed. They are not changed, and nobody may\n" +
			"be writing them. What is missing of the plan, 'talaria resume' of the merged run runs.\n\n" +
			"An attempt that several runs hold is kept once. Other attempts of an episode are numbered anew by the\n" +
			"time when they ended, the model's own last. Where two runs ended an episode as the model's own doing,\n" +
			"and differently, the merge is refused unless --prefer tells which run counts.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "merge into `DIR`, which must be absent or empty"},
			choiceFlag("prefer", "which of the runs counts where two ended an episode, `RUN` in the order given", "none", "first", "last"),
		},
		Action: func(c *cli.Context) error {
			prefer := store.Prefer(c.String("prefer"))
			if prefer == "none" {
				prefer = store.PreferNone
			}
			return runMerge(c.Context, mergeOptions{Runs: c.Args().Slice(), Out: c.String("out"), Prefer: prefer}, std)
		},
	}
}

func runMerge(ctx context.Context, opts mergeOptions, std *stdio) error {
	if opts.Out == "" {
		return usageErrorf("talaria merge", "--out is missing: name the directory of the merged run")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	v := buildVersion()
	merged, err := store.Merge(ctx, opts.Out, opts.Runs, store.MergeOptions{
		Logger: std.log, Prefer: opts.Prefer,
		Run: store.Run{RunID: newRunID(), Version: v.Version, Commit: v.Commit, Go: v.Go, Host: hostname()},
	})
	if err != nil {
		return mergeError(err)
	}
	if err := runStatus(ctx, statusOptions{Run: opts.Out}, std); err != nil {
		return fmt.Errorf("reading the merged run: %w", err)
	}
	for _, line := range mergeRemarks(merged, opts.Out) {
		if _, err := fmt.Fprintln(std.out, line); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(std.out, opts.Out)
	return err
}

// mergeRemarks are what the table does not show.
func mergeRemarks(m store.Merged, dir string) []string {
	var lines []string
	if m.Twins > 0 {
		lines = append(lines, plural(m.Twins, "attempt", "attempts")+" in several runs, kept once")
	}
	if m.Dropped > 0 {
		lines = append(lines, plural(m.Dropped, "attempt", "attempts")+" left out by --prefer")
	}
	if len(m.Missing) > 0 {
		lines = append(lines, "missing shards: "+strings.Join(m.Missing, ", "))
	}
	if m.Run.State != store.StateComplete {
		lines = append(lines, "the plan is not complete: 'talaria resume "+dir+"' runs what is missing")
	}
	return lines
}

// mergeError tells what to do. What only the command line can mend is a usage
// error.
func mergeError(err error) error {
	if mismatch, ok := errors.AsType[*store.MismatchError](err); ok {
		return &usageError{err: fmt.Errorf("%w%s\nruns of different plans stay apart: 'talaria query %s %s' looks at both",
			err, identityChanges(mismatch), mismatch.First, mismatch.Other)}
	}
	if _, ok := errors.AsType[*store.ConflictError](err); ok {
		return &usageError{err: fmt.Errorf("%w: give --prefer first or --prefer last to keep one of each, or merge the runs apart", err)}
	}
	for _, usage := range []error{store.ErrIsRun, store.ErrNotEmpty, store.ErrNamedTwice} {
		if errors.Is(err, usage) {
			return &usageError{command: "talaria merge", err: err}
		}
	}
	return notRun(err)
}

// identityChanges are the keys of the config behind a mismatch, one a line.
func identityChanges(m *store.MismatchError) string {
	var text strings.Builder
	first, errFirst := recordedConfig(m.First)
	other, errOther := recordedConfig(m.Other)
	if errors.Join(errFirst, errOther) != nil {
		return "" // the mismatch itself says enough
	}
	for _, change := range configs.DiffIdentity(first, other) {
		text.WriteString("\n  " + change.String())
	}
	return text.String()
}

func recordedConfig(dir string) (*configs.Run, error) {
	record, err := store.ReadRun(dir)
	if err != nil {
		return nil, err
	}
	return configs.FromResolved(record.Config, configs.Options{Recorded: true})
}
