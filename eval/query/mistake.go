package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// StatementError is a mistake in the SQL that was given: it was found before
// the statement ran.
type StatementError struct {
	Text string // one sentence
	// Line and Column are where in the text that was given, both from 1, columns
	// in characters; 0: the whole statement.
	Line, Column int
}

func (e *StatementError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("%s (line %d, column %d)", e.Text, e.Line, e.Column)
}

// statement is one statement of a text, without its semicolon.
type statement struct {
	sql          string
	line, column int // of its beginning in the text, from 0
}

// statements are those of a text, each with its place. The last may go without
// its semicolon.
func statements(text string) []statement {
	parts, rest := Split(text)
	if rest != "" {
		parts = append(parts, rest)
	}
	all := make([]statement, len(parts))
	from := 0
	for i, sql := range parts {
		from += strings.Index(text[from:], sql)
		lead := leading(sql) // DuckDB counts places from where a statement proper begins
		from, sql = from+lead, sql[lead:]
		before := text[:from]
		all[i] = statement{
			sql:    sql,
			line:   strings.Count(before, "\n"),
			column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]),
		}
		from += len(sql)
	}
	return all
}

// leading is the length of the blanks and comments that a statement begins with.
func leading(sql string) int {
	for i := 0; i < len(sql); {
		n, counts := token(sql[i:])
		if counts {
			return i
		}
		i += n
	}
	return 0
}

// mistake is DuckDB's message about a statement, with the place that the
// picture below the message points at.
func (s statement) mistake(message string) *StatementError {
	text, picture, found := strings.Cut(message, pictureStart)
	e := &StatementError{Text: oneLine(text)}
	if !found {
		return e
	}
	e.Line, e.Column = pointsAt(picture, s.sql)
	switch {
	case e.Line == 1:
		e.Column += s.column
		fallthrough
	case e.Line > 1:
		e.Line += s.line
	}
	return e
}

const pictureStart = "\n\nLINE "

// pointsAt reads a picture such as
//
//	2:   rewad
//	     ^^^^^
//
// without the word LINE before it. Long lines are cut, with dots for what is
// left out. Both results are 0 if it cannot be read.
func pointsAt(picture, sql string) (line, column int) {
	number, rest, _ := strings.Cut(picture, ": ")
	shown, marks, _ := strings.Cut(rest, "\n")
	line, err := strconv.Atoi(number)
	lines := strings.Split(sql, "\n")
	caret := strings.IndexByte(marks, '^')
	if err != nil || line < 1 || line > len(lines) || caret < 0 {
		return 0, 0
	}
	column = caret - len("LINE : ") - len(number)
	if cut, ok := strings.CutPrefix(shown, "..."); ok {
		cut = strings.TrimSuffix(cut, "...")
		column += utf8.RuneCountInString(lines[line-1][:max(strings.Index(lines[line-1], cut), 0)]) - len("...")
	}
	return line, max(column, 0) + 1
}

// oneLine joins the lines of a message.
func oneLine(message string) string {
	return strings.Join(strings.FieldsFunc(message, func(r rune) bool { return r == '\n' }), " ")
}
