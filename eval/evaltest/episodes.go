package evaltest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// alpha makes the episodes of the finished run.
func (b *builder) alpha() {
	good := func(task, sample, attempt int) *dataset.Trajectory { return b.attempt("good", task, sample, attempt) }
	weak := func(task, sample int) *dataset.Trajectory { return b.attempt("weak", task, sample, 0) }

	b.add(scored(good(0, 0, 0), 1), scored(good(0, 1, 0), 1))
	b.add(failed(good(1, 0, 0), dataset.ExitProviderError, "rate_limit"), scored(good(1, 0, 1), 1), scored(good(1, 1, 0), 0))
	b.add(failed(good(2, 0, 0), dataset.ExitProviderError, "rate_limit"), failed(good(2, 0, 1), dataset.ExitInfraError, "sandbox"))
	killed := failed(good(2, 1, 0), dataset.ExitKilled, "")
	killed.Books.Unreported = 1
	b.add(killed, scored(limited(good(2, 1, 1)), 0))
	late, never := unscored(good(3, 0, 0)), unscored(good(3, 1, 0))
	b.add(late, never)
	b.late(late, 1, time.Minute)

	b.add(scored(weak(0, 0), 0.5), scored(weak(0, 1), 0))
	b.add(failed(weak(1, 0), dataset.ExitVerifierError, "verifier"), failed(weak(1, 1), dataset.ExitGroupStopped, ""))
	changed, unpriced := scored(weak(2, 0), 1), scored(weak(2, 1), 0)
	unpriced.Books.Unpriced = 1
	changed.Sequences = []dataset.Sequence{tokens()}
	b.add(changed, unpriced)
	b.late(changed, 1, time.Minute)
	b.late(changed, 0.25, 2*time.Minute)
	parent := scored(weak(3, 0), 1)
	delegate(parent, 2)
	b.add(parent, failed(weak(3, 1), dataset.ExitInterrupted, ""))
}

// beta makes the episodes of the running one.
func (b *builder) beta() {
	hostile := b.attempt("good", 2, 0, 0)
	hostile.Messages[1].Content = "clear \x1b[2J the \u202escreen\r\nand\tring \a"
	hostile.Messages[3].Content = "not UTF-8: \xff"
	hostile.Sequences = []dataset.Sequence{tokens()}
	late := unscored(b.attempt("good", 1, 0, 0))
	b.add(scored(b.attempt("good", 0, 0, 0), 1), late, scored(hostile, 0))
	b.late(late, 1, time.Hour)
}

func (b *builder) add(trs ...*dataset.Trajectory) {
	b.run.Trajectories = append(b.run.Trajectories, trs...)
}

// late gives a chosen reward to an attempt that is recorded.
func (b *builder) late(tr *dataset.Trajectory, value float64, after time.Duration) {
	b.run.Late = append(b.run.Late, dataset.LateReward{
		EpisodeID: tr.Episode.ID, Attempt: tr.Episode.Attempt,
		Reward: dataset.Reward{
			Name: "exact", Source: dataset.FromRescore, Value: &value, Chosen: true, ScorerHash: "later",
			CreatedAt: tr.EndedAt.Add(after),
		},
	})
}

// attempt is a conversation of two model calls and one tool call, without its
// end.
func (b *builder) attempt(variantName string, task, sample, attempt int) *dataset.Trajectory {
	t := dataset.Task{
		ID: fmt.Sprintf("t%d", task), Hash: dataset.ID("task", strconv.Itoa(task)), Dataset: "sums",
		Input: fmt.Sprintf("What is %d + %d?", task, task), Target: strconv.Itoa(2 * task),
		Params: fmt.Sprintf(`{"n":%d}`, task), Keep: map[string]any{"level": int64(task % 2)},
	}
	hash := dataset.ID("variant", variantName)
	group := dataset.GroupID(7, t, hash, 0)
	ep := dataset.Episode{
		ID: dataset.EpisodeID(group, sample), GroupID: group, Variant: variantName, VariantHash: hash,
		Task: t, Sample: sample, Attempt: attempt, Seed: dataset.EpisodeSeed(7, t, sample),
	}
	start := Start().Add(time.Duration(100*task+10*sample+attempt) * time.Second)
	pace := time.Duration(1+task+sample+attempt) * 100 * time.Millisecond
	tr := &dataset.Trajectory{
		Episode: ep, StartedAt: start, EndedAt: start.Add(10 * pace), PriceVersion: "2026-01-01",
		Queued: 20 * time.Millisecond, Setup: pace, Model: 4 * pace, Throttle: pace, Tool: pace, Score: pace, Working: 8 * pace,
		ModelsServed: []string{"lab-1"},
	}
	converse(tr, pace)
	return tr
}

// converse fills in messages, spans and books.
func converse(tr *dataset.Trajectory, pace time.Duration) {
	t := tr.Episode.Task
	call := dataset.ToolCall{
		ID: "call_0", Name: "calculator", Arguments: `{"expression": "` + t.Target + `"}`, ResultPosition: 3,
		Duration: pace, SpanID: "s1", IsError: t.ID == "t1",
	}
	if t.ID == "t2" {
		call.Coerced, call.Repaired = `{"expression":"2+2"}`, true
	}
	at := func(n int) time.Time { return tr.StartedAt.Add(time.Duration(n) * pace) }
	tr.Messages = []dataset.Message{
		{Role: dataset.System, Content: "Be exact.", CreatedAt: at(1)},
		{Role: dataset.User, Content: t.Input, CreatedAt: at(1)},
		{
			Role: dataset.Assistant, Content: "I shall compute it.", Reasoning: "Sums are\nbest left to tools.", Policy: true,
			Agent: dataset.AgentPolicy, Turn: 1, SpanID: "s0", FinishReason: "tool_calls", CreatedAt: at(3), ToolCalls: []dataset.ToolCall{call},
		},
		{
			Role: dataset.ToolRole, Content: t.Target, ToolCallID: "call_0", ToolName: "calculator", Turn: 1, SpanID: "s1",
			IsError: call.IsError, CreatedAt: at(4),
		},
		{
			Role: dataset.Assistant, Content: "The answer is " + t.Target + ".", Policy: true, Agent: dataset.AgentPolicy,
			Turn: 2, SpanID: "s2", FinishReason: "stop", CreatedAt: at(6),
		},
	}
	modelSpan := func(n int, id string, cost int64) dataset.Span {
		ttft := pace / 2
		return dataset.Span{
			ID: id, Kind: dataset.SpanModel, Name: "lab", Turn: 1 + n/2, Agent: dataset.AgentPolicy,
			Start: time.Duration(1+n) * pace, Duration: 2 * pace, Status: "ok", TTFT: &ttft,
			CallID: fmt.Sprintf("%s-%d-%d", tr.Episode.ID, tr.Episode.Attempt, n/2), ModelServed: "lab-1",
			Usage: &dataset.Usage{Input: 100, CacheRead: 20, Output: 10}, CostNanoUSD: &cost,
		}
	}
	tool := dataset.Span{ID: "s1", Kind: dataset.SpanTool, Name: "calculator", Turn: 1, Start: 3 * pace, Duration: pace, Status: "ok"}
	tr.Spans = []dataset.Span{modelSpan(0, "s0", 1_500_000), tool, modelSpan(2, "s2", 1_500_000)}
	for _, s := range tr.Spans {
		if s.Kind == dataset.SpanModel {
			tr.Books.Add(dataset.Call{Phase: dataset.CallEnd, Agent: dataset.AgentPolicy, Usage: s.Usage, CostNanoUSD: s.CostNanoUSD})
		}
	}
	answer := t.Target
	tr.Answer = &answer
}

func scored(tr *dataset.Trajectory, value float64) *dataset.Trajectory {
	if tr.ExitReason == "" {
		tr.ExitReason = dataset.ExitAnswered
	}
	tr.Rewards = []dataset.Reward{
		{Name: "length", Source: dataset.FromScorer, Value: new(12.0), CreatedAt: tr.EndedAt},
		{Name: "exact", Source: dataset.FromScorer, Value: &value, Chosen: true, Explanation: "compared with the target", CreatedAt: tr.EndedAt},
	}
	tr.ChooseReward()
	return tr
}

// limited ends at a limit: it is scored all the same.
func limited(tr *dataset.Trajectory) *dataset.Trajectory {
	tr.ExitReason, tr.Answer = dataset.ExitTurnLimit, nil
	return tr
}

func unscored(tr *dataset.Trajectory) *dataset.Trajectory {
	tr.ExitReason = dataset.ExitAnswered
	tr.Rewards = []dataset.Reward{{Name: "exact", Source: dataset.FromScorer, Chosen: true, Explanation: "judge unreachable", CreatedAt: tr.EndedAt}}
	tr.AddFlag(dataset.FlagUnscored)
	tr.ChooseReward()
	return tr
}

// failed ends for a reason that is not the model's, after its first call.
func failed(tr *dataset.Trajectory, reason dataset.ExitReason, class string) *dataset.Trajectory {
	tr.ExitReason, tr.ErrorClass, tr.Answer = reason, class, nil
	if class != "" {
		tr.Error = "the fixture broke: " + class
	}
	first := tr.Spans[0]
	tr.Messages, tr.Spans, tr.Books = tr.Messages[:2], tr.Spans[:1], dataset.Books{}
	tr.Books.Add(dataset.Call{Phase: dataset.CallEnd, Agent: dataset.AgentPolicy, Usage: first.Usage, CostNanoUSD: first.CostNanoUSD})
	tr.ChooseReward()
	return tr
}

// delegate gives tr a child, that one a child, and so on.
func delegate(tr *dataset.Trajectory, depth int) {
	if depth == 0 {
		return
	}
	child := *tr
	child.ParentEpisodeID = tr.Episode.ID
	child.Episode.ID = dataset.ChildID(tr.Episode.ID, 0)
	child.Children = nil
	scored(&child, 0.75)
	delegate(&child, depth-1)
	tr.Children = []*dataset.Trajectory{&child}
}

// tokens is a sequence with every kind of column.
func tokens() dataset.Sequence {
	version := int64(3)
	return dataset.Sequence{
		Reason: "start", Agent: dataset.AgentPolicy, TokenIDs: []int32{5, 6, 7}, LossMask: []bool{false, true, true},
		Logprobs: []float32{0, -0.1, -2.5}, NPrompt: 1, History: "append", LogprobMode: "raw", LogprobsExact: true,
		Turns:     []dataset.SequenceTurn{{Start: 1, End: 3, Position: 4, SpanID: "s2", PolicyVersion: &version, FinishReason: "stop"}},
		Tokenizer: "toy", TemplateHash: "template", Verdict: "exact", RoutedExperts: []byte{0, 255, 1},
	}
}
