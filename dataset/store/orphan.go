package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// orphans makes trajectories of attempts whose calls were recorded and that
// never ended: the process was killed. recorded tells which attempts have rows.
func orphans(calls inflight, recorded func(attemptKey) bool) []*dataset.Trajectory {
	var trs []*dataset.Trajectory
	for _, key := range calls.order {
		lines := calls.lines[key]
		if len(lines) == 0 || recorded(key) {
			continue
		}
		delete(calls.lines, key) // an attempt may stand in order twice
		trs = append(trs, killed(lines))
	}
	return trs
}

// killed is the trajectory of an attempt of which only call lines are left: its
// cost and the calls themselves.
func killed(lines []record) *dataset.Trajectory {
	slices.SortStableFunc(lines, func(a, b record) int { return cmp.Compare(a.call.startUS, b.call.startUS) })
	first := lines[0].call
	tr := &dataset.Trajectory{
		Episode:    first.row.episode(),
		ExitReason: dataset.ExitKilled,
		Error:      "the process ended before the attempt did",
		StartedAt:  fromMicros(first.startUS),
		EndedAt:    fromMicros(first.row.AtUS),
	}
	for i := range lines {
		c := &lines[i].call
		end := c.row.end(lines[i].kind)
		tr.Books.Add(end)
		tr.Spans = append(tr.Spans, c.span(end, tr.StartedAt))
		if at := fromMicros(c.row.AtUS); at.After(tr.EndedAt) {
			tr.EndedAt = at
		}
	}
	tr.ChooseReward()
	return tr
}

// end is the call as the books take it: one without an end may have been paid
// for, and nobody knows how much.
func (r *CallRow) end(kind recordKind) dataset.Call {
	c := dataset.Call{Phase: dataset.CallEnd, CallID: r.CallID, Agent: r.Agent, AtUnixUS: r.AtUS}
	if kind == kindCallStart {
		c.Unreported, c.ErrorClass = 1, string(dataset.ExitKilled)
		return c
	}
	c.Usage, c.CostNanoUSD, c.Unreported, c.ErrorClass = r.Usage, r.CostNanoUSD, r.Unreported, r.ErrorClass
	return c
}

func (r *CallRow) episode() dataset.Episode {
	return dataset.Episode{
		ID: r.EpisodeID, GroupID: r.GroupID, Variant: r.Variant, VariantHash: r.VariantHash,
		Task: dataset.Task{
			ID: r.TaskID, Hash: r.TaskHash, Occurrence: r.Occurrence, Dataset: r.Dataset, Split: deref(r.Split),
		},
		Sample: r.Sample, Epoch: r.Epoch, Attempt: r.Attempt, Seed: r.Seed,
	}
}

func (c *callRef) span(end dataset.Call, attemptStart time.Time) dataset.Span {
	start := fromMicros(c.startUS)
	s := dataset.Span{
		ID: c.callID, Kind: dataset.SpanModel, Name: "generate", Agent: c.row.Agent, CallID: c.callID,
		Start: start.Sub(attemptStart), Duration: fromMicros(c.row.AtUS).Sub(start),
		Status: "ok", ErrorClass: end.ErrorClass, Usage: end.Usage, CostNanoUSD: end.CostNanoUSD,
	}
	if end.ErrorClass != "" {
		s.Status = "error"
	}
	return s
}
