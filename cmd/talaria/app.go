package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// newApp lists the commands in the order of the help. Each is a trio: a
// constructor with the flags, an options struct, and a function of (ctx,
// options, stdio) that knows nothing of the command line.
func newApp(std *stdio) *cli.App {
	return &cli.App{
		Name:      "talaria",
		Usage:     "Runs thousands of LLM-agent episodes and records every trajectory to Parquet.",
		UsageText: "talaria version",
		Flags:     globalFlags(),
		Commands: []*cli.Command{
			newRunCommand(std),
			newPlanCommand(std),
			newResumeCommand(std),
			newMergeCommand(std),
			newStatusCommand(std),
			newShowCommand(std),
			newQueryCommand(std),
			newReportCommand(std),
			newTasksCommand(std),
			newToolsCommand(std),
			newSandboxCommand(std),
			newDoctorCommand(std),
			newLabCommand(std),
			newVersionCommand(std),
			newCompletionCommand(std),
		},
		Before:                    std.configure,
		After:                     func(*cli.Context) error { return std.stopProfile() },
		Reader:                    std.in,
		Writer:                    std.out,
		ErrWriter:                 std.err,
		HideHelp:                  true, // arrange answers --help
		DisableSliceFlagSeparator: true,
		OnUsageError:              asUsageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // execute maps errors
	}
}

// globalFlags stand before or after any command.
func globalFlags() []cli.Flag {
	format := choiceFlag("log-format", "write logs as `FORMAT`", "text", "json")
	format.EnvVars = []string{"TALARIA_LOG_FORMAT"}
	level := choiceFlag("log-level", "log from `LEVEL` up", "info", "debug", "warn", "error")
	level.EnvVars = []string{"TALARIA_LOG_LEVEL"}
	return []cli.Flag{
		format,
		level,
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show no progress", EnvVars: []string{"TALARIA_QUIET"}},
		&cli.BoolFlag{Name: "no-color", Usage: "use no colours; NO_COLOR in the environment does the same"},
		&cli.StringFlag{Name: "cpuprofile", Usage: "write a profile of the CPU time to `FILE`, for go tool pprof"},
		&cli.BoolFlag{Name: helpFlag, Aliases: []string{"h"}, Usage: "explain the command"},
	}
}

// execute runs the command line of std and returns the process's exit code.
func execute(ctx context.Context, std *stdio) int {
	app := newApp(std)
	root := rootCommand(app)
	if len(std.args) > 0 && std.args[0] == completeCommand {
		return exitCode(complete(std.out, root, std.args[1:]))
	}
	line, err := arrange(root, std.args)
	if line.wantsJSONLogs(std.getenv) {
		std.setLog(true, "info") // for usage errors; configure does it once more
	}
	if err != nil {
		return std.report(err)
	}
	if line.help {
		return std.report(writeHelp(std.out, line.path))
	}
	return std.report(app.RunContext(ctx, append([]string{app.Name}, line.args()...)))
}

// rootCommand is the app as the root of the tree of commands.
func rootCommand(app *cli.App) *cli.Command {
	root := &cli.Command{
		Name:        app.Name,
		Usage:       app.Usage,
		UsageText:   app.UsageText,
		Flags:       app.Flags,
		Subcommands: app.Commands,
	}
	reportUsageErrors(app.Commands)
	return root
}

func reportUsageErrors(commands []*cli.Command) {
	for _, c := range commands {
		c.HideHelp = true
		c.OnUsageError = asUsageError
		reportUsageErrors(c.Subcommands)
	}
}

func asUsageError(c *cli.Context, err error, _ bool) error {
	text := strings.Replace(err.Error(), " for flag -", " for flag --", 1)
	return &usageError{command: c.Command.HelpName, err: errors.New(text)}
}

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value string
	words []string
}

// choiceFlag makes a flag whose default is the first word. Read it with
// Context.String.
func choiceFlag(name, usage string, words ...string) *cli.GenericFlag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &choice{words[0], words}}
}

// Set implements flag.Value.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("want one of %s%s", strings.Join(c.words, ", "), didYouMean(word, c.words))
	}
	c.value = word
	return nil
}

// String implements flag.Value.
func (c *choice) String() string { return c.value }
