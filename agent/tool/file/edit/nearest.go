package edit

import "strings"

// nearest tells what in a text is most like a piece that was not found: the
// place of its first line.
func nearest(text, old string) *NotFoundError {
	const (
		most  = 5000 // lines of the text that are compared
		shown = 10
		least = 0.6
	)
	piece := linesIn(strings.TrimLeft(old, " \t\r\n"))
	if len(piece) == 0 {
		return new(NotFoundError)
	}
	lines := linesIn(text)
	best, at := least, -1
	for i, l := range lines[:min(len(lines), most)] {
		if like := likeness(l.trimmed, piece[0].trimmed); like > best {
			best, at = like, i
		}
	}
	if at < 0 {
		return new(NotFoundError)
	}
	e := &NotFoundError{Line: at + 1}
	for _, l := range lines[at:min(len(lines), at+min(len(piece), shown))] {
		e.Similar = append(e.Similar, text[l.start:l.end])
	}
	return e
}
