package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/env/sandbox/local"
	"github.com/talaria-run/talaria/eval/table"
)

type sandboxOptions struct{ Format string }

func newSandboxCommand(std *stdio) *cli.Command {
	format := func() cli.Flag { return choiceFlag("format", "print as `FORMAT`", "table", "json") }
	return &cli.Command{
		Name:      "sandbox",
		Usage:     "Lists the sandboxes of this machine and removes what dead runs left.",
		UsageText: "talaria sandbox list",
		Subcommands: []*cli.Command{
			{
				Name:      "list",
				Usage:     "Lists the sandboxes that runs of this user have or have left.",
				UsageText: "talaria sandbox list",
				Flags:     []cli.Flag{format()},
				Action: func(c *cli.Context) error {
					return runSandboxList(c.Context, sandboxOptions{Format: c.String("format")}, std)
				},
			},
			{
				Name:      "reap",
				Usage:     "Removes what runs that are no longer alive have left, and lists it.",
				UsageText: "talaria sandbox reap",
				Flags:     []cli.Flag{format()},
				Action: func(c *cli.Context) error {
					return runSandboxReap(c.Context, sandboxOptions{Format: c.String("format")}, std)
				},
			},
		},
	}
}

func runSandboxList(_ context.Context, opts sandboxOptions, std *stdio) error {
	entries, err := local.List(local.Options{})
	if err != nil {
		return fmt.Errorf("listing sandboxes: %w", err)
	}
	return printEntries(std, opts.Format, entries)
}

// runSandboxReap leaves alone what belongs to a run that is alive.
func runSandboxReap(ctx context.Context, opts sandboxOptions, std *stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	entries, err := local.Reap(ctx, local.Options{})
	if err != nil {
		return fmt.Errorf("reaping sandboxes: %w", err)
	}
	return printEntries(std, opts.Format, entries)
}

func printEntries(std *stdio, format string, entries []local.Entry) error {
	if format == "json" {
		if entries == nil {
			entries = []local.Entry{}
		}
		return json.NewEncoder(std.out).Encode(entries)
	}
	columns := []table.Column{
		{Name: "sandbox"},
		{Name: "run"},
		{Name: "episode"},
		{Name: "attempt", Number: true},
		{Name: "started"},
		{Name: "owner", Number: true},
		{Name: "owner is"},
		{Name: "confined"},
	}
	rows := make([][]any, len(entries))
	for i, e := range entries {
		rows[i] = []any{
			e.ID, e.Labels.Run, e.Labels.Episode, e.Labels.Attempt,
			e.Started.UTC().Format(time.DateTime), e.Owner, aliveText(e.Alive), e.Confined,
		}
	}
	return table.Write(std.out, table.Table, columns, table.All(rows))
}

func aliveText(alive bool) string {
	if alive {
		return "alive"
	}
	return "dead"
}
