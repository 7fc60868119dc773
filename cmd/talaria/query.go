package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/table"
)

type queryOptions struct {
	Runs       []string
	SQL        string // "-" reads stdin, "" asks for it where there is a terminal
	Format     table.Format
	PrintViews bool
}

func newQueryCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "query",
		Usage:     "Answers SQL over one or many runs, also while they run.",
		UsageText: `talaria query runs/quickstart-* "SELECT variant, avg(reward) FROM episodes GROUP BY ALL"`,
		ArgsUsage: "RUN... [SQL]",
		Description: "Without SQL it is read from stdin; on a terminal there is a prompt, where .help tells what it knows.\n" +
			"The exit code is 2 for a mistake in the SQL.",
		Flags: []cli.Flag{
			choiceFlag("format", "print as `FORMAT`", "table", "json", "jsonl", "csv", "parquet"),
			&cli.BoolFlag{Name: "print-views", Usage: "print the views as SQL for any DuckDB client; takes runs only"},
		},
		Action: func(c *cli.Context) error {
			opts := queryOptions{
				Runs: c.Args().Slice(), Format: table.Format(c.String("format")), PrintViews: c.Bool("print-views"),
			}
			if last := len(opts.Runs) - 1; !opts.PrintViews && !isDir(opts.Runs[last]) {
				opts.Runs, opts.SQL = opts.Runs[:last], opts.Runs[last]
			}
			return runQuery(c.Context, opts, std)
		},
	}
}

func runQuery(ctx context.Context, opts queryOptions, std *stdio) error {
	if len(opts.Runs) == 0 {
		return usageErrorf("talaria query", "give the directory of a run before the SQL")
	}
	if opts.PrintViews {
		return printViews(opts.Runs, std.out)
	}
	if opts.SQL == "" && std.inTerminal && std.outTerminal {
		return runShell(ctx, opts, std)
	}
	if opts.SQL == "" || opts.SQL == "-" {
		text, err := io.ReadAll(std.in)
		if err != nil {
			return fmt.Errorf("reading the SQL from stdin: %w", err)
		}
		opts.SQL = string(text)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	return withSQL(ctx, opts.Runs, func(db *query.DB) error {
		return db.Print(ctx, std.out, opts.Format, opts.SQL)
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func printViews(runs []string, out io.Writer) error {
	views, done, err := openViews(runs)
	if err != nil {
		return err
	}
	defer done()
	for _, v := range views {
		if len(v.Journal) > 0 {
			return fmt.Errorf("%s: it is being written or was not closed, and a file of views cannot show what is in its journal: wait for its end, or 'talaria resume' it", v.Dir)
		}
	}
	return query.PrintViews(out, inputs(views, runs))
}
