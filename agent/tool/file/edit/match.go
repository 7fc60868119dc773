package edit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// exact finds a piece as it stands. Places that overlap are different ones,
// except where there are very many.
func exact(text, old string) []place {
	const many = 1000
	var places []place
	for at := 0; ; {
		i := strings.Index(text[at:], old)
		if i < 0 || old == "" {
			return places
		}
		places = append(places, place{at + i, at + i + len(old)})
		if at += i + 1; len(places) > many {
			at += len(old) - 1
		}
	}
}

// escaped finds a piece whose escapes stand for what they mean.
func escaped(text, old string) []place {
	plain := unescape(old)
	if plain == old {
		return nil
	}
	return exact(text, plain)
}

func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, `'`).Replace(s)
}

// trimmed finds a piece without the blanks around it, where blanks or the ends
// of the text are around it.
func trimmed(text, old string) []place {
	inner := strings.TrimSpace(old)
	if inner == old {
		return nil
	}
	var places []place
	for _, p := range exact(text, inner) {
		before, _ := utf8.DecodeLastRuneInString(text[:p.start])
		after, _ := utf8.DecodeRuneInString(text[p.end:])
		if (p.start == 0 || unicode.IsSpace(before)) && (p.end == len(text) || unicode.IsSpace(after)) {
			places = append(places, p)
		}
	}
	return places
}

// normalised is a text in which some characters are changed or left out, and
// where each of its bytes comes from.
type normalised struct {
	text     []byte
	from, to []int
}

// add appends what stands for the bytes from from to to.
func (n *normalised) add(s string, from, to int) {
	for i := range len(s) {
		n.text = append(n.text, s[i])
		n.from = append(n.from, from)
		n.to = append(n.to, to)
	}
}

// normal finds a piece that is the same once both are normalised.
func normal(normalise func(string) normalised) func(text, old string) []place {
	const most = 4 << 20 // bytes: it takes many times that of memory
	return func(text, old string) []place {
		if len(text) > most {
			return nil
		}
		in, piece := normalise(text), normalise(old)
		var places []place
		for _, p := range exact(string(in.text), string(piece.text)) {
			places = append(places, place{in.from[p.start], in.to[p.end-1]})
		}
		return places
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// lineTrimmed leaves out blanks at the ends of lines.
func lineTrimmed(s string) normalised { return blanks(s, false) }

// oneBlank also makes one space of each run of blanks.
func oneBlank(s string) normalised { return blanks(s, true) }

func blanks(s string, one bool) normalised {
	var n normalised
	for i := 0; i < len(s); i++ {
		if !isBlank(s[i]) {
			n.add(s[i:i+1], i, i+1)
			continue
		}
		end := i
		for end < len(s) && isBlank(s[end]) {
			end++
		}
		switch {
		case end == len(s) || s[end] == '\n':
		case one:
			n.add(" ", i, end)
		default:
			for ; i < end; i++ {
				n.add(s[i:i+1], i, i+1)
			}
		}
		i = end - 1
	}
	return n
}

// plain writes quotes, dashes and spaces as a keyboard has them.
func plain(s string) normalised {
	var n normalised
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		n.add(plainRune(r, s[i:i+size]), i, i+size)
		i += size
	}
	return n
}

func plainRune(r rune, s string) string {
	switch r {
	case '\u2018', '\u2019', '\u201A', '\u201B', '\u2032':
		return "'"
	case '\u201C', '\u201D', '\u201E', '\u201F', '\u2033':
		return `"`
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212':
		return "-"
	case '\u2026':
		return "..."
	case '\u200B', '\u2060', '\uFEFF':
		return ""
	}
	if r > unicode.MaxASCII && unicode.Is(unicode.Zs, r) {
		return " "
	}
	return s
}

// line is one line of a text, without what ends it.
type line struct {
	start, end int
	next       int // where the next one begins
	trimmed    string
}

func linesIn(text string) []line {
	var lines []line
	for at := 0; at < len(text); {
		n := strings.IndexByte(text[at:], '\n')
		end, next := at+n, at+n+1
		if n < 0 {
			end, next = len(text), len(text)
		}
		body := strings.TrimSuffix(text[at:end], "\r")
		lines = append(lines, line{at, at + len(body), next, strings.TrimSpace(body)})
		at = next
	}
	return lines
}

// window is as many lines of a text as a piece has.
type window struct{ of, piece []line }

// windows finds whole lines of a text for which ok holds.
func windows(text, old string, least int, ok func(window) bool) []place {
	lines, piece := linesIn(text), linesIn(old)
	const most = 20_000_000 // comparisons of lines: beyond, nobody would wait
	if len(piece) < least || len(lines)*len(piece) > most {
		return nil
	}
	var places []place
	for i := range max(0, len(lines)-len(piece)+1) {
		at := lines[i : i+len(piece)]
		if !ok(window{at, piece}) {
			continue
		}
		last := at[len(at)-1]
		p := place{at[0].start, last.end}
		if strings.HasSuffix(old, "\n") {
			p.end = last.next
		}
		places = append(places, p)
	}
	return places
}

// indented finds whole lines that may be indented otherwise.
func indented(text, old string) []place {
	if strings.TrimSpace(old) == "" {
		return nil
	}
	return windows(text, old, 1, func(w window) bool { return w.equal() == len(w.of) })
}

// equal counts the lines that are the same but for blanks around them. It stops
// at what is more than half of them different.
func (w window) equal() int {
	n := 0
	for i := range w.of {
		if w.of[i].trimmed == w.piece[i].trimmed {
			n++
		}
		if 2*(i+1-n) > len(w.of) {
			break
		}
	}
	return n
}

// How much lines have to be alike, from 0 to 1.
const (
	anchoredLeast = 0.7
	similarLeast  = 0.85
)

// anchored finds a piece of at least three lines by its first and its last one;
// those between are alike.
func anchored(text, old string) []place {
	return windows(text, old, 3, func(w window) bool {
		last := len(w.of) - 1
		return w.of[0].trimmed == w.piece[0].trimmed && w.of[last].trimmed == w.piece[last].trimmed &&
			w.of[0].trimmed != "" && w.of[last].trimmed != "" && (window{w.of[1:last], w.piece[1:last]}).alike() >= anchoredLeast
	})
}

// similar finds a piece of at least three lines of which at least half are the
// same and all are alike on the whole.
func similar(text, old string) []place {
	return windows(text, old, 3, func(w window) bool {
		return 2*w.equal() >= len(w.of) && w.alike() >= similarLeast
	})
}

// alike is how much the lines of a window are like those of the piece.
func (w window) alike() float64 {
	sum := 0.0
	for i := range w.of {
		sum += likeness(w.of[i].trimmed, w.piece[i].trimmed)
	}
	return sum / float64(len(w.of))
}

// likeness is 1 for equal lines and 0 for those that have nothing in common.
func likeness(a, b string) float64 {
	const long = 400 // characters: lines beyond are equal or not
	switch most := max(len(a), len(b)); {
	case a == b:
		return 1
	case most > long:
		return 0
	}
	most := max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
	return 1 - float64(levenshtein.ComputeDistance(a, b))/float64(most)
}
