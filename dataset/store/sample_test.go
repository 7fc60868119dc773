package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testSeed = 7

func sampleVariant() dataset.Variant {
	temperature, maxTokens := 0.7, 512
	return dataset.Variant{
		Name: "model=lab/a", Hash: dataset.ID("variant", "a"), Params: map[string]any{"agent.model": "lab/a"},
		ScorerHash: dataset.ID("scorer", "exact"), ContextHash: dataset.ID("context", "none"),
		Env: "answer", Agent: "tools", Provider: "openai", Model: "lab/a",
		Sampling: dataset.Sampling{
			Temperature: &temperature, MaxTokens: &maxTokens, Extra: map[string]any{"min_p": 0.1},
		},
		Toolsets: []string{"basic"}, Tools: []string{"calculator", "submit_answer"},
		PromptHash: dataset.ID("prompt", "p"), ToolsHash: dataset.ID("tools", "t"), CodeVersion: "test",
		Tags: []string{"nightly"},
	}
}

func sampleRun() Run {
	v := sampleVariant()
	return Run{
		RunID: dataset.ID("run", "sample"), Name: "sample", State: StateRunning,
		CreatedAt: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), Config: json.RawMessage(`{"version": 1}`),
		IdentityHash: "identity", ConfigHash: "config", Seed: testSeed, Samples: 4, Version: "test",
		Variants: []dataset.Variant{v},
	}
}

func sampleTask(i int) dataset.Task {
	row := map[string]any{"input": fmt.Sprintf("What is %d + %d?", i, i), "target": json.Number(strconv.Itoa(2 * i))}
	hash := dataset.TaskHash(row)
	return dataset.Task{
		ID: hash, Hash: hash, Dataset: "sums", Split: "test", Revision: "r1",
		Input: dataset.Text(row["input"]), Target: dataset.Text(row["target"]), Params: `{"hint":"none"}`,
		Keep: map[string]any{"level": json.Number(strconv.Itoa(i % 3)), "easy": i%2 == 0},
	}
}

func sampleEpisode(i int) dataset.Episode {
	v, task := sampleVariant(), sampleTask(i/2)
	group := dataset.GroupID(testSeed, task, v.Hash, 0)
	return dataset.Episode{
		ID: dataset.EpisodeID(group, i%2), GroupID: group, Variant: v.Name, VariantHash: v.Hash,
		Task: task, Sample: i % 2, Seed: dataset.EpisodeSeed(testSeed, task, i%2),
	}
}

// sampleTrajectory is the i-th attempt of a run: three turns, two of them with
// a tool call.
func sampleTrajectory(i int, sequences bool) *dataset.Trajectory {
	start := time.Date(2026, 8, 1, 12, 0, i, 123456000, time.UTC)
	usage := dataset.Usage{Input: int64(100 + i), CacheRead: 20, CacheWrite: 3, Output: int64(40 + i), Reasoning: new(int64(7))}
	tr := &dataset.Trajectory{
		Episode: sampleEpisode(i), ExitReason: dataset.ExitSubmitted, Answer: new(strconv.Itoa(i)),
		Messages: sampleMessages(i, start), Spans: sampleSpans(i, usage),
		Rewards: []dataset.Reward{{
			Name: "exact", Source: dataset.FromScorer, Value: new(float64(i % 2)), Chosen: true,
			Explanation: "compared", CreatedAt: start.Add(5 * time.Second), Weight: new(1.0),
		}},
		ModelsServed: []string{"lab/a-0801"}, Fingerprints: []string{"fp"}, PriceVersion: "2026-08-01",
		StartedAt: start, EndedAt: start.Add(6 * time.Second), Queued: 3 * time.Millisecond,
		Setup: 2 * time.Millisecond, Model: 4 * time.Second, Throttle: 50 * time.Millisecond,
		Tool: 700 * time.Millisecond, Score: 10 * time.Millisecond, Working: 5 * time.Second,
		Extra: map[string]any{"note": "x"},
	}
	tr.Books.Add(dataset.Call{Phase: dataset.CallEnd, Agent: dataset.AgentPolicy, Usage: &usage, CostNanoUSD: new(int64(12345 + i))})
	if sequences {
		tr.Sequences = []dataset.Sequence{sampleSequence(i), sampleSequence(i + 1000)}
		tr.Sequences[1].Number, tr.Sequences[1].Parent = 1, new(0)
	}
	tr.ChooseReward()
	return tr
}

func sampleMessages(i int, start time.Time) []dataset.Message {
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	call := func(id, name, args string, result int) dataset.ToolCall {
		return dataset.ToolCall{
			ID: id, Name: name, Arguments: args, ResultPosition: result, Duration: 300 * time.Millisecond, SpanID: "s2",
		}
	}
	sum := call("call_0", "calculator", fmt.Sprintf(`{"expression":"%d+%d"}`, i, i), 3)
	sum.Coerced, sum.Repaired, sum.ExitCode = `{"expression":"x"}`, true, new(0)
	submit := call("call_0", "submit_answer", fmt.Sprintf(`{"answer":"%d"}`, 2*i), 5)
	return []dataset.Message{
		{Role: dataset.System, Content: "You add numbers.", CreatedAt: at(0)},
		{Role: dataset.User, Content: fmt.Sprintf("What is %d + %d? <&> \u2028 ü", i, i), CreatedAt: at(0)},
		{
			Role: dataset.Assistant, Policy: true, Agent: dataset.AgentPolicy, Turn: 1, SpanID: "s1",
			Reasoning: "I should use the tool.", ToolCalls: []dataset.ToolCall{sum}, FinishReason: "tool_calls", CreatedAt: at(1),
		},
		{Role: dataset.ToolRole, Content: strconv.Itoa(2 * i), ToolCallID: "call_0", ToolName: "calculator", Turn: 1, SpanID: "s2", CreatedAt: at(2)},
		{
			Role: dataset.Assistant, Content: "Done.", Policy: true, Agent: dataset.AgentPolicy, Turn: 2, SpanID: "s3",
			ToolCalls: []dataset.ToolCall{submit}, FinishReason: "tool_calls", CreatedAt: at(3),
			Parts: json.RawMessage(`[{"type":"text","text":"Done."}]`),
		},
		{Role: dataset.ToolRole, Content: "ok", ToolCallID: "call_0", ToolName: "submit_answer", Turn: 2, CreatedAt: at(4)},
	}
}

func sampleSpans(i int, usage dataset.Usage) []dataset.Span {
	id := func(n int) string { return fmt.Sprintf("%s-0-%d", sampleEpisode(i).ID, n) }
	return []dataset.Span{
		{ID: "s0", Kind: dataset.SpanQueue, Name: "queue", Start: -3 * time.Millisecond, Duration: 3 * time.Millisecond, Status: "ok"},
		{
			ID: "s1", Kind: dataset.SpanModel, Name: "generate", Turn: 1, Agent: dataset.AgentPolicy, Duration: time.Second,
			Status: "ok", TTFT: new(20 * time.Millisecond), CallID: id(0), RequestID: "r", ModelServed: "lab/a-0801",
			Usage: &usage, CostNanoUSD: new(int64(12345 + i)), PolicyVersion: new(int64(3)), Attrs: map[string]any{"status": 200.0},
		},
		{ID: "s2", ParentID: "s1", Kind: dataset.SpanTool, Name: "calculator", Turn: 1, Start: time.Second, Duration: 300 * time.Millisecond, Status: "ok"},
	}
}

func sampleSequence(i int) dataset.Sequence {
	const n = 24
	s := dataset.Sequence{
		Reason: "start", Agent: dataset.AgentPolicy, NPrompt: 8, History: "append", LogprobMode: "sampled", LogprobsExact: true,
		Tokenizer: "toy", TemplateHash: "tpl", Verdict: "exact", TokenIDs: make([]int32, n), LossMask: make([]bool, n), Logprobs: make([]float32, n),
		Turns: []dataset.SequenceTurn{{Start: 8, End: n, Position: 2, SpanID: "s1", PolicyVersion: new(int64(3)), FinishReason: "stop", Reward: new(0.5)}},
	}
	for k := range n {
		s.TokenIDs[k] = int32(i*31+k*7) % 50000
		if k >= 8 {
			s.LossMask[k], s.Logprobs[k] = true, -float32(k)/float32(i+3)
		}
	}
	return s
}

// sampleCalls are the two lines of the n-th call of an attempt.
func sampleCalls(ep *dataset.Episode, n int) (start, end dataset.Call) {
	id := fmt.Sprintf("%s-%d-%d", ep.ID, ep.Attempt, n)
	at := time.Date(2026, 8, 1, 12, 0, n, 0, time.UTC).UnixMicro()
	start = dataset.Call{Phase: dataset.CallStart, CallID: id, Agent: dataset.AgentPolicy, Episode: ep, AtUnixUS: at}
	end = start
	end.Phase, end.AtUnixUS = dataset.CallEnd, at+500_000
	end.Usage = &dataset.Usage{Input: int64(10 + n), Output: 5}
	end.CostNanoUSD = new(int64(1000 + n))
	return start, end
}

func mustWrite(tb testing.TB, s *Store, trs ...*dataset.Trajectory) {
	tb.Helper()
	if err := s.Write(context.Background(), trs); err != nil {
		tb.Fatalf("writing: %v", err)
	}
}

func mustClose(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Fatalf("closing: %v", err)
	}
}

func mustCreate(tb testing.TB, dir string, opts Options) *Store {
	tb.Helper()
	s, err := Create(dir, sampleRun(), opts)
	if err != nil {
		tb.Fatalf("creating a run: %v", err)
	}
	return s
}

// allRows reads every committed row of a run.
func allRows(tb testing.TB, fsys FS, dir string) *Rows {
	tb.Helper()
	man, err := readManifest(fsys, dir)
	if err != nil {
		tb.Fatal(err)
	}
	rows := &Rows{}
	for _, p := range man.parts {
		readPart(tb, fsys, dir, p, rows)
	}
	return rows
}

func partRows(tb testing.TB, fsys FS, dir string, p Part) *Rows {
	tb.Helper()
	rows := &Rows{}
	readPart(tb, fsys, dir, p, rows)
	return rows
}

func readPart(tb testing.TB, fsys FS, dir string, p Part, rows *Rows) {
	tb.Helper()
	err := firstError(
		func() error { return collect(fsys, dir, p, tAttempts, &rows.Attempts) },
		func() error { return collect(fsys, dir, p, tTasks, &rows.Tasks) },
		func() error { return collect(fsys, dir, p, tMessages, &rows.Messages) },
		func() error { return collect(fsys, dir, p, tToolCalls, &rows.ToolCalls) },
		func() error { return collect(fsys, dir, p, tSpans, &rows.Spans) },
		func() error { return collect(fsys, dir, p, tRewards, &rows.Rewards) },
		func() error { return collect(fsys, dir, p, tSequences, &rows.Sequences) },
	)
	if err != nil {
		tb.Fatalf("reading part %d: %v", p.Part, err)
	}
}

func collect[T any](fsys FS, dir string, p Part, table string, into *[]T) error {
	return eachRow(fsys, dir, p, table, func(row *T) error {
		*into = append(*into, *row)
		return nil
	})
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
