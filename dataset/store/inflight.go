package store

import (
	"cmp"
	"slices"

	"github.com/talaria-run/talaria/dataset"
)

// inflight holds the calls of attempts that have not ended. Every new segment
// begins with them, so that an old one can go. It belongs to the committer.
type inflight struct {
	attempts map[attemptKey]*attemptCalls
	order    []attemptKey // in the order of their first call, with some that have ended
}

// attemptCalls are the calls of one attempt: whose they are, once, and little
// for each, since an attempt may make hundreds.
type attemptCalls struct {
	of    CallRow // only the episode's identity
	calls []callState
}

type callState struct {
	callID, agent  string
	startUS, endUS int64
	ended          bool
	usage          *dataset.Usage
	cost           *int64
	unreported     int
	most           dataset.Spend
	errorClass     string
}

// note takes a call line in; an end replaces its start.
func (f *inflight) note(row *CallRow, kind recordKind) {
	if f.attempts == nil {
		f.attempts = map[attemptKey]*attemptCalls{}
	}
	key := attemptKey{row.EpisodeID, int32Clamp(row.Attempt)}
	a := f.attempts[key]
	if a == nil {
		a = &attemptCalls{of: row.identity()}
		f.attempts[key] = a
		f.order = append(f.order, key)
	}
	c := a.find(row.CallID)
	if c == nil {
		a.calls = append(a.calls, callState{callID: row.CallID, agent: row.Agent, startUS: cmp.Or(row.StartUS, row.AtUS)})
		c = &a.calls[len(a.calls)-1]
	}
	c.most = dataset.Spend{NanoUSD: row.MostNanoUSD, Tokens: row.MostTokens}
	if kind == kindCallEnd {
		c.ended, c.endUS, c.unreported, c.errorClass = true, row.AtUS, row.Unreported, row.ErrorClass
		c.usage, c.cost = clone(row.Usage), clone(row.CostNanoUSD)
	}
}

// find looks for a call from the end: it is nearly always the latest.
func (a *attemptCalls) find(callID string) *callState {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].callID == callID {
			return &a.calls[i]
		}
	}
	return nil
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// ended forgets the calls of attempts that have their rows.
func (f *inflight) ended(rows *Rows) {
	for i := range rows.Attempts {
		delete(f.attempts, attemptKey{rows.Attempts[i].EpisodeID, rows.Attempts[i].Attempt})
	}
	if len(f.order) > 2*len(f.attempts)+64 {
		f.order = slices.DeleteFunc(f.order, func(k attemptKey) bool { return f.attempts[k] == nil })
	}
}

// lines calls yield for a line of each call, in the order in which the attempts
// began: the end of one that has ended, else its start.
func (f *inflight) lines(yield func(CallRow, dataset.CallPhase) error) error {
	for _, key := range f.order {
		a := f.attempts[key]
		if a == nil {
			continue // it has ended
		}
		for i := range a.calls {
			if err := yield(a.calls[i].line(a.of)); err != nil {
				return err
			}
		}
	}
	return nil
}

// line is the line of a call of the attempt that of identifies.
func (c *callState) line(of CallRow) (CallRow, dataset.CallPhase) {
	of.CallID, of.Agent, of.AtUS = c.callID, c.agent, c.startUS
	of.MostTokens, of.MostNanoUSD = c.most.Tokens, c.most.NanoUSD
	if !c.ended {
		return of, dataset.CallStart
	}
	of.AtUS, of.StartUS = c.endUS, c.startUS
	of.Usage, of.CostNanoUSD, of.Unreported, of.ErrorClass = c.usage, c.cost, c.unreported, c.errorClass
	return of, dataset.CallEnd
}
