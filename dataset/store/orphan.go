package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// orphans makes trajectories of attempts whose calls were recorded and that
// never ended: the process was killed. recorded tells which attempts have rows.
func orphans(calls *inflight, recorded func(attemptKey) bool) []*dataset.Trajectory {
	var trs []*dataset.Trajectory
	for _, key := range calls.order {
		a := calls.attempts[key]
		if a == nil || recorded(key) {
			continue
		}
		delete(calls.attempts, key) // an attempt may stand in order twice
		trs = append(trs, a.killed())
	}
	return trs
}

// killed is the trajectory of an attempt of which only calls are left: its cost
// and the calls themselves.
func (a *attemptCalls) killed() *dataset.Trajectory {
	slices.SortStableFunc(a.calls, func(x, y callState) int { return cmp.Compare(x.startUS, y.startUS) })
	tr := &dataset.Trajectory{
		Episode:    a.of.episode(),
		ExitReason: dataset.ExitKilled,
		Error:      "the process ended before the attempt did",
		StartedAt:  fromMicros(a.calls[0].startUS),
	}
	for i := range a.calls {
		c := &a.calls[i]
		end := c.booked()
		tr.Books.Add(end)
		tr.Spans = append(tr.Spans, c.span(end, tr.StartedAt))
		if at := fromMicros(max(c.startUS, c.endUS)); at.After(tr.EndedAt) {
			tr.EndedAt = at
		}
	}
	tr.ChooseReward()
	return tr
}

// booked is the call as the books take it: one without an end may have been
// paid for, and nobody knows how much.
func (c *callState) booked() dataset.Call {
	call := dataset.Call{Phase: dataset.CallEnd, CallID: c.callID, Agent: c.agent, AtUnixUS: c.endUS, Most: c.most}
	if !c.ended {
		call.Unreported, call.ErrorClass = 1, string(dataset.ExitKilled)
		return call
	}
	call.Usage, call.CostNanoUSD, call.Unreported, call.ErrorClass = c.usage, c.cost, c.unreported, c.errorClass
	return call
}

func (c *callState) span(booked dataset.Call, attemptStart time.Time) dataset.Span {
	start := fromMicros(c.startUS)
	s := dataset.Span{
		ID: c.callID, Kind: dataset.SpanModel, Name: "generate", Agent: c.agent, CallID: c.callID,
		Start: start.Sub(attemptStart), Status: "ok", ErrorClass: booked.ErrorClass,
		Usage: booked.Usage, CostNanoUSD: booked.CostNanoUSD,
	}
	if c.ended {
		s.Duration = fromMicros(c.endUS).Sub(start)
	}
	if booked.ErrorClass != "" {
		s.Status = "error"
	}
	return s
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

// identity is the row without what differs between an attempt's calls.
func (r *CallRow) identity() CallRow {
	of := *r
	of.CallID, of.Agent, of.AtUS, of.StartUS = "", "", 0, 0
	of.MostTokens, of.MostNanoUSD = 0, 0
	of.Usage, of.CostNanoUSD, of.Unreported, of.ErrorClass = nil, nil, 0, ""
	return of
}
