package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gsm8k is the public data set's folder beside the repository.
func gsm8k(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../shared/data/gsm8k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the GSM8K data are not beside the repository: %v", err)
	}
	return dir
}

// TestGSM8KReplay scores 4,000 recorded answers of four models and compares
// each verdict, as SQL shows it, with the published one.
func TestGSM8KReplay(t *testing.T) {
	t.Parallel()
	data := gsm8k(t)
	solutions := filepath.Join(data, "model-solutions-0000-0999.jsonl")
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", "../../configs/gsm8k-replay.yaml", "--out", dir, "--quiet",
		"--set", "tasks.path="+filepath.Join(data, "test-0000-0999.jsonl"), "--set", "agent.replay.path="+solutions)

	type answer struct{ Model, Question string }
	got := map[answer]bool{}
	counts := map[string]int{}
	for _, row := range ask[struct {
		answer
		Reward float64
		Passed bool
	}](t, dir, `SELECT split_part(variant_params ->> '$."agent.replay.column"', '.', 1) AS model, input AS question, reward, passed
		FROM episodes JOIN tasks USING (run_id, task_id, occurrence)`) {
		if _, twice := got[row.answer]; twice || row.Passed != (row.Reward == 1) {
			t.Errorf("%v: twice %v, reward %v, passed %v", row.answer, twice, row.Reward, row.Passed)
		}
		got[row.answer] = row.Passed
		counts[row.Model] += int(row.Reward)
	}
	if diff := cmp.Diff(published(t, solutions, func(model, question string) answer { return answer{model, question} }), got); diff != "" {
		t.Errorf("verdicts (-published +ours):\n%s", diff)
	}
	want := map[string]int{"6b_finetuning": 219, "6b_verification": 400, "175b_finetuning": 348, "175b_verification": 574}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("correct answers (-want +got):\n%s", diff)
	}
}

// published are the verdicts that the data set came with.
func published[K comparable](t *testing.T, path string, key func(model, question string) K) map[K]bool {
	t.Helper()
	verdicts := map[K]bool{}
	for line := range strings.Lines(string(readFile(t, path))) {
		var row map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		var question string
		if err := json.Unmarshal(row["question"], &question); err != nil {
			t.Fatal(err)
		}
		delete(row, "question")
		delete(row, "ground_truth")
		for model, raw := range row {
			var solution struct {
				IsCorrect bool `json:"is_correct"`
			}
			if err := json.Unmarshal(raw, &solution); err != nil {
				t.Fatal(err)
			}
			verdicts[key(model, question)] = solution.IsCorrect
		}
	}
	return verdicts
}

// TestOracleAndLoop: what knows the answer passes always, what never ends
// never, and a run that is cut short by a limit stays in the denominator.
func TestOracleAndLoop(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	config := filepath.Join(t.TempDir(), "questions.yaml")
	writeFile(t, config, `version: 1
tasks: {path: bundled:quickstart, columns: {id: id, input: question, target: answer}}
agent: {model: scripted/null, toolsets: [answer, math]}
score: [{name: exact}]
samples: 4
limits: {episode: {turns: 10}}
`)
	stdout, _ := mustExit(t, 0, "run", config, "-m", "scripted/oracle", "-m", "scripted/loop", "--out", dir, "--quiet")
	for _, line := range []string{
		`model=scripted/oracle 168 168 0 1.000 100.0%`,
		`model=scripted/loop 168 168 168 0.000 0.0%`,
		`all 336 336 168 0.500 50.0%`,
	} {
		wantTexts(t, strings.Join(strings.Fields(stdout), " "), line)
	}
	type variant struct {
		Variant             string
		Mean                float64
		Truncated, Episodes int
	}
	want := []variant{{"model=scripted/loop", 0, 168, 168}, {"model=scripted/oracle", 1, 0, 168}}
	got := ask[variant](t, dir, `SELECT variant, avg(reward) AS mean, count(*) FILTER (truncated) AS truncated, count(*) AS episodes
		FROM episodes GROUP BY variant ORDER BY variant`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variants (-want +got):\n%s", diff)
	}
}
