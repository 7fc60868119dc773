package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/eval/table"
	"github.com/talaria-run/talaria/runner"
)

type tasksOptions struct {
	Config string
	Load   configs.Options
	Shard  runner.Shard
	Audit  bool
	Format table.Format
}

func newTasksCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "tasks",
		Usage:     "Prints the tasks of a config as they will be seen, or audits how they are judged.",
		UsageText: "talaria tasks bundled:quickstart",
		ArgsUsage: "CONFIG",
		Description: "With --audit each task is played by the oracle, which must get 1, by a model that gives up and by\n" +
			"each script in the task's folder wrong/, which must get 0, and by one that acts at random. The exit\n" +
			"code is 1 if a task is judged otherwise.\n\n" + shardHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "audit", Usage: "play each task with policies whose reward is known"},
			&cli.IntFlag{Name: "limit", Usage: "take the first `N` tasks of each source"},
			shardFlag("print or audit one shard, `i/n`, auto or auto/n"),
			setFlag(),
			choiceFlag("format", "print as `FORMAT`", "table", "json", "jsonl", "csv"),
		},
		Action: func(c *cli.Context) error {
			shard, err := shardOf(c, std)
			if err != nil {
				return err
			}
			opts := tasksOptions{
				Config: c.Args().First(), Shard: shard, Audit: c.Bool("audit"), Format: table.Format(c.String("format")),
				Load: configs.Options{Set: c.StringSlice("set"), Env: std.lookupEnv},
			}
			if c.IsSet("limit") {
				opts.Load.Flags = []configs.Flag{{Name: "--limit", Key: "tasks.*.limit", Value: strconv.Itoa(c.Int("limit"))}}
			}
			return runTasks(c.Context, opts, std)
		},
	}
}

func runTasks(ctx context.Context, opts tasksOptions, std *stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	if opts.Audit {
		return runAudit(ctx, opts, std)
	}
	cfg, err := configs.Load(opts.Config, opts.Load)
	if err != nil {
		return &usageError{err: err}
	}
	list, err := openSources(ctx, cfg, nil, std)
	if err != nil {
		return &usageError{err: err}
	}
	prompt, err := firstPrompt(cfg)
	if err != nil {
		return &usageError{err: err}
	}
	defer func() { list.warn(std.log) }() // what the pass has left out
	columns := []table.Column{{Name: "task"}, {Name: "occurrence", Number: true}, {Name: "dataset"}, {Name: "prompt"}, {Name: "target"}}
	return table.Write(std.out, opts.Format, columns, func(yield func([]any, error) bool) {
		for t, err := range opts.Shard.Of(list.tasks()) {
			row, err := taskRow(t, prompt, err)
			if !yield(row, err) || err != nil {
				return
			}
		}
	})
}

func firstPrompt(cfg *configs.Run) (*configs.Prompt, error) {
	variants, err := cfg.Variants()
	if err != nil {
		return nil, err
	}
	return variants[0].Run.Prompt()
}

// taskRow is a task with the last message of its prompt: those before it are
// the same for all.
func taskRow(t dataset.Task, prompt *configs.Prompt, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	messages, err := prompt.Messages(t)
	if err != nil {
		return nil, err
	}
	text := ""
	if len(messages) > 0 {
		text = messages[len(messages)-1].Content
	}
	return []any{t.ID, t.Occurrence, t.Dataset, text, t.Target}, nil
}

func runAudit(ctx context.Context, opts tasksOptions, std *stdio) error {
	a := &auditor{std: std, shard: opts.Shard, load: func(model string) (*configs.Run, error) {
		load := opts.Load
		load.Model = []string{model}
		return configs.Load(opts.Config, load)
	}}
	all, err := a.audit(ctx)
	if err != nil {
		return err
	}
	if err := printVerdicts(std, opts.Format, all); err != nil {
		return err
	}
	bad := 0
	for _, v := range all {
		if !v.OK {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d tasks are not judged as they must be", bad, len(all))
	}
	return nil
}

func printVerdicts(std *stdio, format table.Format, all []verdict) error {
	if format == table.JSON {
		return json.NewEncoder(std.out).Encode(all)
	}
	columns, rows := verdictTable(all)
	return table.Write(std.out, format, columns, table.All(rows))
}
