package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
)

// MergeOptions say how runs are merged. The zero value of each field is the
// default.
type MergeOptions struct {
	FS     FS           // nil: the real one
	Logger *slog.Logger // nil: none
	// Prefer decides which attempt is kept of an episode that ended as the
	// model's own doing in several runs, and differently.
	Prefer Prefer
	// Run is what the merged run does not take over: RunID, Version, Commit, Go
	// and Host.
	Run Run
}

// Prefer is a rule for episodes that several runs brought to their end.
type Prefer string

// The rules, in the order in which the runs are named.
const (
	PreferNone  Prefer = "" // to merge is refused
	PreferFirst Prefer = "first"
	PreferLast  Prefer = "last"
)

// Merged is what came of a merge.
type Merged struct {
	Run      Run
	Attempts int64
	Twins    int      // attempts that several runs held, each kept once
	Dropped  int      // attempts that Prefer left out
	Missing  []string // shards of the plan that no run was of
}

// ErrIsRun is returned for a directory that holds a run already.
var ErrIsRun = errors.New("it holds a run already")

// Merge makes one run of several, or of shards of one, in out, which is absent
// or empty; what an earlier merge that was cut off left there is removed. The
// runs are read as they lie, journals included, and not changed. Until the
// merged run is whole, out has no run.json and is no run.
//
// Every row takes the merged run's id. An attempt that several runs hold, equal
// but for run and number, is kept once. Other attempts of an episode are
// numbered anew by the time when they ended, the model's own behind all others.
// Where several runs ended an episode as the model's own doing, and differently,
// Options.Prefer decides, else the error is a [ConflictError].
//
// Runs that cannot be of one plan give a [MismatchError], one that a process
// writes [ErrLocked], a directory without a run [ErrNotRun], damage a
// [DamageError].
func Merge(ctx context.Context, out string, dirs []string, opts MergeOptions) (Merged, error) {
	if opts.FS == nil {
		opts.FS = osFS{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	inputs, err := openInputs(ctx, opts.FS, opts.Logger, dirs)
	if err != nil {
		return Merged{}, err
	}
	plan, err := planMerge(ctx, inputs, opts.Prefer)
	if err != nil {
		return Merged{}, err
	}
	m := &merger{fsys: opts.FS, log: opts.Logger, dir: out, inputs: inputs, plan: plan, tasks: map[[16]byte]bool{}}
	m.run, m.result.Missing = mergeRuns(inputs, opts.Run)
	if err := m.into(ctx); isDiskFull(err) {
		return Merged{}, fmt.Errorf("%w: the disk of %s is full: make room or name another place, and merge again; the runs are as they were", err, out)
	} else if err != nil {
		return Merged{}, err
	}
	m.result.Run, m.result.Twins, m.result.Dropped = m.run, plan.twins, plan.dropped
	return m.result, nil
}

// merger writes the merged run. It belongs to one goroutine.
type merger struct {
	fsys   FS
	log    *slog.Logger
	dir    string
	inputs []*mergeInput
	plan   *mergePlan
	run    Run
	tasks  map[[16]byte]bool // whose row is written
	result Merged
}

// mergeFile marks a directory that a merge fills: what is in it may be removed
// by the next one.
const mergeFile = "merging"

// into makes the merged run in its directory. After an error it removes what it
// wrote.
func (m *merger) into(ctx context.Context) error {
	_, absent := m.fsys.ReadDir(m.dir)
	if err := makeDir(m.fsys, m.dir); err != nil {
		return err
	}
	lockPath := filepath.Join(m.dir, lockFile)
	lock, err := m.fsys.Lock(lockPath, owner())
	if err != nil {
		return fmt.Errorf("%s: %w", m.dir, err)
	}
	if err := m.vacate(); err != nil {
		return errors.Join(err, lock.Close())
	}
	err = m.fill(ctx)
	if err == nil {
		return lock.Close()
	}
	m.clear()
	_ = lock.Close() // nothing is left that it guards
	if absent != nil {
		_ = m.fsys.Remove(lockPath)
		_ = m.fsys.Remove(m.dir)
	}
	return err
}

// vacate makes sure that nothing of somebody else is in the directory, and
// removes what an earlier merge left.
func (m *merger) vacate() error {
	names, err := m.fsys.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", m.dir, err)
	}
	ours := false
	other := ""
	for _, name := range names {
		switch name {
		case runFile:
			return fmt.Errorf("%s: %w: name a directory that does not exist yet", m.dir, ErrIsRun)
		case mergeFile:
			ours = true
		case lockFile:
		default:
			other = name
		}
	}
	if other != "" && !ours {
		return fmt.Errorf("%s %w (it has %s): name a directory that does not exist yet", m.dir, ErrNotEmpty, other)
	}
	if ours {
		m.log.Info("removing what an earlier merge left", slog.String("dir", m.dir))
		m.clear()
	}
	return nil
}

// ErrNotEmpty is returned for a directory in which something else lies.
var ErrNotEmpty = errors.New("is not empty")

// fill writes everything, and run.json last.
func (m *merger) fill(ctx context.Context) error {
	marker := filepath.Join(m.dir, mergeFile)
	if err := writeSynced(m.fsys, marker, []byte("talaria merge fills this directory; it is no run yet\n")); err != nil {
		return fmt.Errorf("marking the merged run: %w", err)
	}
	if err := m.fsys.SyncDir(m.dir); err != nil { // before anything that only the mark explains
		return fmt.Errorf("syncing %s: %w", m.dir, err)
	}
	if err := layOut(m.fsys, m.dir); err != nil {
		return err
	}
	if err := m.copyBlobs(ctx); err != nil {
		return err
	}
	if err := m.writeParts(ctx); err != nil {
		return err
	}
	if err := writeRun(m.fsys, m.dir, m.run); err != nil {
		return err
	}
	if err := m.fsys.Remove(marker); err != nil {
		m.log.Warn("removing the mark of the merge; it does no harm", slog.Any("error", err))
	}
	return nil
}

// clear removes what a merge writes, the mark last. What cannot be removed stays
// for the next one.
func (m *merger) clear() {
	_ = m.fsys.Remove(filepath.Join(m.dir, runFile)) // first: from here on it is no run
	for _, name := range append(Tables(), journalDir, blobDir) {
		dir := filepath.Join(m.dir, name)
		files, err := m.fsys.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, file := range files {
			_ = m.fsys.Remove(filepath.Join(dir, file))
		}
		_ = m.fsys.Remove(dir)
	}
	for _, name := range []string{manifestFile, runFile + tmpSuffix} {
		_ = m.fsys.Remove(filepath.Join(m.dir, name))
	}
	if m.fsys.SyncDir(m.dir) == nil { // else a power failure could bring back what the mark explains
		_ = m.fsys.Remove(filepath.Join(m.dir, mergeFile))
	}
}
