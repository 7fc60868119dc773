package store

import (
	"slices"

	"github.com/talaria-run/talaria/dataset"
)

// Verdict of a sequence that is not fit for training.
const quarantined = "quarantined"

// sequences appends the token sequences of an attempt and reports whether one
// of them is quarantined.
func (f *flattener) sequences(rows *Rows, tr *dataset.Trajectory, v *variant) (unfit bool) {
	for i := range tr.Sequences {
		row := f.sequence(tr, v, &tr.Sequences[i])
		rows.Sequences = append(rows.Sequences, row)
		unfit = unfit || row.Verdict == quarantined
	}
	return unfit
}

func (f *flattener) sequence(tr *dataset.Trajectory, v *variant, s *dataset.Sequence) SequenceRow {
	c, ep := f.clean, &tr.Episode
	row := SequenceRow{
		RunID: f.runID, EpisodeID: ep.ID, Attempt: int32Clamp(ep.Attempt), GroupID: ep.GroupID,
		TaskID: c.text(ep.Task.ID), TaskHash: c.text(ep.Task.Hash),
		Epoch: int32Clamp(ep.Epoch), Sample: int32Clamp(ep.Sample), Sequence: int32Clamp(s.Number),
		ParentSequence: int32Of(s.Parent), Reason: c.text(s.Reason), Agent: c.text(s.Agent),
		Env: v.env, Variant: c.text(ep.Variant), Model: v.model,
		Outcome: string(tr.Outcome()), ExitReason: c.text(string(tr.ExitReason)), Truncated: tr.ExitReason.Truncated(),
		Turns:   make([]SequenceTurnRow, 0, len(s.Turns)),
		NTokens: int32Clamp(len(s.TokenIDs)), NPrompt: int32Clamp(s.NPrompt),
		History: c.text(s.History), LogprobMode: c.text(s.LogprobMode), LogprobsExact: s.LogprobsExact,
		Temperature: v.temperature, Tokenizer: c.text(s.Tokenizer), TemplateHash: c.text(s.TemplateHash),
		Verdict: c.text(s.Verdict), VerdictDetail: c.opt(s.VerdictDetail),
		TeacherK: s.TeacherK, TeacherIDs: s.TeacherIDs,
	}
	if len(s.RoutedExperts) > 0 {
		row.RoutedExperts = s.RoutedExperts
	}
	row.Reward, row.Passed = scalar(tr)
	f.tokens(&row, s)
	for _, t := range s.Turns {
		row.Turns = append(row.Turns, SequenceTurnRow{
			Start: t.Start, End: t.End, Position: t.Position, SpanID: c.text(t.SpanID),
			PolicyVersion: t.PolicyVersion, FinishReason: c.text(t.FinishReason), Reward: dataset.Finite(t.Reward),
		})
		row.seeVersion(t.PolicyVersion)
	}
	return row
}

// tokens sets the lists. Lists of unequal length and values that are no
// numbers are mended, and the row is quarantined for it.
func (f *flattener) tokens(row *SequenceRow, s *dataset.Sequence) {
	n := len(s.TokenIDs)
	row.TokenIDs, row.LossMask = fit(s.TokenIDs, n), fit(s.LossMask, n)
	var bad [3]bool
	row.Logprobs, bad[0] = logprobs(fit(s.Logprobs, n))
	row.RefLogprobs, bad[1] = logprobs(s.RefLogprobs)
	row.TeacherLogprobs, bad[2] = logprobs(s.TeacherLogprobs)
	for _, trained := range row.LossMask {
		row.NTrained += int32Clamp(bit(trained, 1))
	}
	if len(s.LossMask) != n || len(s.Logprobs) != n {
		row.quarantine("lists of unequal length")
	}
	if slices.Contains(bad[:], true) {
		row.quarantine("non-finite logprobs")
	}
}

// fit is s with exactly n elements, and never nil.
func fit[T any](s []T, n int) []T {
	if len(s) == n && s != nil {
		return s
	}
	out := make([]T, n)
	copy(out, s)
	return out
}

func (r *SequenceRow) quarantine(why string) {
	r.Verdict = quarantined
	if r.VerdictDetail != nil {
		why = *r.VerdictDetail + "; " + why
	}
	r.VerdictDetail = &why
}

func (r *SequenceRow) seeVersion(v *int64) {
	if v == nil {
		return
	}
	if r.PolicyVersionMin == nil || *v < *r.PolicyVersionMin {
		r.PolicyVersionMin = v
	}
	if r.PolicyVersionMax == nil || *v > *r.PolicyVersionMax {
		r.PolicyVersionMax = v
	}
}
