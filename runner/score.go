package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// errScoreTimeout is the cause that ends a scorer that takes too long.
var errScoreTimeout = errors.New("scoring time limit")

// Status of a span.
const (
	statusOK        = "ok"
	statusError     = "error"
	statusCancelled = "cancelled"
)

// grader runs scorers: at most so many at once, each with a time limit, a
// recover and a copy of the trajectory of its own.
type grader struct {
	slots   chan struct{} // taken while a scorer is at work
	timeout time.Duration
}

func newGrader(o Options) *grader {
	return &grader{slots: make(chan struct{}, o.Grading), timeout: o.ScoreTimeout}
}

// acquire waits for a slot, even if ctx is done as long as one is free: what is
// finished is scored where that takes no waiting.
func (g *grader) acquire(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting to score: %w", context.Cause(ctx))
	}
}

// grade runs one scorer of tr and adds its span.
func (g *grader) grade(
	ctx context.Context, tr *dataset.Trajectory, id string, score func(context.Context) ([]dataset.Reward, error),
) ([]dataset.Reward, error) {
	if err := g.acquire(ctx); err != nil {
		return nil, err
	}
	defer func() { <-g.slots }()
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, errScoreTimeout)
	defer cancel()
	rewards, err := score(ctx)
	if err == nil {
		err = finite(rewards)
	}
	span := scoreSpan(id, rewards, err)
	span.Start, span.Duration = start.Sub(tr.StartedAt), time.Since(start)
	tr.Spans = append(tr.Spans, span)
	tr.Score += span.Duration
	return rewards, err
}

// finite refuses a value that is no number: it would spoil every sum it enters.
func finite(rewards []dataset.Reward) error {
	for i, r := range rewards {
		if r.Value != nil && (math.IsNaN(*r.Value) || math.IsInf(*r.Value, 0)) {
			rewards[i].Value = nil
			return fmt.Errorf("reward %q is %v", r.Name, *r.Value)
		}
	}
	return nil
}

func scoreSpan(id string, rewards []dataset.Reward, err error) dataset.Span {
	span := dataset.Span{ID: id, Kind: dataset.SpanScore, Name: id, Status: statusOK}
	if len(rewards) > 0 {
		span.Name = rewards[0].Name
	}
	if err == nil {
		return span
	}
	span.Status = statusError
	if errors.Is(err, context.Canceled) || errors.Is(err, dataset.ErrInterrupted) {
		span.Status = statusCancelled
	}
	if _, ok := errors.AsType[*model.Error](err); ok {
		span.ErrorClass = model.ClassOf(err)
	}
	span.Attrs = map[string]any{"error": err.Error()}
	return span
}

// inWorld lets the env score while its world lives. What it finds wrong with
// the task ends the attempt as the task's fault; what it could not do itself,
// only a new attempt can.
func (g *grader) inWorld(ctx context.Context, w *world, tr *dataset.Trajectory) {
	if tr.Outcome() != dataset.OutcomeModel || !w.scored() {
		return
	}
	rewards, err := g.grade(ctx, tr, "score.env", func(ctx context.Context) (_ []dataset.Reward, err error) {
		defer catch(&err)
		return w.score(ctx, view(tr))
	})
	addRewards(tr, rewards, dataset.FromEnv, "")
	if err != nil {
		worldUnscored(ctx, tr, err)
	}
}

// worldUnscored settles an attempt that its env could not score. One that was
// cut off in its scoring is cut off as a whole, since the world ends with it.
func worldUnscored(ctx context.Context, tr *dataset.Trajectory, err error) {
	caught, isPanic := errors.AsType[*panicked](err)
	switch {
	case isPanic:
		tr.ExitReason, tr.Error = caught.reason, caught.String()
	case errors.Is(err, dataset.ErrTask):
		tr.ExitReason, tr.Error = dataset.ExitVerifierError, err.Error()
	case ctx.Err() != nil:
		tr.ExitReason, tr.Error = cutOff(ctx), err.Error()
	default:
		unscored(tr, err)
		tr.AddFlag(dataset.FlagNeedsWorld)
	}
}

// catch makes a panic of a scorer its error. It is deferred.
func catch(err *error) {
	if v := recover(); v != nil {
		*err = asPanicked(v, dataset.ExitPanic)
	}
}

// offline runs the cell's scorers. They all run, so that one that fails hides
// nothing of the others.
func (g *grader) offline(ctx context.Context, cell *Cell, tr *dataset.Trajectory) {
	if tr.Outcome() != dataset.OutcomeModel {
		return
	}
	for i, s := range cell.Scorers {
		rewards, err := g.grade(ctx, tr, "score."+strconv.Itoa(i), func(ctx context.Context) ([]dataset.Reward, error) {
			return apart(ctx, s, view(tr))
		})
		addRewards(tr, rewards, dataset.FromScorer, cell.Variant.ScorerHash)
		if err != nil {
			unscored(tr, err)
		}
	}
}

// apart runs a scorer on a goroutine of its own.
func apart(ctx context.Context, s Scorer, view *dataset.Trajectory) ([]dataset.Reward, error) {
	done := make(chan returned[[]dataset.Reward], 1)
	go func() {
		done <- protect(dataset.ExitPanic, func() ([]dataset.Reward, error) {
			return s.Score(ctx, view.Episode.Task, view)
		})
	}()
	r := await(ctx, "scoring", done)
	if r.caught != nil {
		return nil, r.caught
	}
	return r.value, r.err
}

// view is a copy of tr for a scorer, which may outlive its call: the runner
// changes nothing that it reaches.
func view(tr *dataset.Trajectory) *dataset.Trajectory {
	v := *tr
	v.Spans = slices.Clip(v.Spans)
	v.Flags = slices.Clip(v.Flags)
	v.Rewards = slices.Clone(v.Rewards)
	return &v
}

func addRewards(tr *dataset.Trajectory, rewards []dataset.Reward, source, scorerHash string) {
	now := time.Now()
	for _, r := range rewards {
		if r.Source == "" {
			r.Source = source
		}
		if r.ScorerHash == "" {
			r.ScorerHash = scorerHash
		}
		if r.CreatedAt.IsZero() {
			r.CreatedAt = now
		}
		tr.Rewards = append(tr.Rewards, r)
	}
}

// unscored notes that the reward is not known. The outcome stays what the loop
// gave.
func unscored(tr *dataset.Trajectory, err error) {
	tr.AddFlag(dataset.FlagUnscored)
	if tr.Error == "" {
		tr.Error = "scoring: " + short(err.Error())
	}
}

// choose sets the attempt's reward: the chosen one of an attempt that was wholly
// scored. In any other none stays chosen, so that the reward's rows and the
// attempt's row say the same.
func choose(tr *dataset.Trajectory) {
	if tr.Outcome() != dataset.OutcomeModel || slices.Contains(tr.Flags, dataset.FlagUnscored) {
		for i := range tr.Rewards {
			tr.Rewards[i].Chosen = false
		}
	}
	tr.ChooseReward()
}
