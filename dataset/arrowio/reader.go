package arrowio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// magic begins and ends an IPC file; its first eight bytes are padded.
const magic = "ARROW1"

// Reader reads the rows of a table, one after the other. One goroutine uses it.
type Reader struct {
	messages *messages
	reader   *ipc.Reader
	file     bool // an IPC file, which goes on behind its stream
	batch    arrow.Record
	row      int // the next of batch
	err      error
}

// NewReader begins to read an IPC file or stream. The caller closes the Reader
// and what it reads from.
func NewReader(r io.Reader) (*Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, err := buffered.Peek(len(magic) + 2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	a := &Reader{messages: &messages{r: buffered}}
	if a.file = bytes.HasPrefix(head, []byte(magic)); a.file {
		_, _ = buffered.Discard(len(head)) // was peeked
	}
	if a.reader, err = ipc.NewReaderFromMessageReader(a.messages, ipc.WithAllocator(bounded{memory.NewGoAllocator()})); err != nil {
		return nil, a.damage(err)
	}
	if err := checkColumns(a.reader.Schema()); err != nil {
		a.reader.Release()
		return nil, err
	}
	return a, nil
}

func checkColumns(schema *arrow.Schema) error {
	seen := map[string]bool{}
	for _, f := range schema.Fields() {
		if err := checkType(f.Type); err != nil {
			return fmt.Errorf("the column %q holds %w", f.Name, err)
		}
		if seen[f.Name] {
			return fmt.Errorf("two columns are called %q; rename one of them", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// RowError says why one row cannot be read; the next one can.
type RowError struct {
	Column string
	Err    error
}

func (e RowError) Error() string { return fmt.Sprintf("the column %q: %v", e.Column, e.Err) }

func (e RowError) Unwrap() error { return e.Err }

// Close releases what was read.
func (a *Reader) Close() { a.reader.Release() }

// Next returns the next row, by the names of its columns. At the end of the
// table the error is [io.EOF]; after any error but a [RowError] there are no
// more rows.
func (a *Reader) Next() (row map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			row, err = nil, a.damage(fmt.Errorf("%v", p))
		}
		if _, bad := errors.AsType[RowError](err); !bad {
			a.err = err
		}
	}()
	if a.err != nil {
		return nil, a.err
	}
	for a.batch == nil || a.row >= int(a.batch.NumRows()) {
		if err := a.nextBatch(); err != nil {
			return nil, err
		}
	}
	i := a.row
	a.row++
	row = make(map[string]any, a.batch.NumCols())
	for n, f := range a.reader.Schema().Fields() {
		if row[f.Name], err = value(a.batch.Column(n), i); err != nil {
			return nil, RowError{Column: f.Name, Err: err}
		}
	}
	return row, nil
}

func (a *Reader) nextBatch() error {
	a.batch, a.row = nil, 0
	if a.reader.Next() {
		a.batch = a.reader.Record()
		return nil
	}
	if err := a.reader.Err(); err != nil {
		return a.damage(err)
	}
	return a.end()
}

// end checks that the table ends as a whole one does: otherwise batches might
// be lacking.
func (a *Reader) end() error {
	switch {
	case a.messages.err != nil:
		return a.damage(a.messages.err)
	case !a.messages.ended:
		return errors.New("the Arrow data ends without its end mark, so rows may be missing; write it again and close the writer")
	case !a.file:
		return io.EOF
	}
	tail, err := lastBytes(a.messages.r, len(magic))
	if err != nil {
		return err
	}
	if string(tail) != magic {
		return errors.New("the Arrow file is cut off in its footer; fetch the file again")
	}
	return io.EOF
}

// lastBytes reads to the end and returns the last n bytes.
func lastBytes(r io.Reader, n int) ([]byte, error) {
	var tail []byte
	buf := make([]byte, 4<<10)
	for {
		c, err := r.Read(buf)
		tail = append(tail, buf[:c]...)
		tail = tail[max(0, len(tail)-n):]
		if errors.Is(err, io.EOF) {
			return tail, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// damage says what is wrong with data that the library could not read. What
// stopped the messages goes before what the library made of it.
func (a *Reader) damage(err error) error {
	if a.messages.err != nil {
		err = a.messages.err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the Arrow data is cut off; fetch the file again")
	}
	if read, ok := errors.AsType[readError](err); ok {
		return read.error
	}
	return fmt.Errorf("the Arrow data is broken: %w; fetch the file again", err)
}

// readError is what the reader below said.
type readError struct{ error }
