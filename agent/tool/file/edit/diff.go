package edit

import (
	"fmt"
	"slices"
	"strings"
)

// around is how many unchanged lines a diff shows before and after a change.
const around = 3

// change is some lines that are replaced by others.
type change struct {
	at       int // index of the first line
	old, new []string
}

// Diff renders edits of a text as a unified diff. The edits are sorted and do
// not overlap.
func Diff(name, text string, edits []Edit) string {
	lines := split(text)
	changes := changed(text, lines, edits)
	if len(changes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	shift := 0
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].at-changes[n-1].end() <= 2*around {
			n++
		}
		shift = hunk(&b, lines, changes[:n], shift)
		changes = changes[n:]
	}
	return b.String()
}

func (c change) end() int { return c.at + len(c.old) }

// split cuts a text into lines with their ends.
func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// changed makes changes of whole lines out of edits.
func changed(text string, lines []string, edits []Edit) []change {
	var changes []change
	first, start := 0, 0 // a line and where it begins
	for len(edits) > 0 {
		for first < len(lines) && start+len(lines[first]) <= edits[0].Start && strings.HasSuffix(lines[first], "\n") {
			start += len(lines[first])
			first++
		}
		last, end := first, start // the line after, and where it begins
		n := 0
		for n < len(edits) && (n == 0 || edits[n].Start < end) {
			for last < len(lines) && end <= edits[n].End {
				end += len(lines[last])
				last++
			}
			n++
		}
		inner := make([]Edit, n)
		for i, e := range edits[:n] {
			inner[i] = Edit{e.Start - start, e.End - start, e.New}
		}
		if c, ok := trim(change{first, lines[first:last], split(Apply(text[start:end], inner))}); ok {
			changes = join(changes, c)
		}
		edits = edits[n:]
		first, start = last, end
	}
	return changes
}

// join appends a change, to the last one where that ends where it begins.
func join(changes []change, c change) []change {
	if n := len(changes); n > 0 && changes[n-1].end() == c.at {
		last := &changes[n-1]
		last.old, last.new = slices.Concat(last.old, c.old), slices.Concat(last.new, c.new)
		return changes
	}
	return append(changes, c)
}

// trim takes off the lines at both ends that stay the same, and reports whether
// others are left.
func trim(c change) (change, bool) {
	for len(c.old) > 0 && len(c.new) > 0 && c.old[0] == c.new[0] {
		c.at, c.old, c.new = c.at+1, c.old[1:], c.new[1:]
	}
	for len(c.old) > 0 && len(c.new) > 0 && c.old[len(c.old)-1] == c.new[len(c.new)-1] {
		c.old, c.new = c.old[:len(c.old)-1], c.new[:len(c.new)-1]
	}
	return c, len(c.old)+len(c.new) > 0
}

// hunk writes changes that are near each other. Shift is how many lines those
// before have added; it returns the same for the next.
func hunk(b *strings.Builder, lines []string, changes []change, shift int) int {
	begin := max(0, changes[0].at-around)
	end := min(len(lines), changes[len(changes)-1].end()+around)
	added := 0
	for _, c := range changes {
		added += len(c.new) - len(c.old)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", extent(begin, end-begin), extent(begin+shift, end-begin+added))
	at := begin
	for _, c := range changes {
		write(b, " ", lines[at:c.at])
		write(b, "-", c.old)
		write(b, "+", c.new)
		at = c.end()
	}
	write(b, " ", lines[at:end])
	return shift + added
}

// extent is a number of lines from one on, counted from 1; of none, the one
// before.
func extent(begin, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", begin)
	}
	return fmt.Sprintf("%d,%d", begin+1, n)
}

func write(b *strings.Builder, sign string, lines []string) {
	for _, l := range lines {
		b.WriteString(sign + l)
		if !strings.HasSuffix(l, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
