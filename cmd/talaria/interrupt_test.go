//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

const draining = "draining: episodes in flight finish; interrupt again to cut them off"

// inFlight starts a run of 20 episodes, four at a time, of two turns each, and
// waits until four have had their first answer and wait for the second.
func inFlight(t *testing.T, limits string) (p *process, dir string, l *localLab) {
	t.Helper()
	l = newLab(t, lab.Script{Turns: 1})
	l.hold(turn(1))
	config := labConfig(t, l.base, 20, "limits: {concurrency: {episodes: 4}"+limits+"}\n")
	dir = filepath.Join(t.TempDir(), "run")
	p = start(t, "run", config, "--out", dir)
	l.awaitHeld(t, 4)
	return p, dir, l
}

// stopped wants a run that was stopped by a person.
func stopped(t *testing.T, p *process, dir string) []store.AttemptRow {
	t.Helper()
	if code := p.wait(t); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, p.err)
	}
	wantTexts(t, p.err.String(), "interrupted: what finished is safe, 'talaria resume "+dir+"' goes on")
	if state := runOf(t, dir).State; state != store.StateInterrupted {
		t.Errorf("state %q, want %q", state, store.StateInterrupted)
	}
	return recorded(t, dir)
}

// completes resumes to the end and wants each episode to have been bought once,
// but for the attempts that were cut off.
func completes(t *testing.T, dir string, l *localLab, cutOff int) {
	t.Helper()
	l.open()
	mustExit(t, 0, "resume", dir)
	want := map[dataset.Outcome]int{dataset.OutcomeModel: 20}
	if cutOff > 0 {
		want[dataset.OutcomeOperator] = cutOff
	}
	if diff := cmp.Diff(want, outcomesOf(recorded(t, dir))); diff != "" {
		t.Errorf("attempts by outcome (-want +got):\n%s", diff)
	}
	if n := len(l.Ledger()); n != 40+cutOff {
		t.Errorf("%d requests, want two for each episode and one for each attempt that was cut off: %d", n, 40+cutOff)
	}
	if state := runOf(t, dir).State; state != store.StateComplete {
		t.Errorf("state %q, want %q", state, store.StateComplete)
	}
}

// TestSignalDrains: after one signal no episode begins and those in flight
// finish.
func TestSignalDrains(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p, dir, l := inFlight(t, "")
			p.signal(t, signal)
			p.says(t, draining)
			l.open()
			rows := stopped(t, p, dir)
			if diff := cmp.Diff(map[dataset.Outcome]int{dataset.OutcomeModel: 4}, outcomesOf(rows)); diff != "" {
				t.Errorf("attempts by outcome (-want +got):\n%s", diff)
			}
			completes(t, dir, l, 0)
		})
	}
}

// TestSecondSignalCancels: what is in flight is cut off, with its true cost and
// without a reward, by a second signal or when the grace is over.
func TestSecondSignalCancels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		limits string
		second os.Signal // nil: none
	}{
		{name: "SIGINT twice", second: os.Interrupt},
		{name: "SIGTERM after SIGINT", second: syscall.SIGTERM},
		{name: "grace is over", limits: ", grace: 500ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, dir, l := inFlight(t, test.limits)
			p.signal(t, os.Interrupt)
			p.says(t, draining)
			if test.second != nil {
				p.signal(t, test.second)
			}
			rows := stopped(t, p, dir)
			if len(rows) != 4 {
				t.Fatalf("%d attempts, want 4", len(rows))
			}
			wantCutOff(t, rows, l.Ledger())
			completes(t, dir, l, 4)
		})
	}
}

// wantCutOff wants rows of attempts whose first call is paid for and whose
// second one never came back.
func wantCutOff(t *testing.T, rows []store.AttemptRow, ledger []lab.Entry) {
	t.Helper()
	paid := map[string]int64{}
	for _, e := range ledger {
		paid[episodeOf(e)] += e.Usage.TotalTokens
	}
	type end struct {
		Outcome, Reason      string
		Scored, CostKnown    bool
		Requests, Unreported int32
		Tokens               int64
	}
	for _, row := range rows {
		tokens := row.InputTokens + row.CacheReadTokens + row.CacheWriteTokens + row.OutputTokens
		got := end{
			Outcome: row.Outcome, Reason: row.ExitReason, Scored: row.Reward != nil, CostKnown: row.CostNanoUSD != nil,
			Requests: row.Requests, Unreported: row.UnreportedCalls, Tokens: tokens,
		}
		want := end{
			Outcome: string(dataset.OutcomeOperator), Reason: string(dataset.ExitInterrupted),
			Requests: 2, Unreported: 1, Tokens: paid[row.EpisodeID],
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attempt (-want +got):\n%s", diff)
		}
		// The prices of labConfig: 1,000 nano-dollars a token in, 3,000 out.
		if cost := 1000*(tokens-row.OutputTokens) + 3000*row.OutputTokens; row.CostKnownNanoUSD != cost || cost == 0 {
			t.Errorf("known cost %d, want %d", row.CostKnownNanoUSD, cost)
		}
	}
}
