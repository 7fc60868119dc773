// Package runner fans episodes out over workers and hands every finished
// attempt to one drain that records it.
//
// [Run] is the way of one row: the feed goes through tasks, variants and
// samples and skips what has ended already; each worker makes an Env, lets the
// rollout play, scores, and hands the trajectory over; the drain alone writes.
// The package knows neither configs nor providers: a [Plan] brings everything.
package runner

import (
	"context"
	"iter"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/env"
)

// Rollout plays one attempt. Run fills tr as it goes, so that a panic loses
// nothing paid for, sets its ExitReason, and returns when all its goroutines,
// each with its own recover, have ended. It obeys ctx; the cause of ctx tells
// it why it has to stop. An error is a failure of the harness, which the
// runner records as infra unless tr has an ExitReason.
type Rollout interface {
	Run(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error
}

// Scorer judges what a trajectory left. It is safe for concurrent use. An
// error means that it could not judge: the attempt stays unscored.
type Scorer interface {
	Score(ctx context.Context, t dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error)
}

// Sink records. Write returns when all trs are safe on disk, or with an error
// after which nothing more can be written. Only the drain calls it.
type Sink interface {
	Write(ctx context.Context, trs []*dataset.Trajectory) error
	Rewards(ctx context.Context, late []dataset.LateReward) error
}

// Cell is one variant for one source of tasks. Env, Rollout and Scorers are
// shared by all its episodes.
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
	Grace        time.Duration // how long a drain may take after the first signal; 0: no bound
	ScoreTimeout time.Duration // default 5m
	CloseTimeout time.Duration // default 1m
	RunTime      time.Duration // limits.run.time; 0: none
	Retry        Retry
	Budget       *Budget      // shared with the models' gates; nil: none
	Index        *store.Index // what earlier invocations recorded; the drain adds to it
	// Recorded yields the attempts that wait for a reward, for scoring without
	// buying again; nil: there are none.
	Recorded iter.Seq2[*dataset.Trajectory, error]
}
