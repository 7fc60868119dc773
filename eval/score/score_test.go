package score

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
)

// params decodes scorer parameters from JSON.
func params(text string) func(any) error {
	return func(into any) error {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		return dec.Decode(into)
	}
}

func one(t *testing.T, c Config) *Scorer {
	t.Helper()
	set, err := New([]Config{c})
	if err != nil {
		t.Fatal(err)
	}
	return set.Scorers[0]
}

func said(text string) *dataset.Trajectory {
	return &dataset.Trajectory{Messages: []dataset.Message{
		{Role: dataset.User, Content: "?"},
		{Role: dataset.Assistant, Content: text, Policy: true},
	}}
}

func TestScore(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		target string
		reply  string
		want   float64
		why    string
	}{
		{"exact", Config{Name: "exact"}, "Paris", " Paris\n", 1, `"Paris" is the target`},
		{"exact, other", Config{Name: "exact"}, "Paris", "Rome", 0, `"Rome" is not "Paris"`},
		{"exact, other case", Config{Name: "exact"}, "Paris", "paris", 0, `"paris" is not "Paris"`},
		{"exact, any case", Config{Name: "exact", Decode: params(`{"case_sensitive":false}`)}, "Paris", "paris", 1, `"paris" is the target`},
		{"exact, letter", Config{Name: "exact", Extract: "letter"}, "B", "The answer is (B).", 1, `"B" is the target`},
		{"exact, says nothing", Config{Name: "exact"}, "Paris", "", 0, "no answer: the whole text finds nothing"},
		{"numeric", Config{Name: "numeric"}, "18", "18.00", 1, `"18.00" equals "18"`},
		{"numeric, separators", Config{Name: "numeric", TargetExtract: "####"}, "so\n#### 1,234", "$1234.", 1, `"$1234." equals "1,234"`},
		{"numeric, other", Config{Name: "numeric"}, "18", "26", 0, `"26" is not "18"`},
		{"numeric, no number", Config{Name: "numeric"}, "18", "eighteen", 0, `"eighteen" is not a number`},
		{"numeric, extracted", Config{Name: "numeric", Extract: "last_number"}, "18", "It is 18.", 1, `"18" equals "18"`},
		{"numeric, no match", Config{Name: "numeric", Extract: "####"}, "18", "It is 18.", 0, "no answer: #### finds nothing"},
		{"numeric, exact", Config{Name: "numeric"}, "0.3", "0.30000000000000001", 0, `"0.30000000000000001" is not "0.3"`},
		{"numeric, at the tolerance", Config{Name: "numeric", Decode: params(`{"tolerance":0.3}`)}, "1", "1.3", 1, `"1.3" equals "1"`},
		{"numeric, below the tolerance", Config{Name: "numeric", Decode: params(`{"tolerance":0.3}`)}, "-1", "-1.3", 1, `"-1.3" equals "-1"`},
		{"numeric, beyond the tolerance", Config{Name: "numeric", Decode: params(`{"tolerance":0.3}`)}, "1", "1.30001", 0, `"1.30001" is not "1"`},
		{"regex of the target", Config{Name: "regex"}, `^\d{4}$`, "2024", 1, `"2024" matches "^\\d{4}$"`},
		{"regex of the config", Config{Name: "regex", Decode: params(`{"pattern":"(?i)sorry"}`)}, "", "I am Sorry", 1, `"I am Sorry" matches "(?i)sorry"`},
		{"regex, no match", Config{Name: "regex"}, `^\d{4}$`, "24", 0, `"24" does not match "^\\d{4}$"`},
		{"contains", Config{Name: "contains"}, "blue", "The sky is blue.", 1, `contains "blue"`},
		{"contains, other case", Config{Name: "contains"}, "Blue", "The sky is blue.", 0, `does not contain "Blue"`},
		{"contains, any case", Config{Name: "contains", Decode: params(`{"case_sensitive":false}`)}, "Blue", "The sky is blue.", 1, `contains "Blue"`},
		{"long texts are clipped", Config{Name: "contains"}, strings.Repeat("é", 61), "x", 0, `does not contain "` + strings.Repeat("é", 60) + `"...`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := one(t, tt.config)
			got, err := s.Score(t.Context(), dataset.Task{ID: "t", Target: tt.target}, said(tt.reply))
			if err != nil {
				t.Fatal(err)
			}
			want := []dataset.Reward{{
				Name: tt.config.Name, Revision: s.Hash[:8], ScorerHash: s.set, Source: dataset.FromScorer,
				Value: &tt.want, Passed: new(tt.want == 1), Chosen: true, Explanation: tt.why,
			}}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(dataset.Reward{}, "CreatedAt")); diff != "" {
				t.Errorf("rewards (-want +got):\n%s", diff)
			}
			if got[0].CreatedAt.IsZero() {
				t.Error("no time")
			}
		})
	}
}

func TestScoreRefusesTasks(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		target string
		reply  string
		want   string
	}{
		{"no target", Config{Name: "exact"}, " ", "x", `scorer exact: task "t": no target: the whole text finds nothing in " "`},
		{"contains no target", Config{Name: "contains"}, "", "x", `scorer contains: task "t": no target: the whole text finds nothing in ""`},
		{"nothing extracted", Config{Name: "exact", TargetExtract: "####"}, "18", "18", `scorer exact: task "t": no target: #### finds nothing in "18"`},
		{"target is no number", Config{Name: "numeric"}, "many", "18", `scorer numeric: task "t": the target "many" is not a number`},
		{"target is no number, nor is there a reply", Config{Name: "numeric"}, "many", "", `scorer numeric: task "t": the target "many" is not a number`},
		{"target is no regex", Config{Name: "regex"}, "(", "x", `scorer regex: task "t": the target is no regular expression: error parsing regexp: missing closing ): ` + "`(`"},
		{"no regex", Config{Name: "regex"}, "", "x", `scorer regex: task "t": no target: the whole text finds nothing in ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := one(t, tt.config).Score(t.Context(), dataset.Task{ID: "t", Target: tt.target}, said(tt.reply))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, error %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestScoreStopsWithItsContext(t *testing.T) {
	why := errors.New("out of time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := one(t, Config{Name: "exact"}).Score(ctx, dataset.Task{Target: "x"}, said("x")); !errors.Is(err, why) {
		t.Errorf("got error %v, want %v in its chain", err, why)
	}
}

func TestSubmittedAnswerGoesBeforeText(t *testing.T) {
	tr := said("the answer is 4")
	tr.Answer = new("5")
	rewards, err := one(t, Config{Name: "numeric"}).Score(t.Context(), dataset.Task{Target: "5"}, tr)
	if err != nil {
		t.Fatal(err)
	}
	if got := *rewards[0].Value; got != 1 {
		t.Errorf("got %v, want 1: %s", got, rewards[0].Explanation)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name    string
		configs []Config
		want    string
	}{
		{"unknown", []Config{{Name: "exactly"}}, `score[0]: unknown scorer "exactly" (known: contains, exact, numeric, regex)`},
		{"extractor", []Config{{Name: "exact"}, {Name: "exact", Extract: "x"}}, `score[1]: exact: extract: unknown extractor "x" (known: ####, boxed, last_number, letter, or a /regex/)`},
		{"target extractor", []Config{{Name: "exact", TargetExtract: "x"}}, `score[0]: exact: target_extract: unknown extractor "x" (known: ####, boxed, last_number, letter, or a /regex/)`},
		{"unknown parameter", []Config{{Name: "exact", Decode: params(`{"fuzzy":true}`)}}, `score[0]: exact: json: unknown field "fuzzy"`},
		{"tolerance", []Config{{Name: "numeric", Decode: params(`{"tolerance":-1}`)}}, "score[0]: numeric: tolerance has to be a number from 0, not -1"},
		{"pattern", []Config{{Name: "regex", Decode: params(`{"pattern":"["}`)}}, "score[0]: regex: pattern: error parsing regexp: missing closing ]: `[`"},
		{"two chosen", []Config{{Name: "exact", Chosen: true}, {Name: "regex", Chosen: true}}, "score: more than one scorer is marked chosen"},
		{"all errors", []Config{{Name: "a"}, {Name: "b"}}, "score[0]: unknown scorer \"a\" (known: contains, exact, numeric, regex)\nscore[1]: unknown scorer \"b\" (known: contains, exact, numeric, regex)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.configs); err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestChosen(t *testing.T) {
	tests := []struct {
		name    string
		configs []Config
		want    []bool
	}{
		{"none marked", []Config{{Name: "exact"}, {Name: "regex"}}, []bool{true, false}},
		{"second marked", []Config{{Name: "exact"}, {Name: "regex", Chosen: true}}, []bool{false, true}},
		{"no scorers", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := New(tt.configs)
			if err != nil {
				t.Fatal(err)
			}
			var got []bool
			for _, s := range set.Scorers {
				rewards, err := s.Score(t.Context(), dataset.Task{Target: "x"}, said("x"))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, rewards[0].Chosen)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHash(t *testing.T) {
	base := Config{Name: "numeric", Extract: "####"}
	changed := []struct {
		name string
		c    Config
	}{
		{"rule", Config{Name: "exact", Extract: "####"}},
		{"extractor", Config{Name: "numeric", Extract: "boxed"}},
		{"target extractor", Config{Name: "numeric", Extract: "####", TargetExtract: "####"}},
		{"parameter", Config{Name: "numeric", Extract: "####", Decode: params(`{"tolerance":1}`)}},
	}
	if got, want := one(t, base).Hash, one(t, Config{Name: "numeric", Extract: "####", Decode: params(`{"tolerance":0}`)}).Hash; got != want {
		t.Errorf("a default that is spelled out changes the hash: %s, %s", got, want)
	}
	seen := map[string]string{one(t, base).Hash: "base"}
	for _, tt := range changed {
		hash := one(t, tt.c).Hash
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s have one hash", tt.name, other)
		}
		seen[hash] = tt.name
	}
}

func TestSetHash(t *testing.T) {
	hash := func(configs ...Config) string {
		set, err := New(configs)
		if err != nil {
			t.Fatal(err)
		}
		return set.Hash
	}
	first := hash(Config{Name: "exact"}, Config{Name: "regex"})
	if got := hash(Config{Name: "exact", Chosen: true}, Config{Name: "regex"}); got != first {
		t.Errorf("a choice that is spelled out changes the hash")
	}
	if got := hash(Config{Name: "exact"}, Config{Name: "regex", Chosen: true}); got == first {
		t.Errorf("another choice leaves the hash")
	}
	if got := hash(Config{Name: "exact"}); got == first {
		t.Errorf("a scorer less leaves the hash")
	}
}

func TestSubmittedAnswerNeedsNoMark(t *testing.T) {
	s := one(t, Config{Name: "numeric", Extract: "####"})
	answer := "18"
	for _, tt := range []struct {
		exit dataset.ExitReason
		want float64
	}{{dataset.ExitSubmitted, 1}, {dataset.ExitAnswered, 0}} {
		rewards, err := s.Score(t.Context(), dataset.Task{Target: "18"}, &dataset.Trajectory{Answer: &answer, ExitReason: tt.exit})
		if err != nil {
			t.Fatal(err)
		}
		if got := *rewards[0].Value; got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.exit, got, tt.want)
		}
	}
}
