package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// failing is limits under which two episodes take four attempts.
const failing = "limits: {request: 300ms, retries: {requests: 0, infra: 1}}\n"

// TestProviderFailures lets an endpoint fail in every way: each attempt leaves
// a row that says why, nothing that may have been paid for is forgotten, the
// run ends with code 5, and goes on once it is asked to.
func TestProviderFailures(t *testing.T) {
	t.Parallel()
	always := func(kind string) lab.Script {
		return lab.Script{Faults: []lab.Fault{{Kind: kind, Rate: 1, Times: 9}}}
	}
	tests := []struct {
		name   string
		script lab.Script
		base   string // instead of the lab
		class  string
		text   string // in the row's error

		paid       bool  // usage was reported
		unreported int32 // calls of an attempt that may have been paid for
	}{
		{name: "unreachable", base: "http://127.0.0.1:1/v1", class: model.ClassConnection, text: "connection refused"},
		{name: "500", script: always(lab.FaultStatus), class: model.ClassServer, text: "(HTTP 500): a scripted fault"},
		{name: "malformed", script: always(lab.FaultMalformed), class: model.ClassBadResponse, text: "reading the reply", unreported: 1},
		{name: "cut", script: always(lab.FaultCut), class: model.ClassBadResponse, text: "the body ends in the middle", unreported: 1},
		{name: "reset", script: always(lab.FaultReset), class: model.ClassConnection, text: "connection reset by peer", unreported: 1},
		{name: "hang", script: always(lab.FaultHang), class: model.ClassTimeout, text: "the server is silent for 300ms", unreported: 1},
		{name: "empty choices", script: always(lab.FaultEmptyChoices), class: model.ClassBadResponse, text: "no choices", paid: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, test.script)
			base := l.base
			if test.base != "" {
				base = test.base
			}
			config := labConfig(t, base, 2, failing)
			dir := filepath.Join(t.TempDir(), "run")
			_, stderr := mustExit(t, 5, "run", config, "--out", dir)
			wantTexts(t, stderr, "no episode ended as the model's own doing", "'talaria resume "+dir+" --retry infra' tries again")

			rows := recorded(t, dir)
			if len(rows) != 4 {
				t.Fatalf("%d attempts, want 4", len(rows))
			}
			for _, row := range rows {
				wantFailure(t, row, test.class, test.text)
				if row.UnreportedCalls != test.unreported || (row.OutputTokens > 0) != test.paid || (row.CostKnownNanoUSD > 0) != test.paid {
					t.Errorf("%d unreported calls, %d output tokens, cost %d", row.UnreportedCalls, row.OutputTokens, row.CostKnownNanoUSD)
				}
				if known := row.CostNanoUSD != nil; known != (test.unreported == 0) {
					t.Errorf("cost known: %v with %d unreported calls", known, test.unreported)
				}
			}
			resumes(t, dir, l)
		})
	}
}

// wantFailure wants a row that blames the provider and nobody else.
func wantFailure(t *testing.T, row store.AttemptRow, class, text string) {
	t.Helper()
	type end struct{ Outcome, Reason, Class string }
	got := end{row.Outcome, row.ExitReason, deref(row.ErrorClass)}
	want := end{string(dataset.OutcomeInfra), string(dataset.ExitProviderError), class}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	wantTexts(t, deref(row.Error), text)
	if row.Reward != nil || row.Passed != nil {
		t.Errorf("reward %v, passed %v, want null", row.Reward, row.Passed)
	}
}

func deref(s *string) string {
	if s == nil {
		return "(null)"
	}
	return *s
}

// resumes goes on with a run whose two episodes have used up their retries:
// alone it calls no model, with a fresh allowance and a healthy lab it ends
// well and keeps the rows that there are.
func resumes(t *testing.T, dir string, sick *localLab) {
	t.Helper()
	before := len(sick.Ledger())
	mustExit(t, 5, "resume", dir)
	if after := len(sick.Ledger()); after != before {
		t.Errorf("resume sent %d requests for episodes without retries", after-before)
	}
	healthy := newLab(t, lab.Script{})
	mustExit(t, 0, "resume", dir, "--retry", "infra", "--set", "agent.base_url="+healthy.base)
	want := map[dataset.Outcome]int{dataset.OutcomeInfra: 4, dataset.OutcomeModel: 2}
	if diff := cmp.Diff(want, outcomesOf(recorded(t, dir))); diff != "" {
		t.Errorf("attempts by outcome after resume (-want +got):\n%s", diff)
	}
	if state := runOf(t, dir).State; state != store.StateComplete {
		t.Errorf("state %q", state)
	}
}

// TestFatalFailures stops a variant whose calls cannot succeed, once, and lets
// the others of the sweep go on. The episodes that it left run later.
func TestFatalFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		script       lab.Script
		class, says  string
		key, mended  string // in the file that the config names
		mendedScript lab.Script
	}{{
		name: "401", script: lab.Script{APIKey: "sk-right-key"}, key: "sk-wrong-key", mended: "sk-right-key",
		class: model.ClassAuth, says: `variant "model=openai/lab" stopped: auth (HTTP 401): incorrect API key provided: [`,
		mendedScript: lab.Script{APIKey: "sk-right-key"},
	}, {
		name: "404", script: lab.Script{Models: []string{"other"}}, key: "sk-any-key", mended: "sk-any-key",
		class: model.ClassModelNotFound, says: `variant "model=openai/lab" stopped: model_not_found (HTTP 404): the model "lab" does not exist`,
		mendedScript: lab.Script{Models: []string{"lab"}},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			key := filepath.Join(t.TempDir(), "key.txt")
			l := newLab(t, test.script)
			config := labConfig(t, l.base, 10, "limits: {concurrency: {episodes: 1}}\n"+
				"sweep: {agent.model: [openai/lab, scripted/oracle]}\n")
			dir := filepath.Join(t.TempDir(), "run")
			writeFile(t, key, test.key)
			stdout, stderr := mustExit(t, 1, "run", config, "--out", dir, "--set", "agent.api_key_file="+key)
			wantTexts(t, stderr, test.says, "what finished is safe in "+dir)
			if strings.Contains(stdout+stderr, test.key) {
				t.Error("the key is shown")
			}

			refused := slices.DeleteFunc(recorded(t, dir), func(row store.AttemptRow) bool { return row.Provider == "scripted" })
			if played := len(recorded(t, dir)) - len(refused); len(refused) != 1 || played != 10 || len(l.Ledger()) != 1 {
				t.Fatalf("%d rows of the refused variant, %d of the other, %d requests, want 1, 10, 1", len(refused), played, len(l.Ledger()))
			}
			wantFailure(t, refused[0], test.class, "(HTTP "+test.name+")")
			if state := runOf(t, dir).State; state != store.StateFailed {
				t.Errorf("state %q, want %q", state, store.StateFailed)
			}

			writeFile(t, key, test.mended)
			mended := newLab(t, test.mendedScript)
			mustExit(t, 0, "resume", dir, "--set", "agent.base_url="+mended.base)
			want := map[dataset.Outcome]int{dataset.OutcomeInfra: 1, dataset.OutcomeModel: 20}
			if diff := cmp.Diff(want, outcomesOf(recorded(t, dir))); diff != "" {
				t.Errorf("attempts by outcome after resume (-want +got):\n%s", diff)
			}
		})
	}
}
