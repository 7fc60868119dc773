package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// ticket is one episode on its way to a worker.
type ticket struct {
	episode   dataset.Episode
	variant   int // index in Plan.Cells
	infra     int // attempts of the present allowance that ended as infra
	offeredAt time.Time
}

// feed sends every episode that has still to run, and again those that are to
// be tried again, until admission ends, and closes out. Tasks come one after
// the other with all their variants and samples, so that groups stay together.
// It runs on one goroutine.
func (r *Runner) feed(admit context.Context, out chan<- *ticket) error {
	defer close(out)
	err := r.feedTasks(admit, out)
	r.feedRest(admit, out)
	for range r.retries.close() {
		r.meter.leave()
	}
	return err
}

func (r *Runner) feedTasks(admit context.Context, out chan<- *ticket) error {
	for task, err := range r.plan.Tasks {
		if err != nil {
			return fmt.Errorf("reading the tasks: %w", err)
		}
		if goesOn, err := r.feedTask(admit, task, out); !goesOn || err != nil {
			return err
		}
	}
	r.meter.complete()
	return nil
}

// feedTask reports whether admission goes on.
func (r *Runner) feedTask(admit context.Context, task dataset.Task, out chan<- *ticket) (bool, error) {
	for v, cells := range r.plan.Cells {
		if task.Source < 0 || task.Source >= len(cells) {
			return false, fmt.Errorf("task %q is of source %d, variant %q has %d",
				task.ID, task.Source, cells[0].Variant.Name, len(cells))
		}
		if !r.feedGroup(admit, v, task, out) {
			return false, nil
		}
	}
	return true, nil
}

// feedGroup offers the samples of a task under one variant and reports whether
// admission goes on.
func (r *Runner) feedGroup(admit context.Context, v int, task dataset.Task, out chan<- *ticket) bool {
	variant := &r.plan.Cells[v][task.Source].Variant
	group := dataset.GroupID(r.plan.Seed, task, variant.Hash, 0)
	for sample := range r.plan.Samples {
		id := dataset.EpisodeID(group, sample)
		st := r.opts.Index.State(id)
		r.meter.plan(v)
		if !due(st, r.opts) {
			r.meter.skip(v)
			continue
		}
		t := &ticket{variant: v, infra: st.Infra, episode: dataset.Episode{
			ID: id, GroupID: group, Variant: variant.Name, VariantHash: variant.Hash,
			Task: task, Sample: sample, Attempt: st.Attempts,
			Seed: dataset.EpisodeSeed(r.plan.Seed, task, sample),
		}}
		if r.opts.Retry.Infra {
			t.infra = 0
		}
		if !r.offer(admit, t, out) {
			return false
		}
	}
	return true
}

// offer hands t to a worker as soon as one is free, and reports whether
// admission goes on. An episode of a stopped variant is left for a resume.
func (r *Runner) offer(admit context.Context, t *ticket, out chan<- *ticket) bool {
	if r.halts.stopped(t.variant) {
		return !r.halts.all()
	}
	if r.over(admit) {
		return false
	}
	return r.feedDue(admit, out) && r.send(admit, t, out)
}

func (r *Runner) send(admit context.Context, t *ticket, out chan<- *ticket) bool {
	t.offeredAt = time.Now()
	r.retries.begin()
	select {
	case out <- t:
		return true
	case <-admit.Done():
		r.retries.end()
		return false
	}
}

// due reports whether an episode that stands at st has still to run.
func due(st store.State, o Options) bool {
	// A later attempt than the current one ended as infra or operator.
	infraLeft := st.Infra <= o.InfraRetries || o.Retry.Infra
	again := infraLeft || st.Current == st.Attempts-1
	switch st.Outcome {
	case dataset.OutcomeModel:
		return st.Unscored && st.NeedsWorld && again
	case dataset.OutcomeTask:
		return o.Retry.Task
	case dataset.OutcomeInfra:
		return infraLeft
	case dataset.OutcomeBudget:
		return again || o.Retry.Budget
	default: // operator, or no row yet
		return true
	}
}
