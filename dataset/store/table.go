package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// table gathers the rows of one table for one part and writes them to a
// temporary file, which is opened with the first row.
type table interface {
	add(rows *Rows) error
	// finish makes the file durable; PartFile is zero if there was no row.
	finish() (PartFile, error)
	// discard gives up what was written.
	discard()
}

// partSpot says where the files of a part go and how they are written.
type partSpot struct {
	fsys    FS
	dir     string // of the run
	number  int
	kept    *KeptTypes
	options func(schema *parquet.Schema, table string) []parquet.WriterOption
}

func partName(number int) string { return fmt.Sprintf("part-%05d.parquet", number) }

// tables are the seven tables of a part, in the order of [Tables].
func (s partSpot) tables() []table {
	return []table{
		newTable(s, tAttempts, func(r *Rows) []AttemptRow { return r.Attempts }, (*AttemptRow).size),
		&taskTable{spot: s, meta: s.kept.begin()},
		newTable(s, tMessages, func(r *Rows) []MessageRow { return r.Messages }, (*MessageRow).size),
		newTable(s, tToolCalls, func(r *Rows) []ToolCallRow { return r.ToolCalls }, (*ToolCallRow).size),
		newTable(s, tSpans, func(r *Rows) []SpanRow { return r.Spans }, (*SpanRow).size),
		newTable(s, tRewards, func(r *Rows) []RewardRow { return r.Rewards }, (*RewardRow).size),
		newTable(s, tSequences, func(r *Rows) []SequenceRow { return r.Sequences }, (*SequenceRow).size),
	}
}

// The size of a row is what in it may be long: text of models, envs and users.

func (r *AttemptRow) size() int {
	return len(deref(r.Error)) + len(deref(r.Answer)) + len(r.Extra) + len(r.TaskID)
}

func (r *MessageRow) size() int {
	return len(r.Content) + len(deref(r.Parts)) + len(deref(r.Reasoning)) + len(deref(r.ReasoningSignature)) + len(deref(r.ToolName))
}

func (r *ToolCallRow) size() int {
	return len(r.ID) + len(r.Name) + len(r.Arguments) + len(deref(r.ArgumentsCoerced)) + len(deref(r.SchemaError))
}

func (r *SpanRow) size() int { return len(r.Name) + len(r.Attrs) }

func (r *RewardRow) size() int {
	return len(r.Name) + len(deref(r.Label)) + len(deref(r.Explanation)) + len(deref(r.Raw))
}

func (r *SequenceRow) size() int {
	const perToken, perTeacherToken = 4 + 4 + 1, 4 + 4
	return perToken*len(r.TokenIDs) + perTeacherToken*len(r.TeacherIDs) + len(r.RoutedExperts)
}

// partTable is a table whose rows are structs.
type partTable[T any] struct {
	spot partSpot
	name string
	pick func(*Rows) []T
	size func(*T) int

	file   *partFile // nil before the first row
	writer *parquet.GenericWriter[T]
	buf    []T // rows not yet given to the writer
	held   int // bytes of buf
	group  int // bytes of the open row group
}

func newTable[T any](s partSpot, name string, pick func(*Rows) []T, size func(*T) int) *partTable[T] {
	return &partTable[T]{spot: s, name: name, pick: pick, size: size}
}

const (
	bufferRows  = 256
	bufferBytes = 4 << 20
	fixedBytes  = 256 // about what a row weighs besides its long text
)

func (t *partTable[T]) add(rows *Rows) error {
	add := t.pick(rows)
	for i := range add {
		t.buf = append(t.buf, add[i])
		t.held += fixedBytes + t.size(&add[i])
		if len(t.buf) >= bufferRows || t.held >= bufferBytes {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush gives the gathered rows to the writer and ends the row group once it
// is large enough.
func (t *partTable[T]) flush() error {
	if len(t.buf) == 0 {
		return nil
	}
	if t.file == nil {
		if err := t.open(); err != nil {
			return err
		}
	}
	n, err := t.writer.Write(t.buf)
	t.file.rows += int64(n)
	if err == nil && n < len(t.buf) {
		err = io.ErrShortWrite
	}
	t.group += t.held
	t.buf, t.held = t.buf[:0], 0
	if err == nil && t.group >= bytesPerGroup {
		t.group = 0
		err = t.writer.Flush()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", t.file.path, err)
	}
	return nil
}

func (t *partTable[T]) open() error {
	f, err := t.spot.create(t.name)
	if err != nil {
		return err
	}
	schema := schemaOf[T](t.name)
	t.file, t.writer = f, parquet.NewGenericWriter[T](f, t.spot.options(schema, t.name)...)
	return nil
}

func (t *partTable[T]) finish() (PartFile, error) {
	if err := t.flush(); err != nil || t.file == nil {
		return PartFile{}, err
	}
	if err := t.writer.Close(); err != nil {
		return PartFile{}, fmt.Errorf("writing the footer of %s: %w", t.file.path, err)
	}
	return t.file.finish()
}

func (t *partTable[T]) discard() {
	t.buf = nil
	if t.file != nil {
		t.file.discard()
	}
}

// partFile is a Parquet file on its way, under its temporary name.
type partFile struct {
	fsys  FS
	path  string // while it is unfinished
	name  string // within the run, once it is finished
	table string
	file  File
	sum   hash.Hash
	bytes int64
	rows  int64
}

// unfinishedPath is where a part file is until it is whole: never in the folder
// of its table, because other readers take all that lies there.
func unfinishedPath(dir, name string) string {
	return filepath.Join(dir, journalDir, strings.ReplaceAll(name, "/", "-")+tmpSuffix)
}

func (s partSpot) create(tableName string) (*partFile, error) {
	name := path.Join(tableName, partName(s.number))
	tmp := unfinishedPath(s.dir, name)
	f, err := s.fsys.OpenFile(tmp, toCreate)
	if err != nil {
		return nil, fmt.Errorf("creating a part: %w", err)
	}
	return &partFile{fsys: s.fsys, path: tmp, name: name, table: tableName, file: f, sum: sha256.New()}, nil
}

func (f *partFile) Write(b []byte) (int, error) {
	if err := writeAll(f.file, b); err != nil {
		return 0, err
	}
	f.sum.Write(b)
	f.bytes += int64(len(b))
	return len(b), nil
}

// finish makes the content durable and reads the footer back: a file that
// cannot be read must not replace the journal.
func (f *partFile) finish() (PartFile, error) {
	if err := f.file.Sync(); err != nil {
		return PartFile{}, fmt.Errorf("syncing %s: %w", f.path, err)
	}
	rows, err := footerRows(f.file)
	if err == nil && rows != f.rows {
		err = fmt.Errorf("its footer says %d rows and %d were written", rows, f.rows)
	}
	if err != nil {
		return PartFile{}, fmt.Errorf("reading %s back: %w", f.path, err)
	}
	file := f.file
	f.file = nil
	if err := file.Close(); err != nil {
		return PartFile{}, fmt.Errorf("closing %s: %w", f.path, err)
	}
	return PartFile{
		Table: f.table, Name: f.name, Rows: f.rows, Bytes: f.bytes, SHA256: hex.EncodeToString(f.sum.Sum(nil)),
	}, nil
}

func (f *partFile) discard() {
	if f.file != nil {
		_ = f.file.Close() // the file goes
		f.file = nil
	}
	_ = f.fsys.Remove(f.path) // else the next Open removes it
}

// footerRows opens a Parquet file and returns its number of rows.
func footerRows(f sizedReader) (rows int64, err error) {
	p, err := openParquet(f)
	if err != nil {
		return 0, err
	}
	return p.NumRows(), nil
}

// openParquet reads a footer. A malformed one is an error, never a panic.
func openParquet(f sizedReader) (p *parquet.File, err error) {
	defer recovered(&err)
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return parquet.OpenFile(f, size, parquet.SkipBloomFilters(true))
}

var errMalformed = errors.New("malformed")

// recovered turns a panic of the Parquet library over a malformed file into an
// error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", errMalformed, r)
	}
}
