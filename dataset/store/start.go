package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// requireVacant refuses a directory that holds anything but what a Create that
// was cut off may have left.
func (s *Store) requireVacant() error {
	names, err := s.fsys.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.dir, err)
	}
	ours := append(Tables(), journalDir, blobDir, lockFile, manifestFile, runFile+tmpSuffix)
	for _, name := range names {
		if !slices.Contains(ours, name) {
			return fmt.Errorf("%s is not empty (it has %s): name a directory that does not exist yet", s.dir, name)
		}
	}
	return nil
}

// layOut makes what is in a run directory, but for run.json: that comes last and
// marks a whole one.
func layOut(fsys FS, dir string) error {
	for _, name := range append(Tables(), journalDir, blobDir) {
		if err := fsys.Mkdir(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("making the run directory: %w", err)
		}
	}
	if err := writeSynced(fsys, filepath.Join(dir, manifestFile), nil); err != nil {
		return fmt.Errorf("making the manifest: %w", err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("syncing %s: %w", filepath.Dir(dir), err)
	}
	return nil
}

// start reads the run, puts what a crash left in order, and starts the
// goroutines.
func (s *Store) start() error {
	run, err := readRun(s.fsys, s.dir)
	if err != nil {
		return err
	}
	s.run, s.flat = run, newFlattener(run, s.opts)
	man, err := readManifest(s.fsys, s.dir)
	if err != nil {
		return err
	}
	v, err := takeSurvey(s.fsys, s.dir, man)
	if err != nil {
		return err
	}
	t := tallier{index: s.index}
	if err := t.parts(man.parts, s.verifiedHeads); err != nil {
		return err
	}
	w := newPartWriter(s.fsys, s.dir, run, s.opts.Kept, man.size)
	p, err := s.putInOrder(w, v)
	if err != nil {
		return err
	}
	if p != nil {
		if err := t.parts([]Part{*p}, s.verifiedHeads); err != nil {
			return err
		}
	}
	s.spent = t.spent
	s.launch(w, v.next())
	return nil
}

// verifiedHeads verifies a part and reads what the index needs of it.
func (s *Store) verifiedHeads(p Part) (*heads, error) {
	for _, f := range p.Files {
		if err := verify(s.fsys, s.dir, f, f.Table == tAttempts || f.Table == tRewards); err != nil {
			return nil, err
		}
	}
	return readHeads(s.fsys, s.dir, p)
}

// putInOrder removes what is done with, writes the part of the journal's rows,
// and cuts a torn manifest line. The part is nil if there were no rows.
func (s *Store) putInOrder(w *partWriter, v survey) (*Part, error) {
	if err := s.cleanUp(v); err != nil { // first, because it makes space
		s.log.Warn("removing what is done with", slog.Any("error", err))
	}
	p, err := s.recoverJournal(w, v)
	if err != nil {
		return nil, fmt.Errorf("recovering the journal: %w", err)
	}
	if p != nil {
		return p, nil
	}
	if v.man.torn {
		if err := cutManifest(s.fsys, s.dir, v.man.size); err != nil {
			return nil, err
		}
	}
	if err := removeSegments(s.fsys, s.dir, v.next()-1); err != nil { // no rows in them
		s.log.Warn("removing empty journal segments", slog.Any("error", err))
	}
	return nil, nil //nolint:nilnil // there is no part and no error
}

func (s *Store) launch(w *partWriter, next int) {
	c := &committer{
		log: s.log, opts: s.opts, orphaned: s.killedRecords,
		rows: make(chan *request, 16), calls: make(chan *request, 256), // sent to by callers, never closed
		stop: make(chan struct{}), parts: make(chan *batch, 1),
		taken: make(chan struct{}, 1), partErr: make(chan error, 1),
		journal: journal{
			fsys: s.fsys, enc: s.enc, dir: filepath.Join(s.dir, journalDir),
			next: next, seq: uint64(next) << 32, //nolint:gosec // next is not negative
		},
		batch: &batch{},
	}
	s.committer, s.stopped = c, make(chan struct{})
	s.running.Go(func() {
		defer close(s.stopped)
		c.run()
	})
	s.running.Go(func() { s.writeParts(w, next-1) })
}

// writeParts writes batches as parts until the committer closes the channel.
// The segments up to done hold nothing that an earlier part does not.
func (s *Store) writeParts(w *partWriter, done int) {
	c := s.committer
	for b := range c.parts {
		select {
		case c.taken <- struct{}{}:
		default: // it will look anyway
		}
		if s.partErr != nil {
			continue
		}
		err := insist(s.log, s.opts.DiskWait, "part", func() error {
			_, err := w.write(b)
			return err
		})
		if err != nil {
			s.partErr = fmt.Errorf("writing part %d: %w", b.number, err)
			c.partErr <- s.partErr
			continue
		}
		s.log.Debug("part committed", slog.Int("part", b.number), slog.Int("attempts", b.count))
		if err := removeSegments(s.fsys, s.dir, done); err != nil {
			s.log.Warn("removing journal segments; the next commit tries again", slog.Any("error", err))
		}
		done = b.number
	}
}
