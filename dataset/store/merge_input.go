package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
)

// mergeInput is a run to be merged. Nothing of it is changed.
type mergeInput struct {
	fsys     FS
	log      *slog.Logger
	dir      string // as it was named
	run      Run
	parts    []Part
	segments []int // with rows that no part holds
	calls    inflight
	recorded map[attemptKey]bool // attempts of the journal
	orphans  []*Rows             // of attempts that a crash cut off
}

// openInputs opens all runs and makes sure that they are sound and of one plan.
func openInputs(ctx context.Context, fsys FS, log *slog.Logger, dirs []string) ([]*mergeInput, error) {
	if len(dirs) == 0 {
		return nil, errors.New("there is no run to merge")
	}
	inputs := make([]*mergeInput, len(dirs))
	seen := map[string]bool{}
	for i, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", dir, err)
		}
		if seen[path] {
			return nil, fmt.Errorf("%s: %w", dir, ErrNamedTwice)
		}
		seen[path] = true
		if inputs[i], err = openInput(fsys, log, dir); err != nil {
			return nil, err
		}
		if err := compatible(inputs[0], inputs[i]); err != nil {
			return nil, err
		}
	}
	for _, in := range inputs {
		if err := in.verify(ctx); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// ErrNamedTwice is returned for a run that is to be merged with itself.
var ErrNamedTwice = errors.New("the run is named twice")

func openInput(fsys FS, log *slog.Logger, dir string) (*mergeInput, error) {
	in := &mergeInput{fsys: fsys, log: log, dir: dir, recorded: map[attemptKey]bool{}}
	var err error
	if in.run, err = readRun(fsys, dir); err != nil {
		return nil, err
	}
	owner, writing, err := fsys.Locked(filepath.Join(dir, lockFile))
	if err != nil {
		log.Warn("nobody can tell whether a process writes the run; it is merged as it lies", slog.String("dir", dir), slog.Any("error", err))
	}
	if writing {
		return nil, fmt.Errorf("%s: %w (%s): wait for its end, or interrupt it", dir, ErrLocked, owner)
	}
	man, err := readManifest(fsys, dir)
	if err != nil {
		return nil, err
	}
	survey, err := takeSurvey(fsys, dir, man)
	if err != nil {
		return nil, err
	}
	in.parts, in.segments = man.parts, survey.remaining
	return in, in.readCalls()
}

// readCalls learns from the journal which attempts have ended and which calls
// belong to none of them.
func (in *mergeInput) readCalls() error {
	return eachSegmentLine(in, func(kind recordKind, l *callLine) error {
		for i := range l.Calls {
			in.calls.note(&l.Calls[i], kind)
		}
		for _, a := range l.Attempts {
			in.recorded[attemptKey{a.EpisodeID, a.Attempt}] = true
		}
		return nil
	})
}

// callLine is a journal line without rows.
type callLine struct {
	Calls    []CallRow `json:"calls"`
	Attempts []struct {
		EpisodeID string `json:"episode_id"`
		Attempt   int32  `json:"attempt"`
	} `json:"attempts"`
}

// verify compares the parts with the manifest, all of them.
func (in *mergeInput) verify(ctx context.Context) error {
	for _, p := range in.parts {
		for _, f := range p.Files {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := verify(in.fsys, in.dir, f, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachSegmentLine decodes each record of the journal once.
func eachSegmentLine[T any](in *mergeInput, yield func(recordKind, *T) error) error {
	seen := map[uint64]bool{}
	for _, n := range in.segments {
		if err := eachLineOf(in, n, seen, yield); err != nil {
			return err
		}
	}
	return nil
}

func eachLineOf[T any](in *mergeInput, number int, seen map[uint64]bool, yield func(recordKind, *T) error) error {
	path := filepath.Join(in.dir, journalDir, segmentName(number))
	b, err := readFile(in.fsys, path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	d, err := newDecoder()
	if err != nil {
		return err
	}
	defer d.close()
	bad, err := scan(b, func(f frame, _ []byte) error {
		if seen[f.seq] {
			return nil // written a second time after an error
		}
		seen[f.seq] = true
		var l T
		if err := d.decode(f, &l); err != nil {
			return &DamageError{Path: path, Err: err, Advice: "restore it from a copy of the run; nothing was changed"}
		}
		return yield(f.kind, &l)
	})
	if bad.broken > 0 {
		in.log.Warn("journal segment is damaged; the records behind the damage were read",
			slog.String("file", path), slog.Int("offset", bad.at), slog.Int("bytes", bad.broken))
	}
	return err
}

// mergeHead is what tells attempts apart.
type mergeHead struct {
	EpisodeID       string  `parquet:"episode_id" json:"episode_id"`
	Attempt         int32   `parquet:"attempt" json:"attempt"`
	ParentEpisodeID *string `parquet:"parent_episode_id,optional" json:"parent_episode_id"`
	Outcome         string  `parquet:"outcome" json:"outcome"`
	ExitReason      string  `parquet:"exit_reason" json:"exit_reason"`
	VariantHash     string  `parquet:"variant_hash" json:"variant_hash"`
	Turns           int32   `parquet:"turns" json:"turns"`
	Requests        int32   `parquet:"requests" json:"requests"`
	InputTokens     int64   `parquet:"input_tokens" json:"input_tokens"`
	OutputTokens    int64   `parquet:"output_tokens" json:"output_tokens"`
	CostKnown       int64   `parquet:"cost_known_nanousd" json:"cost_known_nanousd"`
	StartedAt       int64   `parquet:"started_at,timestamp(microsecond)" json:"started_at"`
	EndedAt         int64   `parquet:"ended_at,timestamp(microsecond)" json:"ended_at"`
}

func headOf(a *AttemptRow) *mergeHead {
	return &mergeHead{
		EpisodeID: a.EpisodeID, Attempt: a.Attempt, ParentEpisodeID: a.ParentEpisodeID,
		Outcome: a.Outcome, ExitReason: a.ExitReason, VariantHash: a.VariantHash,
		Turns: a.Turns, Requests: a.Requests, InputTokens: a.InputTokens, OutputTokens: a.OutputTokens,
		CostKnown: a.CostKnownNanoUSD, StartedAt: a.StartedAt, EndedAt: a.EndedAt,
	}
}

// heads calls yield for each attempt: of the parts, of the journal, and those
// that a crash cut off.
func (in *mergeInput) heads(yield func(*mergeHead) error) error {
	for _, p := range in.parts {
		if err := eachRow(in.fsys, in.dir, p, tAttempts, yield); err != nil {
			return err
		}
	}
	err := eachSegmentLine(in, func(_ recordKind, l *struct {
		Attempts []mergeHead `json:"attempts"`
	},
	) error {
		for i := range l.Attempts {
			if err := yield(&l.Attempts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, rows := range in.orphans {
		for i := range rows.Attempts {
			if err := yield(headOf(&rows.Attempts[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// buryOrphans makes the rows of attempts that a crash cut off, under the
// descriptions of their variants.
func (in *mergeInput) buryOrphans() error {
	if len(in.calls.attempts) == 0 {
		return nil
	}
	highest := map[string]int32{}
	for key := range in.calls.attempts {
		highest[key.episodeID] = -1
	}
	err := in.heads(func(h *mergeHead) error {
		if at, wanted := highest[h.EpisodeID]; wanted {
			highest[h.EpisodeID] = max(at, h.Attempt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	flat := newFlattener(in.run, Options{})
	// Attempts of an episode are recorded in order.
	trs := orphans(&in.calls, func(k attemptKey) bool { return in.recorded[k] || highest[k.episodeID] >= k.attempt })
	for _, tr := range trs {
		rows := new(Rows)
		flat.trajectory(rows, tr)
		in.orphans = append(in.orphans, rows)
	}
	return nil
}

// blobs are the names of the long parts of messages.
func (in *mergeInput) blobs() ([]string, error) {
	names, err := in.fsys.ReadDir(filepath.Join(in.dir, blobDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the blobs of %s: %w", in.dir, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return len(name) != 64 }), nil
}
