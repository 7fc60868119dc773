package file

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-run/talaria/env"
)

// window takes a file piece by piece and keeps some of its lines as text.
type window struct {
	first, last int // numbers of the lines that are wanted

	line    int    // number of the current one
	begin   []byte // of it, as much as is shown
	size    int    // of it, in bytes
	end     byte   // its last byte
	scanned int64

	out      strings.Builder
	chars    int
	shown    int   // number of the last line in out
	cut      int64 // bytes of long lines that are left out
	crlf     int   // lines that end so
	replaced bool  // something was no UTF-8
	// unfinished tells that the file goes on.
	unfinished bool
}

func (w *window) take(data []byte) {
	w.scanned += int64(len(data))
	for {
		piece, rest, ended := bytes.Cut(data, []byte("\n"))
		if len(piece) > 0 {
			w.size += len(piece)
			w.end = piece[len(piece)-1]
		}
		if room := (maxLine+1)*utf8.UTFMax - len(w.begin); w.wanted() && room > 0 {
			w.begin = append(w.begin, piece[:min(len(piece), room)]...)
		}
		if !ended {
			return
		}
		w.endLine()
		data = rest
	}
}

func (w *window) wanted() bool { return w.first <= w.line && w.line <= w.last }

func (w *window) endLine() {
	if w.size > 0 && w.end == '\r' {
		w.crlf++
	}
	if w.wanted() {
		w.show()
	}
	w.line++
	w.begin, w.size, w.end = w.begin[:0], 0, 0
}

// show adds the current line, unless that would be too much in all.
func (w *window) show() {
	text, left := w.begin, 0
	if end := runeIndex(text, maxLine); end < len(text) {
		text, left = text[:end], w.size-end
	}
	text = bytes.TrimSuffix(text, []byte("\r"))
	shown := readable(string(text))
	w.replaced = w.replaced || shown != string(text)
	if left > 0 {
		shown += fmt.Sprintf(" [... %d more bytes]", left)
	}
	line := fmt.Sprintf("%d|%s\n", w.line, shown)
	w.chars += utf8.RuneCountInString(line)
	if w.chars > maxText {
		w.last = w.line - 1
		return
	}
	w.cut += int64(left)
	w.shown = w.line
	w.out.WriteString(line)
}

// runeIndex is the index of the n-th character.
func runeIndex(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// result is the lines, and in brackets what there is to know of them.
func (w *window) result() env.ToolResult {
	open := w.size > 0 && !w.unfinished
	ended := w.line - 1 // lines with an end
	if open {
		w.endLine()
	}
	total := w.line - 1
	switch {
	case total == 0:
		return env.ToolResult{Content: "[the file is empty]"}
	case w.first > total && w.unfinished:
		return failed(fmt.Sprintf("line %d is not among the first %d, and the file is too large to look further", w.first, total))
	case w.first > total:
		return failed(fmt.Sprintf("the file has %d lines: offset %d is beyond its end", total, w.first))
	}
	of := strconv.Itoa(total)
	if w.unfinished {
		of = "more than " + of
	}
	notes := []string{fmt.Sprintf("lines %d-%d of %s", w.first, w.shown, of)}
	if w.shown < total || w.unfinished {
		notes = append(notes, fmt.Sprintf("go on with offset %d", w.shown+1))
	}
	if ended > 0 && w.crlf >= ended {
		notes = append(notes, "lines end in CRLF")
	}
	if open && w.shown == total {
		notes = append(notes, "the last line has no line end")
	}
	if w.replaced {
		notes = append(notes, "what is not UTF-8 is shown as \uFFFD")
	}
	return env.ToolResult{Content: w.out.String() + "[" + strings.Join(notes, "; ") + "]", Omitted: w.cut}
}
