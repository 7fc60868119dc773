package table

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Wrap breaks s into lines of at most width columns, at blanks where there are
// any. Line ends of s stay; what begins a line, as the indentation of code,
// stays too. s should be [Safe].
func Wrap(s string, width int) []string {
	width = max(width, 1)
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, wrapLine(strings.ReplaceAll(line, "\t", "    "), width)...)
	}
	return lines
}

func wrapLine(line string, width int) []string {
	var lines []string
	for text.StringWidth(line) > width {
		var head string
		head, line = breakAt(line, width)
		lines = append(lines, head)
		if line == "" {
			return lines
		}
	}
	return append(lines, line)
}

// breakAt cuts a line that is wider than width: at the last blank between two
// words that fits, else where the width ends.
func breakAt(line string, width int) (head, tail string) {
	fits, blank, inText := 0, 0, false
	columns := 0
	for i, r := range line {
		columns += text.StringWidth(string(r))
		if r == ' ' && inText && columns <= width+1 {
			blank = i
		}
		if columns > width {
			break
		}
		fits = i + len(string(r))
		inText = inText || r != ' '
	}
	if blank > 0 {
		return strings.TrimRight(line[:blank], " "), strings.TrimLeft(line[blank:], " ")
	}
	if fits == 0 { // a wide character and a width of one
		fits = len(string([]rune(line)[:1]))
	}
	return line[:fits], line[fits:]
}
