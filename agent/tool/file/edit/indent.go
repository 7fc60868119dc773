package edit

import "strings"

// reindent gives the lines of a replacement the indentation that the text has
// where old was found: what old wrote otherwise, the replacement is likely to
// have written otherwise too.
func reindent(replacement, old, text string, at place) string {
	found, meant := strings.Split(text[at.start:at.end], "\n"), strings.Split(old, "\n")
	if len(found) != len(meant) {
		return replacement
	}
	inLine := at.start > 0 && text[at.start-1] != '\n'
	indents, changed := map[string]string{}, false
	for i := range meant {
		from, to := indent(meant[i]), indent(found[i])
		if i == 0 && inLine || strings.TrimSpace(meant[i]) == "" {
			continue
		}
		if _, known := indents[from]; !known {
			indents[from] = to
		}
		changed = changed || from != to
	}
	if !changed {
		return replacement
	}
	lines := strings.Split(replacement, "\n")
	for i, l := range lines {
		if i == 0 && inLine || strings.TrimSpace(l) == "" {
			continue
		}
		from := indent(l)
		lines[i] = newIndent(from, indents) + l[len(from):]
	}
	return strings.Join(lines, "\n")
}

// newIndent is an indentation with its longest known beginning exchanged.
func newIndent(from string, indents map[string]string) string {
	for n := len(from); n >= 0; n-- {
		if to, known := indents[from[:n]]; known {
			return to + from[n:]
		}
	}
	return from
}

func indent(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }
