package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

type resumeOptions struct {
	Run            string
	Load           configs.Options
	Retry          runner.Retry
	Shard          runner.Shard // must be the run's, where it is given
	AcceptIdentity bool
}

func newResumeCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:        "resume",
		Usage:       "Goes on with a run that was interrupted or failed in part.",
		UsageText:   "talaria resume runs/quickstart-20260102-030405-1a2b",
		ArgsUsage:   "RUN",
		Description: "A shard's run goes on with its shard; --shard makes sure that it is that one.",
		Flags: []cli.Flag{
			setFlag(),
			shardFlag("refuse a run of another shard than `i/n`, auto or auto/n"),
			&cli.StringFlag{Name: "retry", Usage: "grant one more allowance to `OUTCOMES`: infra, task, budget, with commas between"},
			&cli.BoolFlag{Name: "accept-identity", Usage: "go on although the episodes of the config are others than those recorded"},
		},
		Action: func(c *cli.Context) error {
			retry, err := parseRetry(c.String("retry"))
			if err != nil {
				return err
			}
			shard, err := shardOf(c, std)
			if err != nil {
				return err
			}
			return runResume(c.Context, resumeOptions{
				Shard:          shard,
				Run:            c.Args().First(),
				Load:           configs.Options{Set: c.StringSlice("set"), Env: std.lookupEnv},
				Retry:          retry,
				AcceptIdentity: c.Bool("accept-identity"),
			}, std)
		},
	}
}

func parseRetry(list string) (runner.Retry, error) {
	var r runner.Retry
	if list == "" {
		return r, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(name) {
		case "infra":
			r.Infra = true
		case "task":
			r.Task = true
		case "budget":
			r.Budget = true
		default:
			return r, usageErrorf("talaria resume", "--retry: want infra, task or budget, got %q", name)
		}
	}
	return r, nil
}

func runResume(ctx context.Context, opts resumeOptions, std *stdio) error {
	record, err := store.ReadRun(opts.Run)
	if err != nil {
		return notRun(err)
	}
	cfg, err := configs.FromResolved(record.Config, opts.Load)
	if err != nil {
		return &usageError{err: err}
	}
	return continueRun(ctx, opts.Run, cfg, opts, std)
}

// notRun makes a directory that is no run a usage error.
func notRun(err error) error {
	if errors.Is(err, store.ErrNotRun) {
		return &usageError{err: fmt.Errorf("%w; give the directory that 'talaria run' printed", err)}
	}
	return err
}

// continueRun goes on with the run in dir under cfg.
func continueRun(ctx context.Context, dir string, cfg *configs.Run, opts resumeOptions, std *stdio) error {
	record, err := store.ReadRun(dir)
	if err != nil {
		return notRun(err)
	}
	if err := checkIdentity(record, cfg, opts.AcceptIdentity); err != nil {
		return err
	}
	shard, err := shardOn(record, dir, opts.Shard)
	if err != nil {
		return err
	}
	s, err := prepare(ctx, cfg, shard, &record, std)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	st, err := store.Open(dir, s.storeOptions())
	if err != nil {
		return fmt.Errorf("opening the run: %w", err)
	}
	var fillErr error
	err = st.UpdateRun(func(r *store.Run) { fillErr = errors.Join(s.noteChanges(st, r), s.fill(r)) })
	if err := errors.Join(fillErr, err); err != nil {
		return errors.Join(err, st.Close())
	}
	return s.run(ctx, dir, st, opts.Retry)
}

// checkIdentity refuses to go on with other episodes than those recorded.
func checkIdentity(record store.Run, cfg *configs.Run, accept bool) error {
	was, err := configs.FromResolved(record.Config, configs.Options{Recorded: true})
	if err != nil {
		return &usageError{err: fmt.Errorf("reading the config of the run: %w", err)}
	}
	changes := configs.DiffIdentity(was, cfg)
	if len(changes) == 0 || accept {
		return nil
	}
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = "  " + c.String()
	}
	return &usageError{err: fmt.Errorf(
		"the config describes other episodes than those recorded:\n%s\nstart a new run, or give --accept-identity to record both in one",
		strings.Join(lines, "\n"))}
}
