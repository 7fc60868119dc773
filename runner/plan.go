// Package runner fans episodes out over workers and hands every finished
// attempt to one drain that records it.
//
// [Runner.Run] is the way of one row: the feed goes through tasks, variants and
// samples and skips what has ended already; each worker makes an Env, lets the
// rollout play, scores, and hands the trajectory over; the drain alone writes.
// The package knows neither configs nor providers: a [Plan] brings everything.
//
// A failed episode is a row. A Go error of Run means that the run cannot go on,
// or could not for one of its variants.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/env"
)

// Rollout plays one attempt. Run fills tr as it goes, so that a panic loses
// nothing paid for, sets its ExitReason, and returns when all its goroutines,
// each with its own recover, have ended. It obeys ctx; the cause of ctx tells
// it why it has to stop. It does not close e. An error is a failure of the
// harness, which the runner records as infra unless tr has an ExitReason; one
// with a fatal [model.Error] in its chain also stops the variant.
//
// Every call to e may return before the env has, once ctx is done and the env
// does not obey it; a panic of the env reaches the caller of e.
type Rollout interface {
	Run(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error
}

// Scorer judges what a trajectory left. It is safe for concurrent use and does
// not change tr. An error means that it could not judge: the attempt stays
// unscored.
type Scorer interface {
	Score(ctx context.Context, t dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error)
}

// Sink records. Write returns when all trs are safe on disk, or with an error
// after which nothing more can be written. One goroutine at a time calls it.
type Sink interface {
	Write(ctx context.Context, trs []*dataset.Trajectory) error
	Rewards(ctx context.Context, late []dataset.LateReward) error
}

// Cell is one variant for one source of tasks. Env, Rollout and Scorers are
// shared by all its episodes; whoever made them closes them after the run.
type Cell struct {
	Variant dataset.Variant
	Env     env.Factory
	Rollout Rollout
	Scorers []Scorer
}

// Plan is what to run: every task under every variant, Samples times.
type Plan struct {
	Seed    int64
	Samples int
	// Tasks yields the tasks in order; an error ends the run.
	Tasks iter.Seq2[dataset.Task, error]
	// Cells holds the cell of each variant and source: Cells[variant][task.Source].
	Cells [][]Cell
	// Total is the number of episodes where it is known beforehand, else 0;
	// progress shows it.
	Total int
}

// Retry names outcomes that get one fresh allowance on resume.
type Retry struct{ Infra, Task, Budget bool }

// Options of a run. The zero value of each field is the default.
type Options struct {
	Workers      int           // episodes in flight; default 256
	Grading      int           // scorers at work at once; default 8
	InfraRetries int           // further attempts after infra, over all invocations
	RetryPause   time.Duration // before the first of them, at most; it doubles with each, up to a minute; default 1s
	Grace        time.Duration // how long a drain may take after the first signal; 0: no bound
	ScoreTimeout time.Duration // default 5m
	CloseTimeout time.Duration // default 1m
	RunTime      time.Duration // limits.run.time; 0: none
	Retry        Retry
	Budget       *Budget      // shared with the models' gates; nil: none
	Index        *store.Index // what earlier invocations recorded; the drain adds to it
	// Recorded yields the attempts that wait for a reward, for scoring without
	// buying again; nil: there are none. Those that do not wait are passed over.
	Recorded iter.Seq2[*dataset.Trajectory, error]
	// SkippedRows tells how many bad rows the sources have skipped so far; nil:
	// none. It is asked once, when the feed has ended.
	SkippedRows func() int
	Log         *slog.Logger // nil: discarded
}

const (
	defaultWorkers      = 256
	defaultGrading      = 8
	defaultRetryPause   = time.Second // most of what passes is over by then
	defaultScoreTimeout = 5 * time.Minute
	defaultCloseTimeout = time.Minute // a container's stop and removal, with room
)

func (o Options) applyDefaults() Options {
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	o.Grading = cmp.Or(o.Grading, defaultGrading)
	o.RetryPause = cmp.Or(o.RetryPause, defaultRetryPause)
	o.ScoreTimeout = cmp.Or(o.ScoreTimeout, defaultScoreTimeout)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, defaultCloseTimeout)
	if o.Index == nil {
		o.Index = store.NewIndex()
	}
	if o.Budget == nil {
		o.Budget = NewBudget(Limits{}, Spent(o.Index))
	}
	if o.SkippedRows == nil {
		o.SkippedRows = func() int { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"workers", int64(o.Workers)},
		{"grading", int64(o.Grading)},
		{"infra retries", int64(o.InfraRetries)},
		{"retry pause", int64(o.RetryPause)},
		{"grace", int64(o.Grace)},
		{"score timeout", int64(o.ScoreTimeout)},
		{"close timeout", int64(o.CloseTimeout)},
		{"run time", int64(o.RunTime)},
	} {
		if n.value < 0 {
			return fmt.Errorf("runner options: %s is negative", n.name)
		}
	}
	return nil
}

func (p Plan) validate() error {
	switch {
	case p.Tasks == nil:
		return errors.New("plan has no tasks")
	case p.Samples < 1:
		return fmt.Errorf("plan has %d samples a task", p.Samples)
	case len(p.Cells) == 0:
		return errors.New("plan has no variants")
	}
	owner := map[string]int{} // variant hash to variant
	for v, cells := range p.Cells {
		if err := p.validateCells(v, cells, owner); err != nil {
			return err
		}
	}
	return nil
}

// validateCells refuses two variants of one hash: their episodes would have the
// same ids.
func (p Plan) validateCells(v int, cells []Cell, owner map[string]int) error {
	if len(cells) == 0 {
		return fmt.Errorf("variant %d of the plan has no cell", v)
	}
	name := cells[0].Variant.Name
	for i, c := range cells {
		other, seen := owner[c.Variant.Hash]
		switch {
		case c.Env == nil || c.Rollout == nil:
			return fmt.Errorf("cell %d of variant %q has no env or no rollout", i, name)
		case c.Variant.Name != name:
			return fmt.Errorf("cell %d of variant %q is named %q", i, name, c.Variant.Name)
		case c.Variant.Hash == "":
			return fmt.Errorf("cell %d of variant %q has no hash", i, name)
		case seen && other != v:
			return fmt.Errorf("variants %q and %q are the same", p.Cells[other][0].Variant.Name, name)
		}
		owner[c.Variant.Hash] = v
	}
	return nil
}
