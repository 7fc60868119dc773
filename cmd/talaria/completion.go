package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// completeCommand is the hidden first argument with which the completion
// scripts ask for candidates. The words of the line follow it, the one under
// the cursor last.
const completeCommand = "__complete"

//go:embed completion
var completionScripts embed.FS

type completionOptions struct{ shell string }

func newCompletionCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "Prints a script that completes talaria's commands and flags in a shell.",
		UsageText: "source <(talaria completion bash)",
		ArgsUsage: "bash|zsh|fish",
		Action: func(c *cli.Context) error {
			return runCompletion(c.Context, completionOptions{shell: c.Args().First()}, std)
		},
	}
}

func runCompletion(_ context.Context, opts completionOptions, std *stdio) error {
	script, err := completionScripts.ReadFile("completion/" + opts.shell + ".sh")
	if err != nil {
		return fmt.Errorf("reading the script for %s: %w", opts.shell, err)
	}
	_, err = std.out.Write(script)
	return err
}

// complete prints what may stand in place of the last word, one candidate a
// line, behind it a tab and its description. It prints nothing where a file
// may stand.
func complete(w io.Writer, root *cli.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	line := commandLine{path: []*cli.Command{root}}
	var b strings.Builder
	for _, c := range line.candidates(words[:len(words)-1], last) {
		if strings.HasPrefix(c.word, last) {
			b.WriteString(strings.TrimSuffix(c.word+"\t"+c.description, "\t") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type candidate struct{ word, description string }

// candidates goes through the words before the last one and lists what may
// follow them.
func (l *commandLine) candidates(before []string, last string) []candidate {
	for len(before) > 0 {
		word := before[0]
		before = before[1:]
		switch {
		case word == "--":
			return nil
		case !isFlag(word):
			_ = l.addWord(word) // an unknown word is the user's to correct
		default:
			flag, _ := l.find(strings.TrimLeft(word, "-"))
			if flag == nil || !takesValue(flag) {
				continue
			}
			if len(before) == 0 {
				return wordCandidates(flagWords(flag))
			}
			before = before[1:]
		}
	}
	if strings.HasPrefix(last, "-") {
		return l.flagCandidates()
	}
	return l.wordCandidates()
}

func (l *commandLine) flagCandidates() []candidate {
	flags := l.path[0].VisibleFlags()
	if len(l.path) > 1 {
		flags = append(l.command().VisibleFlags(), flags...)
	}
	list := make([]candidate, len(flags))
	for i, f := range flags {
		_, description := flagHelp(f)
		list[i] = candidate{spelled(f.Names()[0]), description}
	}
	return list
}

// wordCandidates are the subcommands, or the words that the next argument may be.
func (l *commandLine) wordCandidates() []candidate {
	c := l.command()
	if usage := strings.Fields(c.ArgsUsage); len(l.operands) < len(usage) {
		return wordCandidates(choices(usage[len(l.operands)]))
	}
	var list []candidate
	for _, sub := range c.VisibleCommands() {
		list = append(list, candidate{sub.Name, sub.Usage})
	}
	return list
}

func wordCandidates(words []string) []candidate {
	list := make([]candidate, len(words))
	for i, word := range words {
		list[i].word = word
	}
	return list
}
