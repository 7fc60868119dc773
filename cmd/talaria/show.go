package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/show"
)

type showOptions struct {
	Run     string
	Episode string // or the beginning of its id
	Attempt *int32 // nil: the current one
	Format  string
}

func newShowCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "Prints one trajectory turn by turn.",
		UsageText: "talaria show runs/quickstart-20260102-030405-1a2b 3f2a",
		ArgsUsage: "RUN EPISODE",
		Description: "EPISODE is an episode's id or the beginning of one, as in\n" +
			`talaria query RUN "SELECT episode_id FROM episodes WHERE NOT passed".`,
		Flags: []cli.Flag{
			choiceFlag("format", "print as `FORMAT`", "text", "json"),
			&cli.IntFlag{Name: "attempt", Usage: "show attempt `N` of it, from 0, and not the current one"},
		},
		Action: func(c *cli.Context) error {
			opts := showOptions{Run: c.Args().Get(0), Episode: c.Args().Get(1), Format: c.String("format")}
			if c.IsSet("attempt") {
				opts.Attempt = new(int32(c.Int("attempt"))) //nolint:gosec // an attempt that there is not is told
			}
			return runShow(c.Context, opts, std)
		},
	}
}

func runShow(ctx context.Context, opts showOptions, std *stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	return withSQL(ctx, []string{opts.Run}, func(db *query.DB) error {
		tr, err := show.Load(ctx, db, opts.Episode)
		if notFound, ok := errors.AsType[*show.NotFoundError](err); ok {
			return &usageError{err: notFound}
		}
		if err != nil {
			return err
		}
		if opts.Format == "json" {
			return tr.WriteJSON(std.out)
		}
		return tr.Write(std.out, show.Options{Width: std.width(), Attempt: opts.Attempt})
	})
}
