package syntax

import (
	"slices"
	"strings"
)

// keywords takes off what is no part of a simple command.
func (p *parser) keywords(words []Word) []Word {
	for len(words) > 0 && words[0].Plain {
		switch words[0].Text {
		case "if", "then", "else", "elif", "while", "until", "do", "!", "coproc":
		case "time":
			for len(words) > 1 && strings.HasPrefix(words[1].Text, "-") {
				words = words[1:]
			}
		case "{":
			p.enter(false)
		case "}":
			p.leave()
		case "fi", "done":
			p.closes()
		case "esac":
			p.cases = max(0, p.cases-1)
			p.closes()
		case "function":
			if len(words) > 1 {
				p.function = words[1].Text
				words = words[1:]
			}
		case "for", "select":
			p.bindLoop(words)
			return nil
		default:
			return words
		}
		words = words[1:]
	}
	return words
}

// isKeyword tells whether a command may follow the word.
func isKeyword(w Word) bool {
	return w.Plain && slices.Contains([]string{
		"if", "then", "else", "elif", "while", "until", "do", "!", "time", "coproc", "{",
	}, w.Text)
}

// bind remembers a variable that the text sets. What gets too long is forgotten.
func (p *parser) bind(name, value string) {
	if len(value) > maxValue {
		delete(p.vars, name)
		return
	}
	p.vars[name] = value
}

// bindLoop gives the variable of a loop all its values at once.
func (p *parser) bindLoop(words []Word) {
	if len(words) > 3 && words[2].Text == "in" {
		p.bind(words[1].Text, joined(words[3:]))
	}
}

func (p *parser) bindExports(words []Word) {
	if len(words) == 0 || !slices.Contains([]string{"export", "declare", "typeset", "local", "readonly"}, words[0].Text) {
		return
	}
	for _, w := range words[1:] {
		if name, value, ok := strings.Cut(w.Text, "="); ok && isName(name) {
			p.bind(name, value)
		}
	}
}

func joined(words []Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

// printed is what a command prints into a pipe, "" if that is not known.
func printed(c Command) string {
	words := Unwrap(c.Words)
	if len(words) == 0 {
		return ""
	}
	name, args := words[0].Name(), words[1:]
	switch {
	case name == "cat" && len(args) == 0:
		return c.Input
	case name == "echo":
		for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && strings.Trim(args[0].Text[1:], "neE") == "" {
			args = args[1:]
		}
		return escapes(joined(args))
	case name == "printf":
		return escapes(joined(args))
	}
	return ""
}

func escapes(s string) string { return strings.ReplaceAll(s, `\n`, "\n") }

// isName tells whether a text can be the name of a variable.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}
