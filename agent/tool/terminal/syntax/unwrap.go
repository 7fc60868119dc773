package syntax

import (
	"path"
	"slices"
	"strings"
)

// wrapper is a program that starts another one, which its arguments name.
type wrapper struct {
	takes string // options whose value is the next word, as one letter each
	skips int    // words between its options and the program
}

func wrapperOf(name string) (wrapper, bool) {
	w, ok := map[string]wrapper{
		"builtin": {}, "busybox": {}, "command": {}, "doas": {takes: "uC"}, "env": {takes: "uCS"},
		"exec": {takes: "a"}, "flock": {takes: "wE", skips: 1}, "ionice": {takes: "cnp"}, "nice": {takes: "n"}, "nohup": {}, "setsid": {},
		"stdbuf": {takes: "ioe"}, "sudo": {takes: "ughpCrtTUDR"}, "time": {takes: "fo"},
		"timeout": {takes: "sk", skips: 1}, "toybox": {}, "xargs": {takes: "InPLdEsa"},
	}[name]
	return w, ok
}

// Name is the program's name, without the directory where programs are
// installed. A program of another place, such as ./reboot, keeps it.
func (w Word) Name() string {
	dir, base := path.Split(w.Text)
	dir = strings.TrimPrefix(dir, "/usr")
	if slices.Contains([]string{"/bin/", "/sbin/", "/local/bin/", "/local/sbin/"}, dir) {
		return base
	}
	return w.Text
}

// Unwrap takes off the programs that start another one, such as sudo and
// timeout, with their own arguments. What is left begins with the program that
// does the work, if there is one.
func Unwrap(words []Word) []Word {
	for len(words) > 0 {
		w, ok := wrapperOf(words[0].Name())
		if !ok {
			return words
		}
		asks := words[0].Name() == "command"
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
			option := words[0].Text
			if asks && strings.ContainsAny(option, "vV") {
				return nil
			}
			words = words[1:]
			if option == "--" {
				break
			}
			if !strings.HasPrefix(option, "--") && strings.ContainsAny(option[len(option)-1:], w.takes) && len(words) > 0 {
				words = words[1:]
			}
		}
		for len(words) > 0 && isAssignment(words[0].Text) {
			words = words[1:]
		}
		words = words[min(w.skips, len(words)):]
	}
	return words
}

func isAssignment(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && isName(name)
}
