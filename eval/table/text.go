package table

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// cellWidth is the width beyond which a cell of a table is cut: a table is for
// the eye, every other format has the whole value.
const cellWidth = 80

func writeTable(w io.Writer, columns []Column, rows Rows) error {
	t := table.NewWriter()
	t.SetStyle(style())
	t.SetColumnConfigs(alignments(columns))
	t.AppendHeader(header(columns))
	for row, err := range rows {
		if err != nil {
			return err
		}
		cells := make(table.Row, len(row))
		for i, v := range row {
			cells[i] = cell(v)
		}
		t.AppendRow(cells)
	}
	_, err := io.WriteString(w, trimLines(t.Render()))
	return err
}

// style is without colour and without frame.
func style() table.Style {
	s := table.StyleLight
	s.Options.DrawBorder = false
	s.Options.SeparateColumns = false
	s.Box.PaddingLeft = ""
	s.Box.PaddingRight = "  "
	s.Format.Header = text.FormatDefault
	return s
}

func alignments(columns []Column) []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(columns))
	for i, c := range columns {
		configs[i] = table.ColumnConfig{Number: i + 1}
		if c.Number {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	return configs
}

func header(columns []Column) table.Row {
	row := make(table.Row, len(columns))
	for i, c := range columns {
		row[i] = cut(OneLine(c.Name))
	}
	return row
}

func cell(v any) string {
	if v == nil {
		return "NULL"
	}
	return cut(OneLine(plain(v)))
}

func cut(s string) string {
	if text.StringWidth(s) <= cellWidth {
		return s
	}
	return text.Trim(s, cellWidth-1) + "…"
}

// trimLines drops blanks before each line's end and ends the last line.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// Width is how many columns s takes on a terminal; codes for colours take none.
func Width(s string) int { return text.StringWidthWithoutEscSequences(s) }

// OneLine makes s harmless for a terminal and keeps it on one line.
func OneLine(s string) string { return escape(s, "") }

// Safe makes s harmless for a terminal: control characters, the marks that
// reverse the direction of text, and bytes that are not UTF-8 appear as
// escapes such as \x1b or \u202e. Line ends and tabs stay.
func Safe(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if isSafe(s, keep) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case isHarmless(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			b.WriteString(escaped(r))
		}
		s = s[size:]
	}
	return b.String()
}

func isSafe(s, keep string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !isHarmless(r) && !strings.ContainsRune(keep, r) {
			return false
		}
	}
	return true
}

const joiner = '\u200d' // holds composed emoji together

func isHarmless(r rune) bool { return unicode.IsGraphic(r) || r == joiner }

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}
