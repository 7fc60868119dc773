package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// csvRows reads CSV as RFC 4180 has it, with any separator. Unlike encoding/csv
// it leaves line ends within quotes as they are, bounds a row, and goes on
// behind a bad one. All values are text.
type csvRows struct {
	lines     lines
	separator byte
	header    []string
	line      int    // where the latest row begins
	text      []byte // of the row's fields, one after the other
	ends      []int  // of the fields in text
}

func newCSVRows(l lines, separator byte) (*csvRows, error) {
	c := &csvRows{lines: l, separator: separator}
	if err := c.record(); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	seen := map[string]bool{}
	for i, name := range c.fields() {
		if name = strings.TrimSpace(name); name == "" {
			name = fmt.Sprintf("column_%d", i+1) // such as the row numbers of pandas
		}
		if seen[name] {
			return nil, fmt.Errorf("the header has the column %q twice; rename one of them", name)
		}
		seen[name] = true
		c.header = append(c.header, name)
	}
	return c, nil
}

func (c *csvRows) next() (map[string]any, error) {
	if err := c.record(); err != nil {
		return nil, err
	}
	if len(c.ends) != len(c.header) {
		return nil, badRowError{fmt.Errorf("the row has %s and the header %d; put a field in quotes if it has the separator in it",
			plural(len(c.ends), "field"), len(c.header))}
	}
	row := make(map[string]any, len(c.header))
	for i, field := range c.fields() {
		row[c.header[i]] = field
	}
	return row, nil
}

func (c *csvRows) at(e RowError) RowError {
	e.Line = c.line
	return e
}

func (c *csvRows) close() {}

func (c *csvRows) fields() []string {
	all := string(c.text)
	fields := make([]string, len(c.ends))
	start := 0
	for i, end := range c.ends {
		fields[i], start = all[start:end], end
	}
	return fields
}

// record reads the next row that is not blank. At the end the error is io.EOF.
func (c *csvRows) record() error {
	line, err := c.read()
	for err == nil && len(bytes.Trim(line, "\r\n")) == 0 {
		line, err = c.read()
	}
	c.line = c.lines.number
	c.text, c.ends = c.text[:0], c.ends[:0]
	for err == nil {
		var more bool
		if line, more, err = c.field(line); err != nil || !more {
			break
		}
		if len(c.text) > maxLine {
			err = badRowError{fmt.Errorf("the row is longer than %d MiB", maxLine>>20)}
		}
	}
	if err == nil && !utf8.Valid(c.text) {
		return badRowError{fmt.Errorf("byte %d of its text is not valid UTF-8; save the file as UTF-8", invalidUTF8(c.text))}
	}
	return err
}

// read returns the next line with its end; with the last one there is no error
// yet.
func (c *csvRows) read() ([]byte, error) {
	line, err := c.lines.read()
	c.lines.number++
	if c.lines.number == 1 {
		line = bytes.TrimPrefix(line, []byte(utf8BOM))
	}
	switch {
	case len(line) > 0 && (err == nil || errors.Is(err, io.EOF)):
		return line, nil
	case errors.Is(err, errLongLine):
		return nil, badRowError{err}
	}
	return line, err
}

// field takes the field that the line begins with, and returns what follows its
// separator; more tells that there was one.
func (c *csvRows) field(line []byte) (rest []byte, more bool, err error) {
	if len(line) > 0 && line[0] == '"' {
		return c.quoted(line[1:])
	}
	end := bytes.IndexByte(line, c.separator)
	if more = end >= 0; !more {
		line = trimEnd(line)
		end = len(line)
	}
	c.text = append(c.text, line[:end]...)
	c.ends = append(c.ends, len(c.text))
	return line[min(end+1, len(line)):], more, nil
}

// quoted takes a field in quotes, which may go on over lines.
func (c *csvRows) quoted(line []byte) (rest []byte, more bool, err error) {
	opened := c.lines.number
	for {
		quote := bytes.IndexByte(line, '"')
		if quote < 0 {
			c.text = append(c.text, line...)
			if line, err = c.nextOfQuoted(opened); err != nil {
				return nil, false, err
			}
			continue
		}
		c.text = append(c.text, line[:quote]...)
		line = line[quote+1:]
		if len(line) == 0 || line[0] != '"' {
			break
		}
		c.text = append(c.text, '"')
		line = line[1:]
	}
	c.ends = append(c.ends, len(c.text))
	if len(line) > 0 && line[0] == c.separator {
		return line[1:], true, nil
	}
	if len(trimEnd(line)) > 0 {
		return nil, false, badRowError{errors.New(`text follows a closing quote; write a quote within quotes twice, ""`)}
	}
	return nil, false, nil
}

// nextOfQuoted reads on within quotes. Where the row ends is not known if they
// are never closed.
func (c *csvRows) nextOfQuoted(opened int) ([]byte, error) {
	line, err := c.read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the quote that opens in line %d is never closed", opened)
	case errors.Is(err, errLongLine) || len(c.text) > maxLine:
		return nil, fmt.Errorf("the quote that opens in line %d is not closed within %d MiB", opened, maxLine>>20)
	}
	return line, err
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// separatorOf is what most often stands in the header between its columns, 0 if
// nothing does.
func separatorOf(header []byte) byte {
	best, most := byte(0), 0
	for _, s := range []byte{',', '\t', ';', '|'} {
		n, quoted := 0, false
		for _, b := range header {
			quoted = quoted != (b == '"')
			if b == s && !quoted {
				n++
			}
		}
		if n > most {
			best, most = s, n
		}
	}
	return best
}
