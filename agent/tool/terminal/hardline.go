package terminal

import (
	"path"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/terminal/syntax"
)

// refusal says why a command must never run, "" if it may. It is the last of
// several defences, and there for harm that nobody wants: the sandbox holds what
// it does not know. What a shell would take literally is taken so here, so that
// text about such a command is not mistaken for it.
//
// Workdir is the directory where the command begins, if it is known.
func refusal(command, workdir string) string {
	if !path.IsAbs(workdir) {
		workdir = ""
	}
	scripts := maxScripts
	return (&guard{scripts: &scripts, dirs: map[scope]string{{}: workdir}}).check(command)
}

// maxScripts bounds how many scripts are looked for within a command.
const maxScripts = 64

// guard goes through the commands of a script.
type guard struct {
	scripts *int // that may still be looked for
	script  syntax.Script
	dirs    map[scope]string
	current scope
}

// scope is where a change of directory is seen: in a shell, and apart from that
// in each function, since it is not known when that is called.
type scope struct {
	shell    int
	function string
}

func (g *guard) check(text string) string {
	g.script = syntax.Parse(text)
	if forkBomb(g.script.Commands) {
		return "it is a fork bomb"
	}
	for _, c := range g.script.Commands {
		g.current = scope{c.Shell, c.In}
		if why := g.command(c); why != "" {
			return why
		}
	}
	return ""
}

// within checks a text that the current command runs as a script.
func (g *guard) within(text string) string {
	if text == "" || *g.scripts == 0 {
		return ""
	}
	*g.scripts--
	inner := guard{scripts: g.scripts, dirs: map[scope]string{{}: g.dir(g.current)}}
	return inner.check(text)
}

// dir is the directory of a scope, "" if it is not known.
func (g *guard) dir(s scope) string {
	dir, ok := g.dirs[s]
	switch {
	case ok:
		return dir
	case s.function != "":
		return g.dir(scope{shell: s.shell})
	case g.script.Parents[s.shell] == s.shell:
		return ""
	}
	dir = g.dir(scope{shell: g.script.Parents[s.shell]})
	g.dirs[s] = dir // as it is now: what the outer shell does later is not seen
	return dir
}

func (g *guard) command(c syntax.Command) string {
	for _, r := range c.Redirects {
		if why := overwrites(r.Target); why != "" {
			return why
		}
	}
	words := syntax.Unwrap(c.Words)
	if len(words) == 0 {
		return ""
	}
	if slices.ContainsFunc(c.Words[:len(c.Words)-len(words)], func(w syntax.Word) bool { return w.Name() == "xargs" }) {
		for field := range strings.FieldsSeq(c.Input) {
			words = append(slices.Clip(words), syntax.Word{Text: field, Pattern: field})
		}
	}
	return g.program(words, c.Input)
}

// program judges a program by its name and its arguments.
func (g *guard) program(words []syntax.Word, input string) string {
	name, args := words[0].Name(), words[1:]
	switch name {
	case "cd", "pushd", "popd":
		g.move(name, args)
	case "rm":
		return g.removes(args)
	case "find":
		return g.finds(args)
	case "sh", "bash", "dash", "ash", "zsh", "ksh":
		return g.within(shellScript(args, input))
	case "su":
		if i := slices.IndexFunc(args, func(w syntax.Word) bool { return w.Text == "-c" }); i >= 0 && i+1 < len(args) {
			return g.within(args[i+1].Text)
		}
	case "eval":
		return g.within(text(args))
	case "trap":
		if len(args) > 0 {
			return g.within(args[0].Text)
		}
	case "kill", "killall5":
		return kills(name, args)
	case "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "systemctl":
		return stops(name, args)
	}
	return wipes(name, args)
}

func text(words []syntax.Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

// move follows a change of directory.
func (g *guard) move(name string, args []syntax.Word) {
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && args[0].Text != "-" {
		args = args[1:]
	}
	dir := ""
	switch {
	case name == "cd" && len(args) == 0:
		dir = syntax.Home
	case name == "popd" || len(args) == 0 || args[0].Text == "-" || strings.Contains(args[0].Text, "$"):
	default:
		dir = join(g.dir(g.current), args[0].Text)
	}
	g.dirs[g.current] = dir
}

// join is a name as seen from a directory, "" if that is not known.
func join(dir, name string) string {
	switch {
	case path.IsAbs(name):
		return path.Clean(name)
	case dir == "":
		return ""
	}
	return path.Join(dir, name)
}

// removes judges the arguments of rm.
func (g *guard) removes(args []syntax.Word) string {
	recursive := false
	var operands []syntax.Word
	for i, w := range args {
		if w.Text == "--" {
			operands = append(operands, args[i+1:]...)
			break
		}
		switch {
		case strings.HasPrefix(w.Text, "--"):
			recursive = recursive || strings.HasPrefix("--recursive", w.Text)
		case len(w.Text) > 1 && w.Text[0] == '-':
			recursive = recursive || strings.ContainsAny(w.Text, "rR")
		default:
			operands = append(operands, w)
		}
	}
	if !recursive {
		return ""
	}
	for _, w := range operands {
		if what := g.protected(w); what != "" {
			return "it would delete " + what
		}
	}
	return ""
}

// protected names what a word stands for of what must not be deleted, "" if it
// is nothing of that.
func (g *guard) protected(w syntax.Word) string {
	name := join(g.dir(g.current), w.Pattern)
	if name == "" {
		return ""
	}
	for name != "/" && isEverything(path.Base(name)) {
		name = path.Dir(name)
	}
	if name == "/" {
		return "the whole file system"
	}
	if name == syntax.Home {
		return "the home directory"
	}
	for _, dir := range systemDirs() {
		if ok, err := path.Match(name, dir); ok && err == nil {
			return "the system's directory " + dir
		}
	}
	return ""
}

// isEverything tells whether a pattern stands for all that is in a directory, or
// for all of it that is hidden.
func isEverything(pattern string) bool {
	return slices.Contains([]string{"*", "**", ".*", ".[!.]*", ".[^.]*", "..?*", ".??*", "?*"}, pattern)
}

func systemDirs() []string {
	return []string{
		"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/sbin",
		"/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin", "/var",
	}
}

// finds judges the arguments of find: it deletes like rm -r unless it is told
// to take only some.
func (g *guard) finds(args []syntax.Word) string {
	begin := slices.IndexFunc(args, func(w syntax.Word) bool {
		return strings.HasPrefix(w.Text, "-") && !slices.Contains([]string{"-H", "-L", "-P"}, w.Text) || w.Text == "(" || w.Text == "!"
	})
	if begin < 0 {
		return ""
	}
	deletes, some := false, false
	for i, w := range args[begin:] {
		deletes = deletes || w.Text == "-delete"
		some = some || narrows(w.Text)
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w.Text) {
			continue
		}
		if run := syntax.Unwrap(execution(args[begin+i+1:])); len(run) > 0 {
			if why := g.program(run, ""); why != "" {
				return why
			}
			deletes = deletes || run[0].Name() == "rm"
		}
	}
	if !deletes || some {
		return ""
	}
	return g.removes(append([]syntax.Word{{Text: "-r"}}, args[:begin]...))
}

// execution is the command that find runs.
func execution(args []syntax.Word) []syntax.Word {
	end := slices.IndexFunc(args, func(w syntax.Word) bool { return w.Text == ";" || w.Text == "+" })
	if end < 0 {
		return args
	}
	return args[:end]
}

// narrows tells whether a test of find is one that few files pass.
func narrows(test string) bool {
	test = strings.TrimPrefix(test, "-")
	return slices.ContainsFunc([]string{
		"name", "iname", "path", "ipath", "wholename", "regex", "iregex", "lname", "user", "group", "uid", "gid", "nouser", "nogroup",
		"newer", "mtime", "mmin", "atime", "amin", "ctime", "cmin", "size", "empty", "perm", "inum", "samefile", "links",
	}, func(known string) bool { return strings.HasPrefix(test, known) })
}

// shellScript is the script that a shell is given, as an argument or as input.
func shellScript(args []syntax.Word, input string) string {
	given := false
	for i := 0; i < len(args); i++ {
		option := args[i].Text
		switch {
		case option == "-o" || option == "+o" || option == "-O" || option == "--rcfile" || option == "--init-file":
			i++
		case strings.HasPrefix(option, "--") || strings.HasPrefix(option, "+"):
		case strings.HasPrefix(option, "-"):
			given = given || strings.Contains(option, "c")
			if strings.HasSuffix(option, "o") {
				i++
			}
		case given:
			return option
		default:
			return "" // a file
		}
	}
	return input
}
