package dataset_test

import (
	"math"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

func TestBooks(t *testing.T) {
	usage := func(n int64) *dataset.Usage { return &dataset.Usage{Input: n, Output: 1} }
	policy := func(u *dataset.Usage, cost *int64, unreported int) dataset.Call {
		return dataset.Call{Phase: dataset.CallEnd, Agent: dataset.AgentPolicy, Usage: u, CostNanoUSD: cost, Unreported: unreported}
	}
	judge := func(u *dataset.Usage, cost *int64) dataset.Call {
		return dataset.Call{Phase: dataset.CallEnd, Agent: dataset.AgentJudge, Usage: u, CostNanoUSD: cost}
	}
	type sums struct {
		Requests, Unpriced, Unreported int
		Input, Aux, CostKnown          int64
		Cost, AuxCost                  *int64
	}
	tests := []struct {
		name  string
		calls []dataset.Call
		want  sums
	}{
		{"none", nil, sums{Cost: new(int64(0))}},
		{
			"priced",
			[]dataset.Call{policy(usage(10), new(int64(5)), 0), policy(usage(20), new(int64(7)), 0)},
			sums{Requests: 2, Input: 30, CostKnown: 12, Cost: new(int64(12))},
		},
		{"free", []dataset.Call{policy(usage(10), new(int64(0)), 0)}, sums{Requests: 1, Input: 10, Cost: new(int64(0))}},
		{
			"one unpriced",
			[]dataset.Call{policy(usage(10), new(int64(5)), 0), policy(usage(20), nil, 0)},
			sums{Requests: 2, Input: 30, CostKnown: 5, Unpriced: 1},
		},
		{
			"one cut off",
			[]dataset.Call{policy(usage(10), new(int64(5)), 0), policy(nil, nil, 1)},
			sums{Requests: 2, Input: 10, CostKnown: 5, Unreported: 1},
		},
		{
			"answered after a try was cut off",
			[]dataset.Call{policy(usage(10), new(int64(5)), 1)},
			sums{Requests: 1, Input: 10, CostKnown: 5, Unreported: 1},
		},
		{"refused before it was paid for", []dataset.Call{policy(nil, nil, 0)}, sums{Requests: 1, Cost: new(int64(0))}},
		{
			"a judge besides",
			[]dataset.Call{policy(usage(10), new(int64(5)), 0), judge(usage(3), new(int64(2)))},
			sums{Requests: 1, Input: 10, Aux: 3, CostKnown: 5, Cost: new(int64(5)), AuxCost: new(int64(2))},
		},
		{
			"an unpriced judge",
			[]dataset.Call{judge(usage(3), new(int64(2))), judge(usage(4), nil), judge(usage(5), new(int64(2)))},
			sums{Aux: 12, Cost: new(int64(0))},
		},
	}
	of := func(b *dataset.Books) sums {
		return sums{b.Requests, b.Unpriced, b.Unreported, b.Usage.Input, b.Aux.Input, b.CostKnown, b.Cost(), b.AuxCost}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var whole, merged dataset.Books
			for _, c := range tt.calls {
				whole.Add(c)
				var one dataset.Books
				one.Add(c)
				merged.Merge(one)
			}
			if diff := cmp.Diff(tt.want, of(&whole)); diff != "" {
				t.Errorf("books (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, of(&merged)); diff != "" {
				t.Errorf("merged from one call each (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsageReasoning(t *testing.T) {
	var u dataset.Usage
	u.Add(dataset.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4})
	if u.Reasoning != nil || u.Total() != 10 {
		t.Errorf("usage = %+v, total %d; want unknown reasoning and 10", u, u.Total())
	}
	part := dataset.Usage{Output: 4, Reasoning: new(int64(3))}
	u.Add(part)
	u.Add(part)
	if u.Reasoning == nil || *u.Reasoning != 6 || *part.Reasoning != 3 {
		t.Errorf("reasoning = %v of parts %v, want 6 of 3 each", u.Reasoning, *part.Reasoning)
	}
}

func TestChooseReward(t *testing.T) {
	tests := []struct {
		name    string
		rewards []dataset.Reward
		reward  *float64
		passed  *bool
		rule    string
	}{
		{"none", nil, nil, nil, dataset.RuleNone},
		{"none chosen", []dataset.Reward{{Name: "a", Value: new(1.0)}}, nil, nil, dataset.RuleNone},
		{"passes at 1", []dataset.Reward{{Name: "a", Value: new(1.0), Chosen: true}}, new(1.0), new(true), "chosen:a"},
		{"fails below", []dataset.Reward{{Name: "a", Value: new(0.99), Chosen: true}}, new(0.99), new(false), "chosen:a"},
		{"says itself", []dataset.Reward{{Name: "a", Value: new(0.2), Passed: new(true), Chosen: true}}, new(0.2), new(true), "chosen:a"},
		{"the last one", []dataset.Reward{{Name: "a", Value: new(1.0), Chosen: true}, {Name: "b", Value: new(0.0), Chosen: true}}, new(0.0), new(false), "chosen:b"},
		{"without a value", []dataset.Reward{{Name: "a", Chosen: true}}, nil, nil, "chosen:a"},
		{"not a number", []dataset.Reward{{Name: "a", Value: new(math.NaN()), Chosen: true}}, nil, nil, "chosen:a"},
		{"infinite", []dataset.Reward{{Name: "a", Value: new(math.Inf(1)), Chosen: true}}, nil, nil, "chosen:a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := dataset.Trajectory{Rewards: tt.rewards, Reward: new(5.0), Passed: new(true)}
			tr.ChooseReward()
			if diff := cmp.Diff([]any{tt.reward, tt.passed, tt.rule}, []any{tr.Reward, tr.Passed, tr.RewardRule}); diff != "" {
				t.Errorf("reward, passed, rule (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutcomes is the whole table: whose doing each end is.
func TestOutcomes(t *testing.T) {
	table := map[dataset.Outcome][]dataset.ExitReason{
		dataset.OutcomeModel: {
			dataset.ExitAnswered, dataset.ExitSubmitted, dataset.ExitEnvDone, dataset.ExitGaveUp, dataset.ExitRefused, dataset.ExitEmpty,
			dataset.ExitInvalidTools, dataset.ExitCutArguments, dataset.ExitLength, dataset.ExitContextFull, dataset.ExitGuardrail,
			dataset.ExitTurnLimit, dataset.ExitTokenLimit, dataset.ExitCostLimit, dataset.ExitTimeLimit, dataset.ExitBytesLimit,
		},
		dataset.OutcomeTask: {
			dataset.ExitResetError, dataset.ExitEnvError, dataset.ExitVerifierError, dataset.ExitEnvPanic, dataset.ExitToolPanic,
		},
		dataset.OutcomeInfra:    {dataset.ExitProviderError, dataset.ExitInfraError, dataset.ExitPanic, "", "of a later release"},
		dataset.OutcomeBudget:   {dataset.ExitRunBudget, dataset.ExitGroupStopped},
		dataset.OutcomeOperator: {dataset.ExitInterrupted, dataset.ExitKilled},
	}
	truncated := map[dataset.ExitReason]bool{
		dataset.ExitTurnLimit: true, dataset.ExitTokenLimit: true, dataset.ExitCostLimit: true, dataset.ExitTimeLimit: true,
		dataset.ExitBytesLimit: true, dataset.ExitLength: true, dataset.ExitContextFull: true, dataset.ExitCutArguments: true,
	}
	for outcome, reasons := range table {
		for _, r := range reasons {
			if got := r.Outcome(); got != outcome {
				t.Errorf("%q is of outcome %s, want %s", r, got, outcome)
			}
			if got := r.Truncated(); got != truncated[r] {
				t.Errorf("%q truncated: %t, want %t", r, got, truncated[r])
			}
		}
	}
}

func TestTrajectoryTalk(t *testing.T) {
	tr := dataset.Trajectory{Messages: []dataset.Message{
		{Role: dataset.System, Content: "s"},
		{Role: dataset.User, Content: "u"},
		{Role: dataset.Assistant, Content: "first", Policy: true},
		{Role: dataset.Assistant, Content: "shown as an example"},
		{Role: dataset.Assistant, Content: "last", Policy: true},
		{Role: dataset.ToolRole, Content: "r"},
	}}
	if tr.Turns() != 2 || tr.FinalText() != "last" {
		t.Errorf("%d turns, final text %q; want 2 and last", tr.Turns(), tr.FinalText())
	}
	for range 2 {
		tr.AddFlag(dataset.FlagRepaired)
	}
	if diff := cmp.Diff([]string{dataset.FlagRepaired}, tr.Flags); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	if got := (&dataset.Trajectory{}).FinalText(); got != "" {
		t.Errorf("final text of nothing = %q", got)
	}
}

func TestCleanValues(t *testing.T) {
	if got := dataset.ValidText("a\xff\xfeb\xc3("); got != "a\uFFFDb\uFFFD(" || !utf8.ValidString(got) {
		t.Errorf("ValidText = %q", got)
	}
	for _, v := range []*float64{nil, new(math.NaN()), new(math.Inf(1)), new(math.Inf(-1))} {
		if dataset.Finite(v) != nil {
			t.Errorf("Finite(%v) is a value", *v)
		}
	}
	if v := new(0.0); dataset.Finite(v) != v {
		t.Error("Finite lost a value")
	}
}
