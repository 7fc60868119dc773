package store

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
)

// View is what a run held when it was opened for reading. It takes no lock and
// changes nothing in the run directory, so that it works on a running run, on
// one that was killed, and on one that may only be read.
type View struct {
	Dir   string // absolute
	Run   Run
	Parts []Part // the manifest's lines
	// Files are the committed part files by table, as absolute paths.
	Files map[string][]string
	// Journal are .jsonl.zst files with the records that no part holds yet,
	// without call lines: whole frames, each record once. They lie in the
	// temporary directory that the caller named and owns.
	Journal []string

	fsys FS
}

// OpenView reads a run. Copies of what is in its journal go to tempDir, which
// exists.
func OpenView(dir, tempDir string) (*View, error) { return openView(osFS{}, dir, tempDir) }

// openView opens the segments first and reads the manifest second: what a part
// takes over in between is in the manifest then, and its segment is dropped.
func openView(fsys FS, dir, tempDir string) (*View, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", dir, err)
	}
	run, err := readRun(fsys, dir)
	if err != nil {
		return nil, err
	}
	open, err := openSegments(fsys, dir)
	defer func() {
		for _, s := range open {
			closeRead(s.file)
		}
	}()
	if err != nil {
		return nil, err
	}
	man, err := readManifest(fsys, dir)
	if err != nil {
		return nil, err
	}
	v := &View{Dir: dir, Run: run, Parts: man.parts, Files: map[string][]string{}, fsys: fsys}
	for _, p := range man.parts {
		for _, f := range p.Files {
			v.Files[f.Table] = append(v.Files[f.Table], filepath.Join(dir, filepath.FromSlash(f.Name)))
		}
	}
	return v, v.copyJournal(open, man.watermark(), tempDir)
}

type openSegment struct {
	number int
	file   File
}

func openSegments(fsys FS, dir string) ([]openSegment, error) {
	numbers, err := segments(fsys, dir)
	if err != nil {
		return nil, err
	}
	var open []openSegment
	for _, n := range numbers {
		f, err := fsys.OpenFile(filepath.Join(dir, journalDir, segmentName(n)), toRead)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a part has its rows by now
		}
		if err != nil {
			return open, fmt.Errorf("opening journal segment %d: %w", n, err)
		}
		open = append(open, openSegment{n, f})
	}
	return open, nil
}

// copyJournal copies the records with rows of the segments behind the
// watermark.
func (v *View) copyJournal(open []openSegment, watermark int, tempDir string) error {
	seen := map[uint64]bool{}
	for _, s := range open {
		if s.number <= watermark {
			continue
		}
		b, err := readAll(s.file)
		if err != nil {
			return fmt.Errorf("reading journal segment %d: %w", s.number, err)
		}
		frames := rowFrames(b, seen)
		if len(frames) == 0 {
			continue
		}
		path := filepath.Join(tempDir, segmentName(s.number))
		if err := writeCopy(v.fsys, path, frames); err != nil {
			return fmt.Errorf("copying journal segment %d: %w", s.number, err)
		}
		v.Journal = append(v.Journal, path)
	}
	return nil
}

// rowFrames are the good frames of a segment that hold rows and were not seen.
func rowFrames(b []byte, seen map[uint64]bool) []byte {
	var frames []byte
	_, err := scan(b, func(f frame, whole []byte) error {
		if f.kind.hasRows() && !seen[f.seq] {
			seen[f.seq] = true
			frames = append(frames, whole...)
		}
		return nil
	})
	if err != nil {
		panic("store: a callback that cannot fail did: " + err.Error())
	}
	return frames
}

func writeCopy(fsys FS, path string, content []byte) error {
	f, err := fsys.OpenFile(path, toCreate)
	if err != nil {
		return err
	}
	return errors.Join(writeAll(f, content), f.Close())
}

// Verify compares the committed files with what the manifest says of them. It
// reads them all; the error joins a [DamageError] for each that is damaged.
func (v *View) Verify() error {
	var errs []error
	for _, p := range v.Parts {
		for _, f := range p.Files {
			errs = append(errs, verify(v.fsys, v.Dir, f, true))
		}
	}
	return errors.Join(errs...)
}

// Index sums up how each episode stands, from only the columns that it needs.
func (v *View) Index() (*Index, error) {
	t := tallier{index: NewIndex()}
	err := t.parts(v.Parts, func(p Part) (*heads, error) { return readHeads(v.fsys, v.Dir, p) })
	if err != nil {
		return nil, err
	}
	err = eachLine(v, func(l *headLine) error {
		for i := range l.Attempts {
			if err := t.attempt(&l.Attempts[i]); err != nil {
				return err
			}
		}
		if l.Kind != lineReward {
			return nil // the attempt's own
		}
		for i := range l.Rewards {
			if !l.Rewards[i].Chosen {
				continue
			}
			if err := t.reward(&l.Rewards[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return t.index, err
}

// Attempts yields every recorded attempt, in the order of recording. A row is
// valid until the next one; an error is the last thing that is yielded.
func (v *View) Attempts() iter.Seq2[*AttemptRow, error] {
	return func(yield func(*AttemptRow, error) bool) {
		err := everyRow(v, tAttempts, func(r *Rows) []AttemptRow { return r.Attempts }, func(a *AttemptRow) error {
			if !yield(a, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// headLine is what an index needs of a journal line.
type headLine struct {
	Kind     string        `json:"kind"`
	Attempts []attemptHead `json:"attempts"`
	Rewards  []rewardHead  `json:"rewards"`
}

// eachLine decodes each record of the journal's copies into a T.
func eachLine[T any](v *View, yield func(*T) error) error {
	if len(v.Journal) == 0 {
		return nil
	}
	d, err := newDecoder()
	if err != nil {
		return err
	}
	defer d.close()
	for _, path := range v.Journal {
		b, err := readFile(v.fsys, path)
		if err != nil {
			return fmt.Errorf("reading a copy of the journal: %w", err)
		}
		_, err = scan(b, func(f frame, _ []byte) error {
			var l T
			if err := d.decode(f, &l); err != nil {
				return err
			}
			return yield(&l)
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return nil
}

// everyRow calls yield for each row of a table, in the parts and in the
// journal.
func everyRow[T any](v *View, table string, pick func(*Rows) []T, yield func(*T) error) error {
	for _, p := range v.Parts {
		if err := eachRow(v.fsys, v.Dir, p, table, yield); err != nil {
			return err
		}
	}
	return eachLine(v, func(l *line) error {
		rows := pick(&l.Rows)
		for i := range rows {
			if err := yield(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
