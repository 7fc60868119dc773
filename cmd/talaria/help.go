package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
)

// helpFlag is answered by arrange and never reaches urfave/cli.
const helpFlag = "help"

// writeHelp explains the last command of path. It opens with the command's
// Usage, one sentence, and its UsageText, an example that works when pasted.
func writeHelp(w io.Writer, path []*cli.Command) error {
	root, c := path[0], path[len(path)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n  %s\n\n", c.Usage, c.UsageText)
	fmt.Fprintf(&b, "Usage: %s\n", usageLine(path))
	if c.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Description)
	}
	if commands := c.VisibleCommands(); len(commands) > 0 {
		b.WriteString("\nCommands:\n")
		columns(&b, commands, func(c *cli.Command) (string, string) { return c.Name, c.Usage })
	}
	if c != root && len(c.VisibleFlags()) > 0 {
		b.WriteString("\nFlags:\n")
		columns(&b, c.VisibleFlags(), flagHelp)
	}
	b.WriteString("\nGlobal flags:\n")
	columns(&b, root.VisibleFlags(), flagHelp)
	_, err := io.WriteString(w, b.String())
	return err
}

func usageLine(path []*cli.Command) string {
	c := path[len(path)-1]
	words := []string{commandName(path)}
	if len(c.Subcommands) > 0 {
		words = append(words, "COMMAND")
	}
	words = append(words, "[flags]")
	if c.ArgsUsage != "" {
		words = append(words, c.ArgsUsage)
	}
	return strings.Join(words, " ")
}

// columns writes two aligned columns, one line for each item.
func columns[T any](w io.Writer, items []T, line func(T) (left, right string)) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, item := range items {
		left, right := line(item)
		fmt.Fprintf(table, "  %s\t%s\n", left, right)
	}
	_ = table.Flush() // the writer is a strings.Builder
}

// flagHelp is a flag as the help shows it: "-m, --model MODEL" and what it is
// for. The usage names the value in backquotes.
func flagHelp(f cli.Flag) (left, right string) {
	var names []string
	for _, name := range f.Names() {
		if len(name) == 1 {
			names = append([]string{spelled(name)}, names...)
		} else {
			names = append(names, spelled(name))
		}
	}
	left = strings.Join(names, ", ")
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return left, ""
	}
	placeholder, usage := unquote(doc.GetUsage())
	if doc.TakesValue() {
		left += " " + placeholder
	}
	return left, usage + flagNotes(f, doc)
}

// unquote takes the value's name out of a usage.
func unquote(usage string) (placeholder, plain string) {
	before, rest, ok := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(rest, "`")
	if !ok || !closed {
		return "VALUE", usage
	}
	return name, before + name + after
}

// flagNotes tells the words that a flag takes, its default and the environment
// variable that sets it.
func flagNotes(f cli.Flag, doc cli.DocGenerationFlag) string {
	var notes []string
	if words := flagWords(f); words != nil {
		notes = append(notes, strings.Join(words, "|"))
	}
	if d := strings.Trim(doc.GetDefaultText(), `"`); doc.TakesValue() && d != "" && d != "0" && d != "0s" {
		notes = append(notes, "default "+d)
	}
	if env := doc.GetEnvVars(); len(env) > 0 {
		notes = append(notes, "env "+strings.Join(env, ", "))
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// flagWords are the words that a flag takes, nil for any.
func flagWords(f cli.Flag) []string {
	if g, ok := f.(*cli.GenericFlag); ok {
		if c, ok := g.Value.(*choice); ok {
			return c.words
		}
	}
	return nil
}
