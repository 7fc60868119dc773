package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// attempt plays ep once, scores it, and closes its world, whatever happens. The
// error is the rollout's, for what it tells of the variant; the trajectory says
// everything about the attempt.
func (r *Runner) attempt(
	ctx context.Context, cell *Cell, ep dataset.Episode, offered time.Time,
) (*dataset.Trajectory, error) {
	tr := begin(ep, offered)
	w := newWorld(r.opts.CloseTimeout)
	err := r.play(ctx, cell, w, tr)
	settle(ctx, tr, err)
	r.grader.inWorld(ctx, w, tr)
	r.closeWorld(ctx, w, tr) // before the scorers: a sandbox is scarce, and they do not need it
	r.grader.offline(ctx, cell, tr)
	choose(tr)
	tr.EndedAt = time.Now()
	return tr, err
}

func begin(ep dataset.Episode, offered time.Time) *dataset.Trajectory {
	now := time.Now()
	queued := now.Sub(offered)
	return &dataset.Trajectory{
		Episode:   ep,
		StartedAt: now,
		Queued:    queued,
		Spans: []dataset.Span{{
			ID: "queue", Kind: dataset.SpanQueue, Name: "queue",
			Start: -queued, Duration: queued, Status: statusOK,
		}},
	}
}

// play makes the env and lets the rollout play in this goroutine. A panic of
// theirs ends the attempt and nothing else: tr keeps what it has.
func (r *Runner) play(ctx context.Context, cell *Cell, w *world, tr *dataset.Trajectory) (err error) {
	defer func() {
		if v := recover(); v != nil {
			p := asPanicked(v, dataset.ExitPanic)
			tr.ExitReason, tr.Error = p.reason, p.String()
		}
	}()
	if err := w.open(ctx, cell.Env); err != nil {
		if errors.Is(err, dataset.ErrTask) {
			tr.ExitReason = dataset.ExitResetError
		}
		return fmt.Errorf("making the env: %w", err)
	}
	return cell.Rollout.Run(ctx, w.face(), tr.Episode, tr)
}

// settle makes sure that an attempt has its one exit reason and that an error
// is on record.
func settle(ctx context.Context, tr *dataset.Trajectory, err error) {
	if tr.ExitReason == "" {
		tr.ExitReason = exitOf(ctx, err)
	}
	if err == nil {
		return
	}
	if tr.Error == "" {
		tr.Error = err.Error()
	}
	if _, ok := errors.AsType[*model.Error](err); ok && tr.ErrorClass == "" {
		tr.ErrorClass = model.ClassOf(err)
	}
}

// exitOf is the exit reason of an attempt whose rollout gave none.
func exitOf(ctx context.Context, err error) dataset.ExitReason {
	_, byModel := errors.AsType[*model.Error](err)
	switch {
	case ctx.Err() != nil:
		return cutOff(ctx)
	case errors.Is(err, dataset.ErrRunBudget):
		return dataset.ExitRunBudget
	case errors.Is(err, dataset.ErrTask):
		return dataset.ExitEnvError
	case byModel:
		return dataset.ExitProviderError
	default:
		return dataset.ExitInfraError
	}
}

// cutOff is the exit reason of an attempt in flight when ctx, the run's, ended.
func cutOff(ctx context.Context) dataset.ExitReason {
	if errors.Is(context.Cause(ctx), dataset.ErrRunBudget) {
		return dataset.ExitRunBudget
	}
	return dataset.ExitInterrupted
}

// closeWorld closes the env. What goes wrong changes neither outcome nor
// reward, but somebody may have to clean up: it is logged, and on record in a
// span.
func (r *Runner) closeWorld(ctx context.Context, w *world, tr *dataset.Trajectory) {
	start := time.Now()
	err := w.Close(ctx)
	if err == nil {
		return
	}
	tr.Spans = append(tr.Spans, dataset.Span{
		ID: "close", Kind: dataset.SpanEnv, Name: "close", Status: statusError,
		Start: start.Sub(tr.StartedAt), Duration: time.Since(start),
		Attrs: map[string]any{"error": err.Error()},
	})
	if tr.Error == "" {
		tr.Error = "closing the env: " + short(err.Error())
	}
	r.opts.Log.WarnContext(ctx, "env not closed",
		slog.String("episode", tr.Episode.ID), slog.Int("attempt", tr.Episode.Attempt), slog.Any("error", err))
}
