package score

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/talaria-run/talaria/dataset"
)

// TestGSM8K scores 4,000 answers of four real models and compares each verdict
// with the published one.
func TestGSM8K(t *testing.T) {
	problems := lines[struct{ Answer string }](t, "test-0000-0999.jsonl")
	solutions := lines[map[string]json.RawMessage](t, "model-solutions-0000-0999.jsonl")
	s := one(t, Config{Name: "numeric", Extract: `/A: *(-?[\d,.]+)/`, TargetExtract: "####"})
	tests := []struct {
		model string
		want  int
	}{
		{"6b_finetuning", 219},
		{"6b_verification", 400},
		{"175b_finetuning", 348},
		{"175b_verification", 574},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			got := 0
			for i, row := range solutions {
				var solution struct {
					Solution  string `json:"solution"`
					IsCorrect bool   `json:"is_correct"`
				}
				if err := json.Unmarshal(row[tt.model], &solution); err != nil {
					t.Fatal(err)
				}
				rewards, err := s.Score(t.Context(), dataset.Task{Target: problems[i].Answer}, said(solution.Solution))
				if err != nil {
					t.Fatal(err)
				}
				if passed := *rewards[0].Passed; passed != solution.IsCorrect {
					t.Errorf("row %d: got %v, want %v: %s", i, passed, solution.IsCorrect, rewards[0].Explanation)
				}
				got += int(*rewards[0].Value)
			}
			if got != tt.want {
				t.Errorf("got %d correct of %d, want %d", got, len(solutions), tt.want)
			}
		})
	}
}

func lines[T any](t *testing.T, name string) []T {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "gsm8k", name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the data are not there: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	for line := range bytes.Lines(text) {
		var row T
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}
