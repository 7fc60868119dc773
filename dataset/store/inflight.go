package store

import "slices"

// inflight holds the call lines of attempts that have not ended. Every new
// segment begins with them, so that an old one can go. It belongs to the
// committer.
type inflight struct {
	lines map[attemptKey][]record
	order []attemptKey // in the order of their first call, with some that have ended
}

// note takes a call line in; an end replaces its start.
func (f *inflight) note(r record) {
	if f.lines == nil {
		f.lines = map[attemptKey][]record{}
	}
	lines, seen := f.lines[r.call.of]
	if !seen {
		f.order = append(f.order, r.call.of)
	}
	i := slices.IndexFunc(lines, func(l record) bool { return l.call.callID == r.call.callID })
	switch {
	case i < 0:
		lines = append(lines, r)
	case r.kind == kindCallEnd:
		r.call.startUS = min(r.call.startUS, lines[i].call.startUS)
		lines[i] = r
	}
	f.lines[r.call.of] = lines
}

// ended forgets the calls of attempts that have their rows.
func (f *inflight) ended(rows *Rows) {
	for i := range rows.Attempts {
		delete(f.lines, attemptKey{rows.Attempts[i].EpisodeID, rows.Attempts[i].Attempt})
	}
	if len(f.order) > 2*len(f.lines)+64 {
		f.order = slices.DeleteFunc(f.order, func(k attemptKey) bool { return f.lines[k] == nil })
	}
}

// all call lines, in the order in which their attempts began.
func (f *inflight) all() []record {
	var all []record
	for _, key := range f.order {
		all = append(all, f.lines[key]...)
	}
	return all
}
