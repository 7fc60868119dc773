package store

import (
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// trajectory is the trajectory of an attempt's row; what lies in other tables
// is added to it. Durations have come down to milliseconds.
func (a *AttemptRow) trajectory() *dataset.Trajectory {
	return &dataset.Trajectory{
		Episode:         a.episode(),
		ParentEpisodeID: deref(a.ParentEpisodeID), ReusedFrom: deref(a.ReusedFrom),
		ExitReason: dataset.ExitReason(a.ExitReason),
		ErrorClass: deref(a.ErrorClass), Error: deref(a.Error),
		Flags: a.Flags, Answer: a.Answer,
		Books: a.books(), DiscardedGenerations: int(a.DiscardedGenerations),
		ModelsServed: a.ModelServed, Fingerprints: a.Fingerprints, Upstream: a.Upstream,
		PriceVersion: a.PriceVersion,
		Reward:       a.Reward, Passed: a.Passed, RewardRule: a.RewardRule, PassRule: a.PassRule,
		StartedAt: fromMicros(a.StartedAt), EndedAt: fromMicros(a.EndedAt),
		Queued: fromMillis(a.QueuedMS), Setup: fromMillis(a.SetupMS), Model: fromMillis(a.ModelMS),
		Throttle: fromMillis(a.ThrottleMS), Tool: fromMillis(a.ToolMS), Score: fromMillis(a.ScoreMS),
		Working:        fromMillis(a.WorkingMS),
		SandboxBackend: deref(a.SandboxBackend), SandboxImage: deref(a.SandboxImage),
		SandboxEnforced: a.SandboxEnforced,
		Extra:           objectOf(a.Extra),
	}
}

func (a *AttemptRow) episode() dataset.Episode {
	return dataset.Episode{
		ID: a.EpisodeID, GroupID: a.GroupID, Variant: a.Variant, VariantHash: a.VariantHash,
		Task: dataset.Task{
			ID: a.TaskID, Hash: a.TaskHash, Occurrence: int(a.Occurrence),
			Dataset: a.Dataset, Split: deref(a.Split),
		},
		Sample: int(a.Sample), Epoch: int(a.Epoch), Attempt: int(a.Attempt), Seed: a.Seed,
	}
}

func (a *AttemptRow) books() dataset.Books {
	h := attemptHead{
		Requests: a.Requests, InputTokens: a.InputTokens, CacheReadTokens: a.CacheReadTokens,
		CacheWriteTokens: a.CacheWriteTokens, OutputTokens: a.OutputTokens, ReasoningTokens: a.ReasoningTokens,
		CostKnownNanoUSD: a.CostKnownNanoUSD, UnpricedCalls: a.UnpricedCalls, UnreportedCalls: a.UnreportedCalls,
		AuxInputTokens: a.AuxInputTokens, AuxOutputTokens: a.AuxOutputTokens, AuxCostNanoUSD: a.AuxCostNanoUSD,
	}
	b := h.books()
	if a.UnreportedCalls > 0 {
		b.Lost = lostIn(a.Extra)
	}
	return b
}

func (m *MessageRow) message(b *blobs) (dataset.Message, error) {
	msg := dataset.Message{
		Role: dataset.Role(m.Role), Content: m.Content,
		Reasoning: deref(m.Reasoning), ReasoningSignature: deref(m.ReasoningSignature),
		ToolCallID: deref(m.ToolCallID), ToolName: deref(m.ToolName), IsError: m.IsError,
		Policy: m.Policy, Agent: m.Agent, InjectedBy: deref(m.InjectedBy), Turn: int(m.Turn),
		SpanID: deref(m.SpanID), FinishReason: deref(m.FinishReason),
		TruncatedBytes: m.TruncatedBytes, CreatedAt: fromMicros(m.CreatedAt),
	}
	if m.Parts == nil {
		return msg, nil
	}
	parts, err := b.restore(*m.Parts)
	msg.Parts = parts
	return msg, err
}

func (c *ToolCallRow) toolCall() dataset.ToolCall {
	call := dataset.ToolCall{
		ID: c.ID, Name: c.Name, Arguments: c.Arguments, Coerced: deref(c.ArgumentsCoerced),
		Repaired: c.Repaired, SchemaError: deref(c.SchemaError), BlockedBy: deref(c.BlockedBy),
		IsError: c.IsError, ExitCode: intOf(c.ExitCode),
		Duration: fromMillis(c.DurationMS), SpanID: deref(c.SpanID),
	}
	if c.ResultPosition != nil {
		call.ResultPosition = int(*c.ResultPosition)
	}
	return call
}

func (s *SpanRow) span() dataset.Span {
	span := dataset.Span{
		ID: s.SpanID, ParentID: deref(s.ParentID), Kind: s.Kind, Name: s.Name, Turn: int(s.Turn), Agent: s.Agent,
		Start: time.Duration(s.StartUS) * time.Microsecond, Duration: time.Duration(s.DurationUS) * time.Microsecond,
		Status: s.Status, Retry: int(s.Retry), ErrorClass: deref(s.ErrorClass),
		CallID: deref(s.CallID), RequestID: deref(s.RequestID), ModelServed: deref(s.ModelServed),
		PolicyVersion: s.PolicyVersion, CostNanoUSD: s.CostNanoUSD, Attrs: objectOf(s.Attrs),
	}
	if s.TTFTUS != nil {
		ttft := time.Duration(*s.TTFTUS) * time.Microsecond
		span.TTFT = &ttft
	}
	if s.InputTokens != nil {
		span.Usage = &dataset.Usage{
			Input: *s.InputTokens, CacheRead: *s.CacheReadTokens, CacheWrite: *s.CacheWriteTokens, Output: *s.OutputTokens,
		}
	}
	return span
}

func (r *RewardRow) reward() dataset.Reward {
	reward := dataset.Reward{
		Name: r.Name, Revision: r.Revision, Source: r.Source,
		Value: r.Value, Label: deref(r.Label), Passed: r.Passed, Weight: r.Weight, Chosen: r.Chosen,
		Turn: intOf(r.Turn), Explanation: deref(r.Explanation), ScorerHash: r.ScorerHash,
		JudgeModel: deref(r.JudgeModel), JudgePromptHash: deref(r.JudgePromptHash), Raw: deref(r.Raw),
		CostNanoUSD: r.CostNanoUSD, Author: deref(r.Author), CreatedAt: fromMicros(r.CreatedAt),
	}
	if r.InputTokens != nil {
		reward.Usage = &dataset.Usage{Input: *r.InputTokens}
		if r.OutputTokens != nil {
			reward.Usage.Output = *r.OutputTokens
		}
	}
	return reward
}

// fill completes a task from its row.
func (r *TaskRow) fill(t *dataset.Task) {
	t.Revision, t.Input, t.Target, t.Params = deref(r.DatasetRevision), r.Input, r.Target, r.Params
}
