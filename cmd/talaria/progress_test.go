package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// progressStates go from the first moment to a run in trouble.
func progressStates() []struct {
	name  string
	state progressState
} {
	return []struct {
		name  string
		state progressState
	}{
		{"start", progressState{InFlight: 64, Elapsed: time.Second}},
		{"half", progressState{
			Done: 2000, Total: 4000, InFlight: 256, Rate: 12.34, ETA: 162 * time.Second, Elapsed: 160 * time.Second,
			Tally: store.Tally{
				Episodes:  map[dataset.Outcome]int{dataset.OutcomeModel: 2000},
				Usage:     dataset.Usage{Input: 1_234_567, CacheRead: 1000, Output: 98_765},
				CostKnown: 12_345_600_000, Scored: 1990, Passed: 1200,
			},
			TokensPerSecond: 1234.5, Budget: runner.Limits{CostNanoUSD: 20_000_000_000, Tokens: 5_000_000},
			Variants: []progressVariant{
				{Name: "temperature=0", Done: 1000, Total: 2000, Tally: store.Tally{Scored: 990, Passed: 700, CostKnown: 6_000_000_000}},
				{Name: "temperature=0.7", Done: 1000, Total: 2000, Tally: store.Tally{Scored: 1000, Passed: 500, CostKnown: 6_345_600_000}},
			},
			Endpoints: []endpointLive{{"http://10.0.0.1/v1", model.LimiterState{
				Limit: 64, Ceiling: 64, Reason: model.ReasonCeiling, InFlight: 64, Waiting: 192,
			}}},
		}},
		{"trouble", progressState{
			Done: 999, Total: 1000, InFlight: 1, Rate: 0.05, ETA: 3*time.Hour + 25*time.Minute, Elapsed: 9 * time.Hour,
			Tally: store.Tally{
				Episodes: map[dataset.Outcome]int{
					dataset.OutcomeModel: 900, dataset.OutcomeTask: 9, dataset.OutcomeInfra: 80, dataset.OutcomeBudget: 5, dataset.OutcomeOperator: 5,
				},
				Unscored: 12, CostKnown: 1_230_000, CostUnknown: 1100, Usage: dataset.Usage{Input: 100, Output: 10},
			},
			Endpoints: []endpointLive{
				{"http://10.0.0.1/v1", model.LimiterState{
					Limit: 12, Ceiling: 64, Reason: model.ReasonRefused, Status: 429, InFlight: 12, Waiting: 1052,
				}},
				{"http://10.0.0.2/v1", model.LimiterState{
					Limit: 64, Ceiling: 64, Reason: model.ReasonCeiling, Pause: 8 * time.Second, PauseReason: model.ReasonRetryAfter,
				}},
			},
			Failures: map[string]int{"rate_limit": 60, "overloaded": 12, "server_error": 12, "timeout": 3, "reset_error": 2, "auth": 1},
			Note:     "interrupted: 1 episode in flight finishes; press Ctrl-C again to cancel it",
		}},
	}
}

func TestRenderProgress(t *testing.T) {
	var got strings.Builder
	for _, s := range progressStates() {
		fmt.Fprintf(&got, "# %s, plain\n%s\n", s.name, renderPlain(s.state))
		for _, width := range []int{100, 40} {
			fmt.Fprintf(&got, "# %s, %d columns\n%s\n", s.name, width, strings.Join(renderLive(s.state, width, false), "\n"))
		}
		fmt.Fprintf(&got, "# %s, coloured\n%q\n", s.name, renderLive(s.state, 80, true))
	}
	golden(t, "progress.txt", got.String())
}

func TestRenderLiveFits(t *testing.T) {
	for _, s := range progressStates() {
		for width := range 120 {
			for _, line := range renderLive(s.state, width, false) {
				if got := utf8.RuneCountInString(line); got > max(width-1, 0) {
					t.Fatalf("%s: a line of %d columns at width %d: %q", s.name, got, width, line)
				}
			}
		}
	}
}

func TestShowProgress(t *testing.T) {
	tests := []struct {
		name string
		std  stdio
		want string
	}{
		{"plain", stdio{}, "1 done, 0 in flight, 0/s, 0s elapsed, 0 tokens in, 0 out, cost $0.00, model 0\n" +
			"2 done, 0 in flight, 0/s, 0s elapsed, 0 tokens in, 0 out, cost $0.00, model 0\n" +
			"3 done, 0 in flight, 0/s, 0s elapsed, 0 tokens in, 0 out, cost $0.00, model 0\n"},
		{"quiet", stdio{quiet: true}, ""},
		{"quiet on a terminal", stdio{quiet: true, errTerminal: true}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				std := tt.std
				std.err, std.getenv = &console{w: &out}, func(string) string { return "" }
				calls := 0
				stop := showProgress(&std, func() progressState { calls++; return progressState{Done: calls} })
				<-time.After(2*plainEvery + time.Second)
				stop()
				stop()
				if diff := cmp.Diff(tt.want, out.String()); diff != "" {
					t.Errorf("stderr (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// On a terminal the display is drawn over, keeps logs above it, and stays when
// it is stopped.
func TestShowProgressLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		std := &stdio{
			err: &console{w: &out}, errTerminal: true, noColor: true,
			getenv: func(string) string { return "" },
			width:  func() int { return 40 },
		}
		std.setLog(false, "info")
		calls := 0
		stop := showProgress(std, func() progressState { calls++; return progressState{Done: calls, Total: 4} })
		<-time.After(3*liveEvery + time.Millisecond)
		synctest.Wait()
		std.err.printf("a log line\n")
		stop()
		std.err.printf("the end\n")
		want := []string{
			"a log line",
			"4/4 (100%) done  0 in flight  0/s",
			"0s elapsed",
			"0 tokens in, 0 out  cost $0.00",
			"model 0",
			"the end",
		}
		if diff := cmp.Diff(want, screen(t, out.String())); diff != "" {
			t.Errorf("screen (-want +got):\n%s", diff)
		}
	})
}

// Where logs are JSON, so is progress.
func TestShowProgressJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		std := &stdio{err: &console{w: &out}, errTerminal: true, getenv: func(string) string { return "" }}
		std.setLog(true, "info")
		stop := showProgress(std, func() progressState { return progressStates()[2].state })
		stop()
		want := `"msg":"progress","done":999,"total":1000,"in_flight":1,"per_second":0.05,"eta_s":12300,"tokens":110,` +
			`"cost_known_nanousd":1230000,"cost_unknown":1100,"outcomes":{"model":900,"task":9,"infra":80,"budget":5,"operator":5},"scored":0,"passed":0,"tokens_out_per_second":0,` +
			`"failures":{"auth":1,"overloaded":12,"rate_limit":60,"reset_error":2,"server_error":12,"timeout":3},` +
			`"endpoints":[{"endpoint":"http://10.0.0.1/v1","limit":12,"ceiling":64,"reason":"refused","status":429,"in_flight":12,"waiting":1052},` +
			`{"endpoint":"http://10.0.0.2/v1","limit":64,"ceiling":64,"reason":"ceiling","in_flight":0,"waiting":0,"pause_ns":8000000000,"pause_reason":"retry_after"}]}` + "\n"
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("got %s, want it to end in %s", out.String(), want)
		}
	})
}

func TestTokenRate(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r tokenRate
	for _, step := range []struct {
		second int
		tokens int64
		want   float64
	}{
		{0, 5000, 0}, // of an earlier invocation
		{1, 5100, 100},
		{2, 5100, 50},
		{20, 7000, 100},
		{21, 7000, 95}, // the first second is out of the window
		{60, 7000, 0},
	} {
		if got := r.at(start.Add(time.Duration(step.second)*time.Second), step.tokens); got != step.want {
			t.Errorf("after %d s: got %v, want %v", step.second, got, step.want)
		}
	}
	if len(r.samples) > 3 {
		t.Errorf("%d samples are kept", len(r.samples))
	}
}

// TestFewVariantsHaveLines: one has nothing to be told from, many are for status.
func TestFewVariantsHaveLines(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 2: 2, fewVariants: fewVariants, fewVariants + 1: 0} {
		if got := len(variantLines(make([]progressVariant, n))); got != want {
			t.Errorf("%d variants have %d lines, want %d", n, got, want)
		}
	}
}
