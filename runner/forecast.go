package runner

import (
	"fmt"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// Forecast counts the episodes of one cell by what a run of the plan would do
// to them.
type Forecast struct {
	Planned int
	Due     int // would run
	Again   int // of Due: an attempt of them is recorded already
	// Waiting have ended and would be scored without a model call.
	Waiting int
}

// Reused is how many episodes an earlier invocation has ended for good.
func (f Forecast) Reused() int { return f.Planned - f.Due }

// Add adds g to f.
func (f *Forecast) Add(g Forecast) {
	f.Planned += g.Planned
	f.Due += g.Due
	f.Again += g.Again
	f.Waiting += g.Waiting
}

// Forecast goes through the plan's tasks once and tells, for each cell, what a
// run with these options would do. Of the options it reads Index, InfraRetries
// and Retry. It runs nothing.
func (p Plan) Forecast(o Options) ([][]Forecast, error) {
	if o.Index == nil {
		o.Index = store.NewIndex()
	}
	all := make([][]Forecast, len(p.Cells))
	for v := range p.Cells {
		all[v] = make([]Forecast, len(p.Cells[v]))
	}
	for task, err := range p.Tasks {
		if err != nil {
			return nil, fmt.Errorf("reading the tasks: %w", err)
		}
		for v, cells := range p.Cells {
			if task.Source < 0 || task.Source >= len(cells) {
				return nil, fmt.Errorf("task %q is of source %d, variant %d has %d", task.ID, task.Source, v, len(cells))
			}
			all[v][task.Source].Add(p.forecast(&cells[task.Source].Variant, task, o))
		}
	}
	return all, nil
}

// forecast is a group's: all samples of a task under one variant.
func (p Plan) forecast(v *dataset.Variant, task dataset.Task, o Options) Forecast {
	f := Forecast{Planned: p.Samples}
	if o.Index.Len() == 0 {
		f.Due = p.Samples
		return f
	}
	group := dataset.GroupID(p.Seed, task, v.Hash, 0)
	for sample := range p.Samples {
		st := o.Index.State(dataset.EpisodeID(group, sample))
		switch {
		case due(st, o):
			f.Due++
			f.Again += min(st.Attempts, 1)
		case st.Outcome == dataset.OutcomeModel && !st.NeedsWorld && (st.Unscored || st.ScorerHash != v.ScorerHash):
			f.Waiting++
		}
	}
	return f
}
