package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// survey is what lies in a run directory besides what the manifest commits.
type survey struct {
	man       manifest
	done      []int     // segments that the manifest commits
	remaining []int     // segments with rows that no part holds
	unnamed   []oddPart // part files that no manifest line names
	tmp       []string  // files whose writing was cut off
}

// oddPart is a part file that was written and not committed.
type oddPart struct {
	table, path string
	number      int
}

// take reads what lies in a run directory and changes nothing.
func takeSurvey(fsys FS, dir string, man manifest) (survey, error) {
	s := survey{man: man}
	all, err := segments(fsys, dir)
	if err != nil {
		return s, err
	}
	for _, n := range all {
		if n <= man.watermark() {
			s.done = append(s.done, n)
		} else {
			s.remaining = append(s.remaining, n)
		}
	}
	if s.tmp, err = unfinished(fsys, dir); err != nil {
		return s, err
	}
	named := map[string]bool{}
	for _, p := range man.parts {
		for _, f := range p.Files {
			named[f.Name] = true
		}
	}
	for _, table := range Tables() {
		if err := s.listTable(fsys, dir, table, named); err != nil {
			return s, err
		}
	}
	return s, s.check(dir)
}

func (s *survey) listTable(fsys FS, dir, table string, named map[string]bool) error {
	names, err := fsys.ReadDir(filepath.Join(dir, table))
	if err != nil {
		return fmt.Errorf("listing %s: %w", table, err)
	}
	for _, name := range names {
		path := filepath.Join(dir, table, name)
		if number, ok := partNumber(name); ok && !named[table+"/"+name] {
			s.unnamed = append(s.unnamed, oddPart{table: table, path: path, number: number})
		}
	}
	return nil
}

// unfinished lists the part files whose writing was cut off.
func unfinished(fsys FS, dir string) ([]string, error) {
	names, err := fsys.ReadDir(filepath.Join(dir, journalDir))
	if err != nil {
		return nil, fmt.Errorf("listing the journal: %w", err)
	}
	var paths []string
	for _, name := range names {
		if strings.HasSuffix(name, ".parquet"+tmpSuffix) {
			paths = append(paths, filepath.Join(dir, journalDir, name))
		}
	}
	return paths, nil
}

func partNumber(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, "part-")
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, ".parquet"); !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}

// check makes sure that the segment which can rebuild it lies beside each
// unnamed part.
func (s *survey) check(dir string) error {
	for _, odd := range s.unnamed {
		if slices.Contains(s.remaining, odd.number) {
			continue
		}
		segment := filepath.Join(dir, journalDir, segmentName(odd.number))
		return &DamageError{
			Path: odd.path,
			Err:  fmt.Errorf("the manifest does not name it and %s, which could rebuild it, is missing", segment),
			Advice: "restore the segment or " + manifestFile + " from a copy of the run, " +
				"or move the file away to give its rows up; nothing was changed",
		}
	}
	return nil
}

// next is the first number that no segment and no part has had.
func (s *survey) next() int {
	n := s.man.watermark()
	for _, r := range s.remaining {
		n = max(n, r)
	}
	return n + 1
}

// recovery writes what is in the journal and in no part as one part. That is
// one commit: a crash before it changes nothing, and one after it leaves
// nothing to do.
type recovery struct {
	s       *Store
	survey  survey
	decoder *decoder
	tables  []table

	seen     map[uint64]bool     // sequence numbers
	recorded map[attemptKey]bool // attempts that have their rows
	calls    inflight
	rows     int
	damaged  []int // segments with bytes that no crash explains
}

// recoverJournal returns the part, or nil if the journal held no rows.
func (s *Store) recoverJournal(w *partWriter, v survey) (*Part, error) {
	if len(v.remaining) == 0 {
		return nil, nil //nolint:nilnil // there is no part and no error
	}
	d, err := newDecoder()
	if err != nil {
		return nil, err
	}
	defer d.close()
	number := slices.Max(v.remaining)
	r := &recovery{
		s: s, survey: v, decoder: d, tables: w.spot(number).tables(),
		seen: map[uint64]bool{}, recorded: map[attemptKey]bool{},
	}
	files, err := r.rebuild()
	if err != nil {
		discard(r.tables)
		return nil, err
	}
	if err := r.removeUnnamed(); err != nil || r.rows == 0 {
		return nil, errors.Join(err, r.keepDamaged())
	}
	p, err := w.commit(number, files)
	if err != nil {
		return nil, err
	}
	return &p, r.keepDamaged()
}

// rebuild reads the segments into the tables and finishes them.
func (r *recovery) rebuild() ([]PartFile, error) {
	for _, n := range r.survey.remaining {
		if err := r.segment(n); err != nil {
			return nil, err
		}
	}
	if err := r.orphans(); err != nil {
		return nil, err
	}
	files, err := finishAll(r.tables)
	if err != nil {
		return nil, err
	}
	return files, r.compare(files)
}

func (r *recovery) segment(number int) error {
	path := filepath.Join(r.s.dir, journalDir, segmentName(number))
	b, err := readFile(r.s.fsys, path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	bad, err := scan(b, func(f frame, _ []byte) error { return r.frame(f) })
	if err != nil {
		return &DamageError{Path: path, Err: err, Advice: "restore it from a copy of the run; nothing was changed"}
	}
	if bad.torn > 0 {
		r.s.log.Info("journal segment ends in the middle of a record, as after a crash",
			slog.String("file", path), slog.Int("bytes", bad.torn))
	}
	if bad.broken > 0 {
		r.s.log.Warn("journal segment is damaged; the records behind the damage were read, the file is kept",
			slog.String("file", path), slog.Int("offset", bad.at), slog.Int("bytes", bad.broken))
		r.damaged = append(r.damaged, number)
	}
	return nil
}

func (r *recovery) frame(f frame) error {
	if r.seen[f.seq] {
		return nil // written a second time after an error
	}
	var l line
	if err := r.decoder.decode(f, &l); err != nil {
		return err
	}
	r.seen[f.seq] = true
	normalise(&l.Rows)
	for i := range l.Calls {
		r.calls.note(&l.Calls[i], f.kind)
	}
	return r.add(&l.Rows)
}

func (r *recovery) add(rows *Rows) error {
	for i := range rows.Attempts {
		r.recorded[attemptKey{rows.Attempts[i].EpisodeID, rows.Attempts[i].Attempt}] = true
	}
	r.rows += len(rows.Attempts) + len(rows.Rewards)
	for _, t := range r.tables {
		if err := t.add(rows); err != nil {
			return err
		}
	}
	return nil
}

// normalise gives kept columns, which JSON has as numbers of any kind, the types
// that they had before.
func normalise(rows *Rows) {
	for i := range rows.Tasks {
		for name, v := range rows.Tasks[i].Meta {
			rows.Tasks[i].Meta[name] = cleaner{}.metaValue(v)
		}
	}
}

// orphans adds the rows of attempts that the crash cut off.
func (r *recovery) orphans() error {
	trs := orphans(&r.calls, func(k attemptKey) bool { return r.recorded[k] || r.s.isRecorded(k) })
	for _, tr := range trs {
		var rows Rows
		r.s.flat.trajectory(&rows, tr)
		if err := r.add(&rows); err != nil {
			return err
		}
	}
	if len(trs) > 0 {
		r.s.log.Info("recorded attempts that were cut off, with their cost", slog.Int("attempts", len(trs)))
	}
	return nil
}

// isRecorded reports whether the index has an attempt: attempts of an episode
// are recorded in order.
func (s *Store) isRecorded(k attemptKey) bool {
	return s.index.State(k.episodeID).Attempts > int(k.attempt)
}

// compare makes sure that no unnamed part holds more than the journal gave:
// such a file is not replaced.
func (r *recovery) compare(files []PartFile) error {
	for _, odd := range r.survey.unnamed {
		f, err := r.s.fsys.OpenFile(odd.path, toRead)
		if err != nil {
			return fmt.Errorf("opening %s: %w", odd.path, err)
		}
		had, err := footerRows(f)
		closeRead(f)
		if err != nil {
			continue // not even a file: the segment is all there is
		}
		if got := (Part{Files: files}).Rows(odd.table); got < had {
			return &DamageError{
				Path:   filepath.Join(r.s.dir, journalDir, segmentName(odd.number)),
				Err:    fmt.Errorf("it gives %d rows of %s, and the uncommitted %s has %d", got, odd.table, odd.path, had),
				Advice: "restore the segment from a copy of the run, or move that file away; nothing was changed",
			}
		}
	}
	return nil
}

func (r *recovery) removeUnnamed() error {
	var errs []error
	for _, odd := range r.survey.unnamed {
		if err := r.s.fsys.Remove(odd.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing an uncommitted part: %w", err))
		}
	}
	return errors.Join(errs...)
}

// keepDamaged sets damaged segments aside instead of removing them.
func (r *recovery) keepDamaged() error {
	for _, n := range r.damaged {
		path := filepath.Join(r.s.dir, journalDir, segmentName(n))
		if err := r.s.fsys.Rename(path, path+".damaged"); err != nil {
			return fmt.Errorf("setting a damaged segment aside: %w", err)
		}
	}
	return nil
}

// cleanUp removes what is done with.
func (s *Store) cleanUp(v survey) error {
	var errs []error
	for _, path := range v.tmp {
		if err := s.fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, removeSegments(s.fsys, s.dir, v.man.watermark()))...)
}

// killedRecords are the records of attempts in flight that nobody will end.
func (s *Store) killedRecords(calls *inflight) ([]record, error) {
	var records []record
	for _, tr := range orphans(calls, s.isRecorded) {
		rec, err := s.encodeAttempt(tr)
		if err != nil {
			return nil, err
		}
		records = append(records, rec)
	}
	return records, nil
}

func (s *Store) encodeAttempt(tr *dataset.Trajectory) (record, error) {
	rows := new(Rows)
	s.flat.trajectory(rows, tr)
	return s.enc.rows(kindAttempt, lineAttempt, rows)
}
