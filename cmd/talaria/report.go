package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/report"
	"github.com/talaria-run/talaria/eval/table"
)

type reportOptions struct {
	Runs   []string
	Format table.Format
}

func newReportCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "Prints the standard tables of runs: pass rates with intervals, cost, tokens, latency, failures, tools.",
		UsageText: "talaria report runs/quickstart-*",
		ArgsUsage: "RUN...",
		Flags:     []cli.Flag{choiceFlag("format", "print as `FORMAT`", "table", "json", "jsonl", "csv")},
		Action: func(c *cli.Context) error {
			return runReport(c.Context, reportOptions{
				Runs: c.Args().Slice(), Format: table.Format(c.String("format")),
			}, std)
		},
	}
}

func runReport(ctx context.Context, opts reportOptions, std *stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	return withSQL(ctx, opts.Runs, func(db *query.DB) error {
		r, err := report.Build(ctx, db)
		if err != nil {
			return err
		}
		return r.Write(std.out, opts.Format)
	})
}
