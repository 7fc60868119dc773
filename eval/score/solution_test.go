package score

import (
	"testing"

	"github.com/talaria-run/talaria/dataset"
)

func TestSolution(t *testing.T) {
	worked := "16-3-4 = 9\n9*2 = 18\n#### 18"
	tests := []struct {
		name    string
		configs []Config
		target  string
		want    string
		passes  bool
	}{
		{"exact", []Config{{Name: "exact"}}, "Paris", "Paris", true},
		{"worked solution passes as it is", []Config{{Name: "numeric", Extract: "####", TargetExtract: "####"}}, worked, worked, true},
		{"extracted target", []Config{{Name: "numeric", TargetExtract: "####"}}, worked, "18", true},
		{"hashes", []Config{{Name: "numeric", Extract: "####"}}, "18", "#### 18", true},
		{"box", []Config{{Name: "exact", Extract: "boxed"}}, `\frac{1}{2}`, `\boxed{\frac{1}{2}}`, true},
		{"letter", []Config{{Name: "exact", Extract: "letter"}}, "B", "B", true},
		{"last number", []Config{{Name: "numeric", Extract: "last_number"}}, "1,000", "1,000", true},
		{"regex with a prefix", []Config{{Name: "numeric", Extract: `/A: *(-?[\d,.]+)/`, TargetExtract: "####"}}, worked, "A:18", true},
		{"regex without case", []Config{{Name: "exact", Extract: `/(?i)^answer(?: is|:)\s+(\w+)\.$/`}}, "Paris", "ANSWER IS\tParis.", true},
		{"regex with a counted class", []Config{{Name: "exact", Extract: `/<{2}(.+)>+/`}}, "7", "<<7>", true},
		{"contains", []Config{{Name: "contains"}}, "blue", "blue", true},
		{"target is a regex", []Config{{Name: "regex"}}, `^[a-c]{3}\d+$`, "aaa0", true},
		{"pattern of the config", []Config{{Name: "regex", Decode: params(`{"pattern":"^(yes|no)$"}`)}}, "", "yes", true},
		{"the chosen scorer", []Config{{Name: "exact"}, {Name: "exact", Extract: "####", Chosen: true}}, "x", "#### x", true},
		{"no way", []Config{{Name: "exact", Extract: `/^a(b)?$/`}}, "c", "c", false},
		{"no scorer", nil, "x", "x", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := New(tt.configs)
			if err != nil {
				t.Fatal(err)
			}
			task := dataset.Task{Target: tt.target}
			got := Solution(set, task)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if passed := passes(t, set, task, got); passed != tt.passes {
				t.Errorf("%q passes: %v, want %v", got, passed, tt.passes)
			}
		})
	}
}

// passes asks the chosen scorer.
func passes(t *testing.T, set *Set, task dataset.Task, reply string) bool {
	t.Helper()
	for _, s := range set.Scorers {
		rewards, err := s.Score(t.Context(), task, said(reply))
		if err != nil {
			t.Fatal(err)
		}
		if rewards[0].Chosen {
			return *rewards[0].Passed
		}
	}
	return false
}
