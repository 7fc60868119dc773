package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// shellCase is a dialogue with one sandbox's shell.
type shellCase struct {
	name  string
	bash  bool // it needs more than a plain sh
	steps []step
}

// runShell has each dialogue with the sandbox's own shell, and once more with
// a plain sh.
func runShell(t *testing.T, b sandbox.Backend) {
	t.Helper()
	bash := hasBash(t, start(t, b, sandbox.Spec{}))
	for _, c := range shellCases() {
		t.Run(c.name, func(t *testing.T) {
			if c.bash && !bash {
				t.Skip("the sandbox has no bash")
			}
			box := start(t, b, sandbox.Spec{})
			for _, step := range c.steps {
				step.check(t, box)
			}
		})
		if !c.bash {
			t.Run(c.name+" in sh", func(t *testing.T) {
				box := start(t, b, sandbox.Spec{Shell: "/bin/sh"})
				for _, step := range c.steps {
					step.check(t, box)
				}
			})
		}
	}
}

func shellCases() []shellCase {
	return append(stateCases(), append(endCases(), append(streamCases(), bashCases()...)...)...)
}

// run is a step with its exit code.
func run(text string, exit int, out string) step {
	return step{Command: sandbox.Command{Script: text}, exit: exit, out: out}
}

// stateCases are about what is kept from one command to the next.
func stateCases() []shellCase {
	odd := "a\nb 'c' \"d\" $e `f` \\ é"
	return []shellCase{
		{name: "directory", steps: []step{script("mkdir -p d && cd d", ""), script(`basename "$PWD"`, "d\n")}},
		{name: "directory with an odd name", steps: []step{
			{Command: sandbox.Command{Script: `mkdir "$ODD" && cd "$ODD"`, Env: map[string]string{"ODD": odd}}},
			script(`basename "$PWD"`, odd+"\n"),
			script(`cd ..; ls -q | wc -l | tr -d ' '`, "1\n"),
		}},
		{name: "exported variables", steps: []step{
			script("export A=1; B=2", ""), script(`echo "<$A> <$B>"`, "<1> <>\n"),
			script("unset A", ""), script(`echo "<$A>"`, "<>\n"),
		}},
		{name: "given variables can be unset", steps: []step{script("unset HOME", ""), script(`echo "<${HOME-none}>"`, "<none>\n")}},
		{name: "odd values", steps: []step{
			{Command: sandbox.Command{Script: "true", Env: map[string]string{"ODD": odd}}},
			script(`printf %s "$ODD"`, odd),
			script(`printf %s "$ODD"`, odd),
		}},
		{name: "environment of one command is kept like exports", steps: []step{
			{Command: sandbox.Command{Script: "echo $X", Env: map[string]string{"X": "1"}}, out: "1\n"},
			{Command: sandbox.Command{Script: "echo $X", Env: map[string]string{"X": "2"}}, out: "2\n"},
			script("echo $X", "2\n"),
		}},
		{name: "shell options do not stay", steps: []step{
			script("set -Cfu; IFS=x; export Q=1", ""), script(`echo $Q $NOT_SET`, "1\n"), script("echo $Q > f; echo 2 > f; cat f", "2\n"),
		}},
		{name: "fresh", steps: []step{
			script("mkdir e && cd e && export A=1", ""),
			{Command: sandbox.Command{Script: `echo "<$A>"; basename "$PWD"; export A=2; cd /`, Fresh: true}, out: "<>\nworkspace\n"},
			script(`echo "$A"; basename "$PWD"`, "1\ne\n"),
			{Command: sandbox.Command{Script: `basename "$PWD"; echo $X`, Fresh: true, Cwd: "e", Env: map[string]string{"X": "y"}}, out: "e\ny\n"},
		}},
		{name: "given directory", steps: []step{
			script("mkdir -p g/h", ""),
			{Command: sandbox.Command{Script: `basename "$PWD"`, Cwd: "g"}, out: "g\n"},
			{Command: sandbox.Command{Script: `basename "$PWD"`, Cwd: "h"}, out: "h\n"},
			{Command: sandbox.Command{Script: "true", Cwd: "nowhere"}, exit: sandbox.ExitUnstartable, has: "no such file or directory"},
			script(`basename "$PWD"`, "h\n"),
		}},
		{name: "directory that vanishes", steps: []step{
			script("mkdir v && cd v && rmdir ../v", ""),
			{Command: sandbox.Command{Script: "true"}, exit: sandbox.ExitUnstartable, has: "no such file or directory"},
			script(`basename "$PWD"`, "workspace\n"),
		}},
		{name: "arguments as they stand", steps: []step{
			{Command: sandbox.Command{Argv: []string{"printf", "<%s>", "a b", "$HOME", "it's", "", "*"}}, out: "<a b><$HOME><it's><><*>"},
		}},
	}
}

// endCases are about how commands end, and that the next one does not suffer.
func endCases() []shellCase {
	short := func(text string) sandbox.Command {
		return sandbox.Command{Script: text, Timeout: 2 * time.Second}
	}
	return []shellCase{
		{name: "exit", steps: []step{run("export A=1; cd /; exit 3", 3, ""), script(`echo "$A $PWD"`, "1 /\n")}},
		{name: "exit within a function", steps: []step{run("export A=1; f() { exit 4; }; f; echo no", 4, ""), script("echo $A", "1\n")}},
		{name: "set -e", steps: []step{run("export A=1; set -e; false; echo no", 1, ""), script("false; echo $A", "1\n")}},
		{name: "last status", steps: []step{run("true; false", 1, ""), run("false; true", 0, ""), run("(exit 77)", 77, "")}},
		{name: "unclosed quote", steps: []step{
			{Command: sandbox.Command{Script: `echo "never closed`}, exit: 2, has: "eval: "}, script("echo fine", "fine\n"),
		}},
		{name: "syntax error", steps: []step{{Command: sandbox.Command{Script: "echo one\nif then"}, exit: 2, has: "yntax error"}, script("echo fine", "fine\n")}},
		{name: "unknown command", steps: []step{{Command: sandbox.Command{Script: "true\nno-such-command-x"}, exit: 127, has: "not found"}}},
		{name: "kill -9 of the shell", steps: []step{
			script("export A=1", ""),
			{Command: sandbox.Command{Script: "export A=2; kill -9 $$"}, exit: 137, rolledBack: true},
			script("echo $A", "1\n"),
		}},
		{name: "SIGTERM to the shell", steps: []step{run("export A=1; kill $$; sleep 5", 143, ""), script("echo $A", "1\n")}},
		{name: "shell replaced", steps: []step{
			{Command: sandbox.Command{Script: "export A=1; exec echo replaced"}, out: "replaced\n", rolledBack: true},
			script(`echo "<$A>"`, "<>\n"),
		}},
		{name: "trap on exit", steps: []step{
			script("export A=1; trap 'echo bye' EXIT", "bye\n"), script("echo $A", "1\n"),
		}},
		{name: "timeout", steps: []step{
			{Command: short("cd /; export A=1; echo begun; sleep 60; echo no"), exit: sandbox.ExitTimeout, has: "begun\n", timedOut: true},
			script(`echo "$A $PWD"`, "1 /\n"),
		}},
		{name: "timeout of one who does not listen", steps: []step{
			script("export A=1", ""),
			{Command: short("trap '' TERM; export A=2; echo begun; while :; do sleep 1; done"), exit: sandbox.ExitTimeout, out: "begun\n", timedOut: true, rolledBack: true},
			script("echo $A", "1\n"),
		}},
		{name: "timeout of a fresh one", steps: []step{
			{Command: sandbox.Command{Script: "sleep 60", Timeout: time.Millisecond, Fresh: true}, exit: sandbox.ExitTimeout, timedOut: true},
		}},
	}
}

// streamCases are about input and output.
func streamCases() []shellCase {
	long := "x=" + strings.Repeat("y", 300<<10) + "; echo ${#x}"
	return []shellCase{
		{name: "cat without input", steps: []step{script("cat; echo done", "done\n")}},
		{name: "read without input", steps: []step{run("read line", 1, "")}},
		{name: "input", steps: []step{
			{Command: sandbox.Command{Script: "read a; echo \"<$a>\"; cat", Stdin: []byte("one\ntwo\nthree")}, out: "<one>\ntwo\nthree"},
			{Command: sandbox.Command{Script: "wc -c | tr -d ' '", Stdin: make([]byte, 1<<20)}, out: "1048576\n"},
			{Command: sandbox.Command{Script: "cat /dev/stdin | cat", Stdin: []byte("by name")}, out: "by name"},
			{Command: sandbox.Command{Script: "echo not read", Stdin: make([]byte, 1<<20)}, out: "not read\n"},
			script("cat", ""),
		}},
		{name: "both streams in order", steps: []step{script("echo a; echo b >&2; echo c", "a\nb\nc\n")}},
		{name: "no line end", steps: []step{script("printf x", "x"), script("printf y", "y")}},
		{name: "binary", steps: []step{script(`printf 'a\000b\377\001\n'`, "a\x00b\xff\x01\n")}},
		{name: "output closed or redirected", steps: []step{
			script("export A=1; exec >/dev/null; echo lost", ""), script("echo $A; exec >&- 2>&-; echo lost; true", "1\n"), script("echo $A", "1\n"),
		}},
		{name: "background child holds the pipe", steps: []step{
			{Command: sandbox.Command{Script: "sleep 300 & echo started", Timeout: 30 * time.Second}, out: "started\n"},
			script("echo next", "next\n"),
		}},
		{name: "background child writes on", steps: []step{
			script("(until test -e go; do sleep 0.01; done; echo late; echo late >&2; echo written > file) & echo started", "started\n"),
			script("touch go; until test -s file; do sleep 0.01; done; cat file", "written\n"),
		}},
		{name: "here document", steps: []step{script("cat <<'EOF'\n$a `b`\nEOF\necho done", "$a `b`\ndone\n")}},
		{name: "long script", steps: []step{script(long, "307200\n"), {Command: sandbox.Command{Script: long, Fresh: true}, out: "307200\n"}}},
		{name: "long output ends in time", steps: []step{
			{Command: sandbox.Command{Script: "echo first; yes | head -c 100000; echo last", MaxOutput: 1000}, has: "last\n"},
		}},
	}
}

// bashCases are about what only bash can do.
func bashCases() []shellCase {
	return []shellCase{
		{name: "functions", bash: true, steps: []step{
			script("greet() { echo \"hello $1, $WHO\"; }; export WHO=you", ""), script("greet there", "hello there, you\n"),
			script("unset -f greet", ""), run("greet 2>/dev/null", 127, ""),
		}},
		{name: "exported functions", bash: true, steps: []step{
			script("f() { echo inner; }; export -f f", ""), script("bash -c f", "inner\n"), script("bash -c f", "inner\n"),
		}},
		{name: "aliases", bash: true, steps: []step{script("alias hi='echo hi there'", ""), script("hi", "hi there\n")}},
		{name: "builtins in disguise", bash: true, steps: []step{
			script("export A=1; printf() { echo fooled; }; alias export=false declare=false", ""), script("echo $A", "1\n"),
		}},
		{name: "readonly", bash: true, steps: []step{script("declare -rx R=1", ""), script("echo $R", "1\n"), script("echo $R", "1\n")}},
		{name: "lines are counted right", bash: true, steps: []step{
			run("true\nno-such-command-x", 127, "bash: line 2: no-such-command-x: command not found\n"),
		}},
		{name: "the directory before", bash: true, steps: []step{script("mkdir p; cd p; cd ..", ""), script(`cd - >/dev/null; basename "$PWD"`, "p\n")}},
		{name: "trap on exit and exit", bash: true, steps: []step{
			{Command: sandbox.Command{Script: "export A=1; trap 'echo bye' EXIT; exit 5"}, exit: 5, out: "bye\n", rolledBack: true},
			script(`echo "<$A>"`, "<>\n"),
		}},
	}
}
