package store

import (
	"slices"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// messages appends the messages of an attempt and the tool calls in them.
func (f *flattener) messages(rows *Rows, tr *dataset.Trajectory) {
	rows.Messages = slices.Grow(rows.Messages, len(tr.Messages))
	for i := range tr.Messages {
		m := &tr.Messages[i]
		rows.Messages = append(rows.Messages, f.message(tr, m, i))
		for j := range m.ToolCalls {
			rows.ToolCalls = append(rows.ToolCalls, f.toolCall(tr, &m.ToolCalls[j], i, j))
		}
	}
}

func (f *flattener) message(tr *dataset.Trajectory, m *dataset.Message, position int) MessageRow {
	c := f.clean
	row := MessageRow{
		RunID: f.runID, EpisodeID: tr.Episode.ID, Attempt: int32Clamp(tr.Episode.Attempt),
		Position: int32Clamp(position), Turn: int32Clamp(m.Turn),
		Role: c.text(string(m.Role)), Content: c.text(m.Content),
		Reasoning: c.opt(m.Reasoning), ReasoningSignature: c.opt(m.ReasoningSignature),
		ToolCallID: c.opt(m.ToolCallID), ToolName: c.opt(m.ToolName),
		IsError: m.IsError, Policy: m.Policy, Agent: c.text(m.Agent), InjectedBy: c.opt(m.InjectedBy),
		SpanID: c.opt(m.SpanID), FinishReason: c.opt(m.FinishReason),
		TruncatedBytes: m.TruncatedBytes, CreatedAt: micros(m.CreatedAt),
	}
	if len(m.Parts) > 0 {
		parts := c.jsonText(string(m.Parts))
		row.Parts = &parts
	}
	return row
}

func (f *flattener) toolCall(tr *dataset.Trajectory, call *dataset.ToolCall, position, index int) ToolCallRow {
	c := f.clean
	row := ToolCallRow{
		RunID: f.runID, EpisodeID: tr.Episode.ID, Attempt: int32Clamp(tr.Episode.Attempt),
		Position: int32Clamp(position), CallIndex: int32Clamp(index),
		ID: c.text(call.ID), Name: c.text(call.Name), Arguments: c.text(call.Arguments),
		ArgumentsCoerced: c.opt(call.Coerced), Repaired: call.Repaired,
		SchemaError: c.opt(call.SchemaError), BlockedBy: c.opt(call.BlockedBy),
		IsError: call.IsError, ExitCode: int32Of(call.ExitCode),
		DurationMS: millis(call.Duration), SpanID: c.opt(call.SpanID),
	}
	if call.ResultPosition > 0 {
		row.ResultPosition = int32Of(&call.ResultPosition)
	}
	return row
}

func (f *flattener) spans(rows *Rows, tr *dataset.Trajectory) {
	c := f.clean
	rows.Spans = slices.Grow(rows.Spans, len(tr.Spans))
	for i := range tr.Spans {
		s := &tr.Spans[i]
		row := SpanRow{
			RunID: f.runID, EpisodeID: tr.Episode.ID, Attempt: int32Clamp(tr.Episode.Attempt),
			SpanID: c.text(s.ID), ParentID: c.opt(s.ParentID), Kind: c.text(s.Kind), Name: c.text(s.Name),
			Turn: int32Clamp(s.Turn), Agent: c.text(s.Agent),
			StartUS: s.Start.Microseconds(), DurationUS: s.Duration.Microseconds(),
			Status: c.text(s.Status), Retry: int32Clamp(s.Retry), ErrorClass: c.opt(s.ErrorClass),
			TTFTUS: microsOf(s.TTFT), CallID: c.opt(s.CallID), RequestID: c.opt(s.RequestID),
			ModelServed: c.opt(s.ModelServed), PolicyVersion: s.PolicyVersion,
			CostNanoUSD: s.CostNanoUSD, Attrs: c.object(s.Attrs),
		}
		if u := s.Usage; u != nil {
			row.InputTokens, row.CacheReadTokens = &u.Input, &u.CacheRead
			row.CacheWriteTokens, row.OutputTokens = &u.CacheWrite, &u.Output
		}
		rows.Spans = append(rows.Spans, row)
	}
}

// ownReward is a reward that came with its attempt. It never bears a later
// time than the attempt's end, so that it can be told from a late one.
func (f *flattener) ownReward(tr *dataset.Trajectory, v *variant, r dataset.Reward) RewardRow {
	if r.CreatedAt.IsZero() || r.CreatedAt.After(tr.EndedAt) {
		r.CreatedAt = tr.EndedAt
	}
	row := f.reward(tr.Episode.ID, tr.Episode.Attempt, r)
	if row.ScorerHash == "" && r.Source != dataset.FromEnv {
		row.ScorerHash = v.scorerHash
	}
	return row
}

// lateReward is a reward given to an attempt that is recorded already.
func (f *flattener) lateReward(late dataset.LateReward) RewardRow {
	if late.Reward.CreatedAt.IsZero() {
		late.Reward.CreatedAt = time.Now()
	}
	return f.reward(late.EpisodeID, late.Attempt, late.Reward)
}

func (f *flattener) reward(episodeID string, attempt int, r dataset.Reward) RewardRow {
	c := f.clean
	row := RewardRow{
		RunID: f.runID, EpisodeID: episodeID, Attempt: int32Clamp(attempt),
		Name: c.text(r.Name), Revision: c.text(r.Revision), Source: c.text(r.Source),
		Value: dataset.Finite(r.Value), Label: c.opt(r.Label), Passed: r.Passed,
		Weight: dataset.Finite(r.Weight), Chosen: r.Chosen, Turn: int32Of(r.Turn),
		Explanation: c.opt(r.Explanation), ScorerHash: c.text(r.ScorerHash),
		JudgeModel: c.opt(r.JudgeModel), JudgePromptHash: c.opt(r.JudgePromptHash), Raw: c.opt(r.Raw),
		CostNanoUSD: r.CostNanoUSD, Author: c.opt(r.Author), CreatedAt: micros(r.CreatedAt),
	}
	if u := r.Usage; u != nil {
		input := u.Input + u.CacheRead + u.CacheWrite
		row.InputTokens, row.OutputTokens = &input, &u.Output
	}
	return row
}

// task is the row of a dataset row.
func (f *flattener) task(t dataset.Task) TaskRow {
	c := f.clean
	row := TaskRow{
		RunID: f.runID, TaskID: c.text(t.ID), TaskHash: c.text(t.Hash), Occurrence: int32Clamp(t.Occurrence),
		Dataset: c.text(t.Dataset), DatasetRevision: c.opt(t.Revision), Split: c.opt(t.Split),
		Input: c.text(t.Input), Target: c.text(t.Target), Params: "{}",
	}
	if t.Params != "" {
		row.Params = c.jsonText(t.Params)
	}
	if len(t.Keep) > 0 {
		row.Meta = make(map[string]any, len(t.Keep))
		for k, v := range t.Keep {
			row.Meta[c.text(k)] = c.metaValue(v)
		}
	}
	return row
}
