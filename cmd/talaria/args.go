package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// commandLine is a command line sorted into its parts, so that flags may
// stand before or after arguments: urfave/cli stops at the first argument and
// would ignore the rest.
type commandLine struct {
	path     []*cli.Command // from the root to the command
	global   []string       // flags of the root, as --name=value
	flags    []string       // flags of the command
	operands []string
	help     bool // --help was given
}

// args is the line in the order that urfave/cli parses.
func (l commandLine) args() []string {
	args := slices.Clone(l.global)
	for _, c := range l.path[1:] {
		args = append(args, c.Name)
	}
	args = append(args, l.flags...)
	return append(append(args, "--"), l.operands...)
}

// wantsJSONLogs tells how errors of the command line itself are to be written.
func (l commandLine) wantsJSONLogs(getenv func(string) string) bool {
	return slices.Contains(l.global, "--log-format=json") || getenv("TALARIA_LOG_FORMAT") == "json"
}

func (l commandLine) command() *cli.Command { return l.path[len(l.path)-1] }

// fails makes a usage error about the command reached so far.
func (l commandLine) fails(format string, args ...any) error {
	return usageErrorf(commandName(l.path), format, args...)
}

func commandName(path []*cli.Command) string {
	names := make([]string, len(path))
	for i, c := range path {
		names[i] = c.Name
	}
	return strings.Join(names, " ")
}

// arrange sorts args and checks what urfave/cli does not: unknown commands and
// flags, missing and surplus arguments. A "--" ends the flags.
func arrange(root *cli.Command, args []string) (commandLine, error) {
	if slices.Equal(args, []string{"--version"}) {
		args = []string{"version"}
	}
	line := commandLine{path: []*cli.Command{root}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var err error
		switch {
		case arg == "--":
			line.operands = append(line.operands, args...)
			args = nil
		case isFlag(arg):
			args, err = line.addFlag(arg, args)
		default:
			err = line.addWord(arg)
		}
		if err != nil {
			return line, err
		}
	}
	if line.help {
		return line, nil
	}
	return line, line.check()
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// addFlag adds a flag of the command or of the root and returns what is left
// of args after its value.
func (l *commandLine) addFlag(arg string, args []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	flag, list := l.find(name)
	if flag == nil {
		return nil, l.fails("unknown flag %s%s", arg, didYouMean(spelled(name), flagNames(l.path)))
	}
	if flag.Names()[0] == helpFlag {
		l.help = true
		return args, nil
	}
	if !takesValue(flag) {
		*list = append(*list, arg)
		return args, nil
	}
	if !hasValue {
		if len(args) == 0 || strings.HasPrefix(args[0], "--") {
			return nil, l.fails("flag %s needs a value", arg)
		}
		value, args = args[0], args[1:]
	}
	*list = append(*list, spelled(name)+"="+value)
	return args, nil
}

// find looks for a flag in the command, then in the root, and tells which
// part of the line it belongs to.
func (l *commandLine) find(name string) (cli.Flag, *[]string) {
	if f := findFlag(l.command().Flags, name); f != nil && len(l.path) > 1 {
		return f, &l.flags
	}
	return findFlag(l.path[0].Flags, name), &l.global
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

func takesValue(f cli.Flag) bool {
	doc, ok := f.(cli.DocGenerationFlag)
	return !ok || doc.TakesValue()
}

// spelled is a flag's name as it stands on a command line.
func spelled(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// flagNames lists the flags that may stand after path, as they are spelled.
func flagNames(path []*cli.Command) []string {
	var names []string
	for _, f := range slices.Concat(path[len(path)-1].Flags, path[0].Flags) {
		for _, name := range f.Names() {
			names = append(names, spelled(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addWord goes down to a subcommand, or adds an argument where there is none.
func (l *commandLine) addWord(word string) error {
	c := l.command()
	if len(c.Subcommands) == 0 {
		l.operands = append(l.operands, word)
		return nil
	}
	if len(l.path) == 1 && word == helpFlag {
		l.help = true
		return nil
	}
	sub := c.Command(word)
	if sub == nil {
		return l.fails("unknown command %q%s", word, didYouMean(word, commandNames(c)))
	}
	l.path = append(l.path, sub)
	return nil
}

func commandNames(c *cli.Command) []string {
	commands := c.VisibleCommands()
	names := make([]string, len(commands))
	for i, sub := range commands {
		names[i] = sub.Name
	}
	return names
}

// check compares the arguments with what the command's ArgsUsage says: words
// in order, each required unless in brackets, the last or first repeated if it
// ends in "...", one of several if they are joined by "|".
func (l *commandLine) check() error {
	c := l.command()
	if len(c.Subcommands) > 0 {
		return l.fails("no command given; want one of %s", strings.Join(commandNames(c), ", "))
	}
	usage := strings.Fields(c.ArgsUsage)
	required := slices.DeleteFunc(slices.Clone(usage), func(w string) bool { return strings.HasPrefix(w, "[") })
	if len(l.operands) < len(required) {
		return l.fails("argument %s is missing", required[len(l.operands)])
	}
	if len(l.operands) > len(usage) && !strings.Contains(c.ArgsUsage, "...") {
		return l.fails("surplus argument %q", l.operands[len(usage)])
	}
	for i, word := range l.operands[:min(len(usage), len(l.operands))] {
		if words := choices(usage[i]); words != nil && !slices.Contains(words, word) {
			return l.fails("unknown argument %q: want one of %s", word, strings.Join(words, ", "))
		}
	}
	return nil
}

// choices are the words that a part of an ArgsUsage allows, nil for any.
func choices(usage string) []string {
	words := strings.Split(strings.Trim(usage, "[]"), "|")
	if len(words) == 1 {
		return nil
	}
	return words
}
