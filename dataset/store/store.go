package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Options of a store. The zero value of each field is the default.
type Options struct {
	FS FS // nil: the real one
	// Variants by their hash: constants that are copied into each attempt's
	// row. Those of run.json are known besides.
	Variants  map[string]dataset.Variant
	PartBytes int64         // a part is written at so many bytes of rows; default 64 MiB
	PartRows  int           // or at so many attempts; default 10,000
	PartAge   time.Duration // or when its first row is so old; default 5 minutes
	// DiskWait is how long to wait for space while the disk is full before
	// recording stops. 0: not at all.
	DiskWait time.Duration
	Logger   *slog.Logger        // nil: none
	Mask     func(string) string // hides secrets in text; nil: there are none
}

func (o *Options) applyDefaults() {
	if o.FS == nil {
		o.FS = osFS{}
	}
	if o.PartBytes <= 0 {
		o.PartBytes = 64 << 20 // bounds memory, and what a crash leaves to read
	}
	if o.PartRows <= 0 {
		o.PartRows = 10_000
	}
	if o.PartAge <= 0 {
		o.PartAge = 5 * time.Minute // about a hundred parts in a night
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// ErrClosed is returned by a store after Close.
var ErrClosed = errors.New("the run is closed")

// Store writes one run. It has the run's lock until Close, which the caller
// owes it. Except for Write, which one goroutine calls, its methods are safe
// for concurrent use.
type Store struct {
	fsys FS
	dir  string
	opts Options
	log  *slog.Logger
	lock io.Closer

	flat  *flattener
	enc   *encoder
	blobs *blobs
	tasks map[[16]byte]bool // whose row this invocation has written; Write's
	index *Index            // as of opening, then the caller's
	spent dataset.Books     // as of opening

	committer *committer
	stopped   chan struct{} // closed when the committer has ended
	running   sync.WaitGroup
	partErr   error // why the part writer gave up; read after running.Wait
	closing   sync.Once
	closeErr  error

	mu  sync.Mutex
	run Run
}

// Create makes a run in dir, which is absent or empty, and opens it.
func Create(dir string, run Run, opts Options) (*Store, error) {
	opts.applyDefaults()
	if err := makeDir(opts.FS, dir); err != nil {
		return nil, err
	}
	return locked(dir, opts, func(s *Store) error {
		if err := s.requireVacant(); err != nil {
			return err
		}
		run.SchemaVersion = SchemaVersion
		if err := s.layOut(run); err != nil {
			return err
		}
		return s.start()
	})
}

// Open opens a run to go on with it: what a crash left is put in order first.
// A directory that is no run gives [ErrNotRun], one that another process
// writes [ErrLocked], damage a [DamageError].
func Open(dir string, opts Options) (*Store, error) {
	opts.applyDefaults()
	if _, err := readRun(opts.FS, dir); err != nil {
		return nil, err // before a lock file is left in somebody's directory
	}
	return locked(dir, opts, (*Store).start)
}

func locked(dir string, opts Options, open func(*Store) error) (*Store, error) {
	lock, err := opts.FS.Lock(filepath.Join(dir, lockFile), owner())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	enc, err := newEncoder()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{
		fsys: opts.FS, dir: dir, opts: opts, log: opts.Logger, lock: lock, enc: enc,
		blobs: newBlobs(opts.FS, dir), tasks: map[[16]byte]bool{}, index: NewIndex(),
	}
	if err := open(s); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// owner is the identity of this process in the lock file.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return fmt.Sprintf("pid %d on %s since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
}

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

// layOut makes the run directory. run.json comes last: it marks a whole one.
func (s *Store) layOut(run Run) error {
	for _, name := range append(Tables(), journalDir, blobDir) {
		if err := s.fsys.Mkdir(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("making the run directory: %w", err)
		}
	}
	if err := writeSynced(s.fsys, filepath.Join(s.dir, manifestFile), nil); err != nil {
		return fmt.Errorf("making the manifest: %w", err)
	}
	if err := s.fsys.SyncDir(s.dir); err != nil {
		return fmt.Errorf("syncing %s: %w", s.dir, err)
	}
	if err := s.fsys.SyncDir(filepath.Dir(s.dir)); err != nil {
		return fmt.Errorf("syncing %s: %w", filepath.Dir(s.dir), err)
	}
	return writeRun(s.fsys, s.dir, run)
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
	for _, p := range man.parts {
		if err := s.tally(&t, p); err != nil {
			return err
		}
	}
	w := newPartWriter(s.fsys, s.dir, run, man.size)
	p, err := s.putInOrder(w, v)
	if err != nil {
		return err
	}
	if p != nil {
		if err := s.tally(&t, *p); err != nil {
			return err
		}
	}
	s.spent = t.spent
	s.launch(w, v.next())
	return nil
}

// tally verifies a part and takes its attempts in.
func (s *Store) tally(t *tallier, p Part) error {
	for _, f := range p.Files {
		if err := verify(s.fsys, s.dir, f, f.Table == tAttempts || f.Table == tRewards); err != nil {
			return err
		}
	}
	return t.part(s.fsys, s.dir, p)
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
			fsys: s.fsys, dir: filepath.Join(s.dir, journalDir),
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

// Run is run.json as it stands. What it points to is read-only.
func (s *Store) Run() Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// UpdateRun changes run.json.
func (s *Store) UpdateRun(change func(*Run)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.run
	run.Invocations = slices.Clone(run.Invocations)
	change(&run)
	if err := writeRun(s.fsys, s.dir, run); err != nil {
		return err
	}
	s.run = run
	return nil
}

// Index is what was recorded when the store was opened. Whoever writes
// attempts adds each of them once Write has returned.
func (s *Store) Index() *Index { return s.index }

// Spent adds up every attempt that was recorded when the store was opened.
func (s *Store) Spent() dataset.Books { return s.spent }

// Close writes the last part, with a row for each attempt whose calls are
// known and that nobody ended, empties the journal and gives the lock back.
// After a failure the journal stays as it is, for the next Open. Close waits
// for every call that was made before it; it may be called again.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	close(s.committer.stop)
	s.running.Wait()
	err := s.committer.failed
	if err == nil {
		err = s.partErr
	}
	if err == nil {
		if rmErr := removeSegments(s.fsys, s.dir, s.committer.journal.next-1); rmErr != nil {
			s.log.Warn("removing journal segments; the next Open tries again", slog.Any("error", rmErr))
		}
	}
	return errors.Join(err, s.lock.Close())
}

// submit hands records to the committer and waits for its answer.
func (s *Store) submit(ctx context.Context, queue chan<- *request, records ...*record) error {
	r := &request{records: records, done: make(chan error, 1)}
	select {
	case queue <- r: // where there is room, ctx is not asked: what was paid for is written
	default:
		select {
		case queue <- r:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stopped:
			return ErrClosed
		}
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.stopped:
		return answerOf(r)
	}
}

// answerOf is the answer to a request that may have come too late.
func answerOf(r *request) error {
	select {
	case err := <-r.done:
		return err
	default:
		return ErrClosed
	}
}
