package supervisor

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Names in Setup.State.
const (
	keptName = "kept" // what the next command takes over: shell text
	leftName = "left" // what the last one leaves: shell text, NUL, directory, NUL
)

// shell is the program that runs scripts, and what it can do.
type shell struct {
	path   string
	bash   bool
	limits string // what it is to do before anything else
}

// newShell bounds the memory of every process of a script, unless memory is 0,
// and makes them the first to go when memory runs out. The shell does so itself:
// if the supervisor did it to the shell, it could come too late.
func newShell(path string, memory int64) shell {
	limits := "{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null; "
	if memory > 0 {
		limits += "ulimit -d " + strconv.FormatInt(memory>>10, 10) + "; "
	}
	return shell{path: path, bash: filepath.Base(path) == "bash", limits: limits}
}

// argv runs a text. The name after it is what the shell calls itself when it
// complains.
func (s shell) argv(text string) []string {
	if s.bash {
		return []string{s.path, "--noprofile", "--norc", "-c", text, "bash"}
	}
	return []string{s.path, "-c", text, "sh"}
}

// fresh wraps a script that neither takes over a state nor leaves one.
func (s shell) fresh(script string) string { return s.limits + "eval " + s.quoteScript(script) }

// keeping wraps a script so that it begins in dir, takes over the state from the
// directory state and leaves its own there. Only builtins are used: a process
// costs more than all the rest.
//
// The state is left when the shell ends by itself, by exit, or on SIGTERM. It
// is left once more after the script, because the script may have put a trap
// of its own on EXIT. That has the script's status in $1, so that no variable
// of ours gets into the state.
func (s shell) keeping(script, dir, state string, env map[string]string) string {
	leave := s.leave(filepath.Join(state, leftName))
	var parts []string
	if s.bash {
		parts = append(parts, "shopt -s expand_aliases")
	}
	// The variables of the last command include its directory.
	parts = append(parts, ". "+sandbox.Quote(filepath.Join(state, keptName)), "export PWD="+sandbox.Quote(dir))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if isVariable(name) {
			parts = append(parts, "export "+name+"="+sandbox.Quote(env[name]))
		}
	}
	parts = append(parts,
		"trap "+sandbox.Quote(leave)+" EXIT",
		"trap 'exit 143' TERM",
		"eval "+s.quoteScript(script),
		`set -- "$?"`,
		leave,
		`exit "$1"`,
	)
	return s.limits + strings.Join(parts, "; ")
}

// quoteScript quotes a script without ends of line where the shell can, so that
// it counts the script's lines from one when it complains.
func (s shell) quoteScript(script string) string {
	if !s.bash {
		return sandbox.Quote(script)
	}
	return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(script) + "'"
}

// leave is the text that writes the state to a file. The file counts only when
// its end is there.
func (s shell) leave(file string) string {
	to := `"\0%s\0" "$PWD"; } 2>/dev/null >|` + sandbox.Quote(file)
	if !s.bash {
		return `{ export -p; printf ` + to
	}
	return `{ builtin export -p; builtin declare -f; builtin declare -Fx; builtin alias -p; builtin printf ` + to
}

// parseState splits what a shell left: text that restores its variables and
// functions, and its directory.
func parseState(left []byte) (text []byte, dir string, ok bool) {
	left, ended := bytes.CutSuffix(left, []byte{0})
	text, rest, found := bytes.Cut(left, []byte{0})
	if !ended || !found || bytes.IndexByte(rest, 0) >= 0 || !filepath.IsAbs(string(rest)) {
		return nil, "", false
	}
	return text, string(rest), true
}

// isVariable tells whether a shell can have a variable of this name.
func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
