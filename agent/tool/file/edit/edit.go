// Package edit replaces a piece of a text that is quoted from memory: [Replace]
// finds the piece, also where blanks, indentation or typography differ a little,
// and tells what it would change; [Apply] and [Diff] do and show it. All of it is
// a function of its arguments.
package edit

import (
	"fmt"
	"slices"
	"strings"
)

// Edit replaces the bytes of a text from Start to End.
type Edit struct {
	Start, End int
	New        string
}

// Apply makes edits, which are sorted and do not overlap.
func Apply(text string, edits []Edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.Start] + e.New)
		at = e.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// How a piece was found, from what is sure to what is less so.
const (
	Exact       = "exact"
	LineTrimmed = "line-trimmed" // but for blanks at the ends of lines
	Whitespace  = "whitespace"   // but for the number and kind of blanks
	Indentation = "indentation"  // whole lines, but for what they are indented by
	Escape      = "escape"       // with \n, \t and quotes unescaped
	Boundary    = "boundary"     // without blanks and empty lines around it
	Unicode     = "unicode"      // but for quotes, dashes and spaces of other kinds
	BlockAnchor = "block-anchor" // by its first and last line
	Context     = "context"      // lines that are mostly the same
)

// matcher is one way to find a piece.
type matcher struct {
	name string
	// find returns every place, in order. They may overlap.
	find func(text, old string) []place
	// mend changes what is put in place of old in the same way as old was
	// changed to be found; nil: it is not changed.
	mend func(string) string
	// similar ones may take another piece for the one that is meant: they never
	// replace more than one.
	similar bool
	// lines tells that the lines of a place are those of old, indented anew.
	lines bool
}

// place is where a piece was found.
type place struct{ start, end int }

func matchers() []matcher {
	return []matcher{
		{name: Exact, find: exact},
		{name: LineTrimmed, find: normal(lineTrimmed), lines: true},
		{name: Whitespace, find: normal(oneBlank), lines: true},
		{name: Indentation, find: indented, lines: true},
		{name: Escape, find: escaped, mend: unescape},
		{name: Boundary, find: trimmed, mend: strings.TrimSpace},
		{name: Unicode, find: normal(plain), lines: true},
		{name: BlockAnchor, find: anchored, similar: true, lines: true},
		{name: Context, find: similar, similar: true, lines: true},
	}
}

// AmbiguousError tells that a piece is in several places.
type AmbiguousError struct {
	Places int
	Lines  []int // where they begin
}

func (e *AmbiguousError) Error() string {
	const most = 5
	shown := e.Lines[:min(len(e.Lines), most)]
	list := strings.Trim(fmt.Sprint(shown), "[]")
	if len(e.Lines) > most {
		list += " ..."
	}
	return fmt.Sprintf("the text is in %d places, at lines %s", e.Places, strings.ReplaceAll(list, " ", ", "))
}

// NotFoundError tells that a piece is nowhere.
type NotFoundError struct {
	// Line is where something begins that is most like it, and Similar what
	// that is, line by line; 0 and nil if nothing is like it.
	Line    int
	Similar []string
}

func (e *NotFoundError) Error() string { return "the text is not there" }

// Replace finds old in text and returns the edits that replace it by replacement,
// and the name of the way in which it was found. It has to be there once; with
// all, every place of it is replaced. The ways are tried in order, and the first
// that finds something decides. Old must not be empty.
//
// Where all lines of text end in CRLF, those of old and replacement are taken to
// do so too. What was found with other indentation is replaced with that. The
// error is an [AmbiguousError] or a [NotFoundError].
func Replace(text, old, replacement string, all bool) (edits []Edit, how string, err error) {
	if endsInCRLF(text) {
		old, replacement = toCRLF(old), toCRLF(replacement)
	}
	for _, m := range matchers() {
		places := m.find(text, old)
		if len(places) == 0 {
			continue
		}
		if len(places) > 1 && (!all || m.similar) {
			return nil, "", &AmbiguousError{Places: len(places), Lines: linesOf(text, places)}
		}
		for _, at := range apart(places) {
			edits = append(edits, Edit{at.start, at.end, m.replacement(text, old, replacement, at)})
		}
		return edits, m.name, nil
	}
	return nil, "", nearest(text, old)
}

// replacement is what goes into a place.
func (m matcher) replacement(text, old, replacement string, at place) string {
	switch {
	case m.mend != nil:
		return m.mend(replacement)
	case m.lines:
		return reindent(replacement, old, text, at)
	}
	return replacement
}

// apart drops places that overlap the one before.
func apart(places []place) []place {
	kept := places[:1]
	for _, p := range places[1:] {
		if p.start >= kept[len(kept)-1].end {
			kept = append(kept, p)
		}
	}
	return kept
}

func linesOf(text string, places []place) []int {
	lines := make([]int, len(places))
	for i, p := range places {
		lines[i] = 1 + strings.Count(text[:p.start], "\n")
	}
	return slices.Compact(lines)
}

func endsInCRLF(text string) bool {
	n := strings.Count(text, "\n")
	return n > 0 && strings.Count(text, "\r\n") == n
}

func toCRLF(s string) string {
	if strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(s, "\n", "\r\n")
}
