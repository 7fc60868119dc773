package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/talaria-run/talaria/dataset"
)

// rescored is what scoring a recorded attempt again gave.
type rescored struct {
	attempt    *dataset.Trajectory // with the chosen reward
	rows       []dataset.LateReward
	scorerHash string
}

// rescore scores the recorded attempts that wait for a reward, as many at a time
// as Options.Grading allows, and records what comes of it. No model is called.
// Those that fail again go on waiting.
func (r *Runner) rescore(admit, work context.Context) error {
	if r.opts.Recorded == nil {
		return nil
	}
	waiting := make(chan *dataset.Trajectory) // this goroutine sends and closes, graders receive
	results := make(chan rescored)            // graders send, the goroutine below receives; closed when they have ended
	var graders, recorder sync.WaitGroup
	var writeErr error
	ctx, abort := context.WithCancelCause(admit)
	defer abort(nil)
	recorder.Go(func() { writeErr = r.recordLate(context.WithoutCancel(work), results, abort) })
	for range r.opts.Grading {
		graders.Go(func() { r.scoreAgain(work, waiting, results) })
	}
	readErr := r.readWaiting(ctx, waiting)
	graders.Wait()
	close(results)
	recorder.Wait()
	if writeErr != nil {
		return writeErr
	}
	return readErr
}

// readWaiting sends the recorded attempts that wait for a reward.
func (r *Runner) readWaiting(ctx context.Context, out chan<- *dataset.Trajectory) error {
	defer close(out)
	for tr, err := range r.opts.Recorded {
		if err != nil {
			return fmt.Errorf("reading recorded attempts: %w", err)
		}
		if cell := r.cellOf(tr); cell == nil || !r.awaits(tr, cell) {
			continue
		}
		select {
		case out <- tr:
		case <-ctx.Done():
			r.meter.leave()
			return nil
		}
	}
	return nil
}

// awaits reports whether tr is its episode's current attempt and has no reward
// of the cell's scorers as they are now, though they could give one.
func (r *Runner) awaits(tr *dataset.Trajectory, cell *Cell) bool {
	st := r.opts.Index.State(tr.Episode.ID)
	stale := st.Unscored || st.ScorerHash != cell.Variant.ScorerHash
	return st.Outcome == dataset.OutcomeModel && st.Current == tr.Episode.Attempt &&
		stale && !st.NeedsWorld && len(cell.Scorers) > 0
}

// cellOf is the cell that a recorded attempt belongs to, nil if the plan has it
// no more.
func (r *Runner) cellOf(tr *dataset.Trajectory) *Cell {
	v, ok := r.variantOf[tr.Episode.VariantHash]
	if !ok {
		return nil
	}
	is := func(c Cell) bool { return c.Variant.Hash == tr.Episode.VariantHash }
	cells := r.plan.Cells[v]
	if s := tr.Episode.Task.Source; s >= 0 && s < len(cells) && is(cells[s]) {
		return &cells[s]
	}
	return &cells[slices.IndexFunc(cells, is)]
}

func (r *Runner) scoreAgain(work context.Context, in <-chan *dataset.Trajectory, out chan<- rescored) {
	for tr := range in {
		if late, ok := r.grader.again(work, r.cellOf(tr), tr); ok {
			out <- late
		}
	}
}

// again scores a recorded attempt and reports whether that gave it a reward.
// The env's own rewards stay as they are.
func (g *grader) again(ctx context.Context, cell *Cell, recorded *dataset.Trajectory) (rescored, bool) {
	tr := view(recorded)
	tr.Rewards = slices.DeleteFunc(tr.Rewards, func(r dataset.Reward) bool { return r.Source != dataset.FromEnv })
	tr.Flags = slices.DeleteFunc(slices.Clone(tr.Flags), func(f string) bool { return f == dataset.FlagUnscored })
	before := len(tr.Rewards)
	g.offline(ctx, cell, tr)
	choose(tr)
	if tr.Reward == nil {
		return rescored{}, false
	}
	late := rescored{attempt: tr, scorerHash: cell.Variant.ScorerHash}
	for _, reward := range tr.Rewards[before:] {
		if reward.Chosen && reward.Passed == nil {
			reward.Passed = tr.Passed // no row of the attempt will say it
		}
		late.rows = append(late.rows, dataset.LateReward{
			EpisodeID: tr.Episode.ID, Attempt: tr.Episode.Attempt, Reward: reward,
		})
	}
	return late, len(late.rows) > 0
}

// recordLate writes late rewards, all that are ready at a time. After an error
// it calls abort and goes on receiving.
func (r *Runner) recordLate(ctx context.Context, in <-chan rescored, abort context.CancelCauseFunc) error {
	var failed error
	for first := range in {
		batch := ready(in, first)
		if failed != nil {
			continue
		}
		if failed = r.writeLate(ctx, batch); failed != nil {
			abort(failed)
		}
	}
	return failed
}

// ready is first and what else can be received without waiting.
func ready(in <-chan rescored, first rescored) []rescored {
	batch := []rescored{first}
	for len(batch) < maxUnacked {
		select {
		case late, ok := <-in:
			if !ok {
				return batch
			}
			batch = append(batch, late)
		default:
			return batch
		}
	}
	return batch
}

func (r *Runner) writeLate(ctx context.Context, batch []rescored) error {
	var rows []dataset.LateReward
	for _, late := range batch {
		rows = append(rows, late.rows...)
	}
	if err := r.sink.Rewards(ctx, rows); err != nil {
		return fmt.Errorf("recording %d late rewards: %w", len(rows), err)
	}
	for _, late := range batch {
		ep := &late.attempt.Episode
		err := r.opts.Index.Reward(ep.ID, ep.Attempt, late.scorerHash, late.attempt.Reward, late.attempt.Passed)
		if err != nil {
			return fmt.Errorf("indexing a late reward: %w", err)
		}
	}
	r.meter.rescore(len(batch))
	return nil
}
