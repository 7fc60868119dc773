package runner

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// warnEvery is how often one kind of failure is told at most.
const warnEvery = time.Minute

// attemptLog tells of attempts: each at debug level, and what is no doing of the
// model as a warning, once in a while for each kind.
type attemptLog struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[failure]*told
}

// failure is a kind of failure: there are few.
type failure struct {
	reason dataset.ExitReason
	class  string
}

type told struct {
	at    time.Time
	since int // failures since then
	all   int
}

func newAttemptLog(log *slog.Logger) *attemptLog {
	return &attemptLog{log: log, kinds: map[failure]*told{}}
}

func (l *attemptLog) ended(ctx context.Context, tr *dataset.Trajectory) {
	attrs := [...]slog.Attr{
		slog.String("episode", tr.Episode.ID), slog.Int("attempt", tr.Episode.Attempt),
		slog.String("variant", tr.Episode.Variant), slog.String("exit_reason", string(tr.ExitReason)),
	}
	l.log.LogAttrs(ctx, slog.LevelDebug, "attempt ended", attrs[:]...)
	if !blameless(tr) {
		return
	}
	if n := l.due(failure{tr.ExitReason, tr.ErrorClass}, time.Now()); n > 0 {
		l.log.LogAttrs(ctx, slog.LevelWarn, "attempts fail", append(attrs[:],
			slog.String("error_class", tr.ErrorClass), slog.String("error", short(tr.Error)), slog.Int("count", n))...)
	}
}

// blameless reports whether an attempt failed and the model had no part in it.
func blameless(tr *dataset.Trajectory) bool {
	o := tr.Outcome()
	return o == dataset.OutcomeInfra || o == dataset.OutcomeTask || slices.Contains(tr.Flags, dataset.FlagUnscored)
}

// due counts a failure and returns how many of its kind are to be told now.
func (l *attemptLog) due(kind failure, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, seen := l.kinds[kind]
	if !seen {
		t = new(told)
		l.kinds[kind] = t
	}
	t.since++
	t.all++
	if seen && now.Sub(t.at) < warnEvery {
		return 0
	}
	n := t.since
	t.at, t.since = now, 0
	return n
}

// failures counts the failed attempts, nil for none, by error class, or by exit reason where
// they have none. Those that only lack a reward are left out.
func (l *attemptLog) failures() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var counts map[string]int
	for kind, t := range l.kinds {
		if kind.reason.Outcome() != dataset.OutcomeModel {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[cmp.Or(kind.class, string(kind.reason))] += t.all
		}
	}
	return counts
}
