package terminal

import (
	"path"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/terminal/syntax"
)

// signalled is what a shell adds to the number of the signal that ended a
// command.
const signalled = 128

// meaning says what an exit code means where that is not an error, or where the
// output does not tell; "" if there is nothing to say. The code of a command is
// that of the last program it starts: what it says is of that program, and
// nothing is said where another one may be meant.
func meaning(command string, code int) string {
	switch code {
	case signalled + 9:
		return "killed by signal 9, as when memory runs out"
	case signalled + 11:
		return "killed by signal 11, an invalid memory access"
	case signalled + 15:
		return "terminated by signal 15"
	}
	list := syntax.Parse(command).Commands
	if len(list) == 0 {
		return ""
	}
	last := list[len(list)-1]
	words := syntax.Unwrap(last.Words)
	if last.Closes || len(words) == 0 {
		return ""
	}
	name := path.Base(words[0].Text)
	if name == "git" {
		name = strings.TrimSpace("git " + subcommand(words[1:]))
	}
	return meanings(name)[code]
}

// subcommand is the first argument of git that is no option of its own.
func subcommand(words []syntax.Word) string {
	for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
		if option := words[0].Text; (option == "-C" || option == "-c") && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return words[0].Text
}

func meanings(name string) map[int]string {
	switch name {
	case "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "git grep":
		return map[int]string{1: name + " found no match, which is no error"}
	case "diff", "cmp", "colordiff", "git diff":
		return map[int]string{1: name + " found differences, which is no error"}
	case "find":
		return map[int]string{1: "find could not read some of the files; it has found the others"}
	case "test", "[", "[[":
		return map[int]string{1: "the condition is false, which is no error"}
	case "curl":
		return map[int]string{
			6: "curl could not resolve the host", 7: "curl could not connect",
			22: "the server answered with an error", 28: "curl ran out of time",
		}
	}
	return nil
}
