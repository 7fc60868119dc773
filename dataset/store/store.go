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
	"sync/atomic"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Options of a store. The zero value of each field is the default.
type Options struct {
	FS FS // nil: the real one
	// Variants by their hash: constants that are copied into each attempt's
	// row. Those of run.json are known besides.
	Variants map[string]dataset.Variant
	// Kept are the types of kept columns over all tasks of the run; nil: each
	// part has the types of its own rows.
	Kept      *KeptTypes
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
	tasks recentTasks   // whose row this invocation has written; Write's
	index *Index        // as of opening, then the caller's
	spent dataset.Books // as of opening
	ended atomic.Int64  // the latest end of an attempt written here, in microseconds

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
		if err := layOut(s.fsys, s.dir); err != nil {
			return err
		}
		if err := writeRun(s.fsys, s.dir, run); err != nil {
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
		blobs: newBlobs(opts.FS, dir), index: NewIndex(),
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
	if lockErr := s.lock.Close(); lockErr != nil {
		err = errors.Join(err, lockErr)
	}
	return err // alone it is the one that Write returned
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
