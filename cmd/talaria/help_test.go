package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// allCommands lists the paths from the root to each visible command.
func allCommands() [][]*cli.Command {
	var all [][]*cli.Command
	var walk func(path []*cli.Command)
	walk = func(path []*cli.Command) {
		all = append(all, path)
		for _, sub := range path[len(path)-1].VisibleCommands() {
			walk(append(slices.Clip(path), sub))
		}
	}
	walk([]*cli.Command{rootCommand(newApp(&stdio{}))})
	return all
}

func TestHelpText(t *testing.T) {
	for _, path := range allCommands() {
		var got strings.Builder
		if err := writeHelp(&got, path); err != nil {
			t.Fatal(err)
		}
		golden(t, "help/"+strings.ReplaceAll(commandName(path), " ", "_")+".txt", got.String())
	}
}

// The help opens with one sentence and an example, which is a command line
// that the command accepts.
func TestHelpOpening(t *testing.T) {
	for _, path := range allCommands() {
		t.Run(commandName(path), func(t *testing.T) {
			c := path[len(path)-1]
			if !strings.HasSuffix(c.Usage, ".") || strings.Contains(c.Usage, ". ") {
				t.Errorf("usage %q is not one sentence", c.Usage)
			}
			_, example, ok := strings.Cut(c.UsageText, "talaria ")
			if !ok {
				t.Fatalf("example %q does not call talaria", c.UsageText)
			}
			example, _, _ = strings.Cut(example, ")") // source <(talaria ...)
			line, err := arrange(path[0], strings.Fields(strings.ReplaceAll(example, "'", "")))
			if err != nil {
				t.Fatalf("example %q: %v", c.UsageText, err)
			}
			if len(c.Subcommands) == 0 && line.command() != c {
				t.Errorf("example %q is of command %s", c.UsageText, line.command().Name)
			}
		})
	}
}
