package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

const segmentSuffix = ".jsonl.zst"

func segmentName(n int) string { return fmt.Sprintf("seg-%05d%s", n, segmentSuffix) }

// segmentNumber is the number in a segment's name.
func segmentNumber(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "seg-")
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, segmentSuffix); !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}

// segments lists the numbers of the segments in a run directory, ascending.
func segments(fsys FS, dir string) ([]int, error) {
	names, err := fsys.ReadDir(filepath.Join(dir, journalDir))
	if err != nil {
		return nil, fmt.Errorf("listing the journal: %w", err)
	}
	var numbers []int
	for _, name := range names {
		if n, ok := segmentNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// journal appends records to segments. It belongs to the committer.
type journal struct {
	fsys  FS
	enc   *encoder
	dir   string // of the segments
	next  int    // number of the next segment
	seq   uint64 // of the latest record
	calls inflight
	buf   []byte

	// The open segment; file is nil while there is none.
	file   File
	number int
	acked  bool // it may be the only one with what it holds
	listed bool // its directory entry is durable
}

// writeChunk is how much is gathered for one write(2).
const writeChunk = 256 << 10

// write appends records to the open segment, or to a new one that begins with
// the calls in flight, and makes everything written so far durable where sync
// is set. After an error the segment is to be abandoned.
func (j *journal) write(records []*record, sync bool) error {
	if j.file == nil {
		if err := j.open(); err != nil {
			return err
		}
	}
	for _, r := range records {
		if err := j.append(r); err != nil {
			return err
		}
	}
	if err := j.flush(); err != nil {
		return err
	}
	if sync {
		if err := j.sync(); err != nil {
			return err
		}
	}
	j.acked = true
	return nil
}

func (j *journal) open() error {
	number := j.next
	j.next++
	name := filepath.Join(j.dir, segmentName(number))
	f, err := j.fsys.OpenFile(name, toCreate)
	if err != nil {
		return fmt.Errorf("opening a journal segment: %w", err)
	}
	j.file, j.number, j.acked, j.listed = f, number, false, false
	j.buf = j.buf[:0]
	return j.calls.lines(func(row CallRow, phase dataset.CallPhase) error {
		r := j.enc.call(row, phase)
		return j.append(&r)
	})
}

func (j *journal) append(r *record) error {
	if r.seq == 0 { // else it is written a second time, after an error
		j.seq++
		r.seq = j.seq
	}
	j.buf = appendFrame(j.buf, r.kind, r.seq, r.body, r.sum)
	if len(j.buf) < writeChunk {
		return nil
	}
	return j.flush()
}

func (j *journal) flush() error {
	if len(j.buf) == 0 {
		return nil
	}
	err := writeAll(j.file, j.buf)
	j.buf = j.buf[:0]
	if cap(j.buf) > 4*writeChunk { // after a giant record
		j.buf = nil
	}
	if err != nil {
		return fmt.Errorf("writing journal segment %d: %w", j.number, err)
	}
	return nil
}

func (j *journal) sync() error {
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("syncing journal segment %d: %w", j.number, err)
	}
	if j.listed {
		return nil
	}
	if err := j.fsys.SyncDir(j.dir); err != nil {
		return fmt.Errorf("syncing the journal's folder: %w", err)
	}
	j.listed = true
	return nil
}

// abandon leaves a segment after a failed write or fsync: it is never written
// or fsynced again, because nobody knows what of it is on disk. One to which no
// write succeeded is removed to give its space back; all others stay until a
// part holds their rows and a newer segment the calls in flight.
func (j *journal) abandon() {
	if j.file == nil {
		return
	}
	_ = j.file.Close() // its error was seen already
	j.file = nil
	if !j.acked {
		_ = j.fsys.Remove(filepath.Join(j.dir, segmentName(j.number))) // else the next part's commit removes it
	}
}

// close ends the open segment. All acknowledged rows in it are durable.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// removeSegments removes the segments up to a number.
func removeSegments(fsys FS, dir string, upTo int) error {
	numbers, err := segments(fsys, dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range numbers {
		if n <= upTo {
			errs = append(errs, fsys.Remove(filepath.Join(dir, journalDir, segmentName(n))))
		}
	}
	return errors.Join(errs...)
}
