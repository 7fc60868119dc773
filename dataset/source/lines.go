package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line, and with it what a row takes in memory.
const maxLine = 64 << 20

// lines reads a file line by line and counts them.
type lines struct {
	r      *bufio.Reader
	number int
	long   []byte // of a line that is longer than the reader's buffer
}

// errLongLine is a bad row; reading can go on behind it.
var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// next returns the next line that is not blank, without its end. It is valid
// until the next call. At the end of the file the error is [io.EOF]; any other
// but errLongLine ends the file and belongs to line number.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.read()
		l.number++
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte(utf8BOM))
		}
		line = bytes.Trim(line, " \t\r\n")
		atEnd := errors.Is(err, io.EOF)
		if len(line) > 0 && (err == nil || atEnd) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// read returns the next line with its end, and io.EOF with the last one if it
// has none.
func (l *lines) read() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, err
	}
	// A rare long line must not keep its memory.
	if cap(l.long) > 1<<20 {
		l.long = nil
	}
	l.long = append(l.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.r.ReadSlice('\n')
		if len(l.long)+len(part) > maxLine {
			return nil, l.skip(err)
		}
		l.long = append(l.long, part...)
	}
	return l.long, err
}

// skip reads to the end of a line that is too long.
func (l *lines) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errLongLine
}

// jsonRows reads JSONL.
type jsonRows struct{ lines }

func (j *jsonRows) next() (map[string]any, error) {
	line, err := j.lines.next()
	if errors.Is(err, errLongLine) {
		return nil, badRowError{err}
	}
	if err != nil {
		return nil, err
	}
	row, err := decodeRow(line)
	if err != nil {
		return nil, badRowError{err}
	}
	return row, nil
}

func (j *jsonRows) at(e RowError) RowError {
	e.Line = j.number
	return e
}

func (j *jsonRows) close() {}
