package configs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Label string `json:"label"`
	N     int    `json:"n" min:"1"`
}

type base struct {
	Seed int `json:"seed"`
}

type parameters struct {
	base
	Name          string         `json:"name"`
	CaseSensitive bool           `yaml:"case_sensitive" json:"other"`
	MaxLen        int            // max_len
	Ratio         float64        `json:"ratio" max:"1"`
	Small         uint8          `json:"small"`
	Wait          time.Duration  `json:"wait"`
	Level         *int           `json:"level"`
	List          []inner        `json:"list"`
	Map           map[string]int `json:"map"`
	Any           any            `json:"any"`
	Raw           json.RawMessage
	When          time.Time `json:"when"`
	Hidden        string    `json:"-"`
}

const withParams = `version: 1
tasks: {path: t.jsonl}
agent: {model: scripted/oracle}
env:
  name: answer
  case_sensitive: true
  max_len: 3
  ratio: 0.5
  small: 255
  wait: 1m
  level: 2
  list: [{label: a, n: 2}, {n: 1}]
  map: {x: 1}
  any: {a: [1, 2.5, true, null, x]}
  raw: {a: 1.0}
  when: 2024-02-29T00:00:00Z
  seed: 7
score:
  - {name: exact, extract: boxed, case_sensitive: true}
`

// Parameters decode alike from the file and from run.json.
func TestParams(t *testing.T) {
	r := parse(t, withParams, Options{})
	resolved, err := r.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := FromResolved(resolved, Options{})
	if err != nil {
		t.Fatal(err)
	}
	two := 2
	want := parameters{
		Name: "default", CaseSensitive: true, MaxLen: 3, Ratio: 0.5, Small: 255, Wait: time.Minute, Level: &two,
		List: []inner{{"a", 2}, {"", 1}}, Map: map[string]int{"x": 1},
		Any:  map[string]any{"a": []any{int64(1), 2.5, true, nil, "x"}},
		Raw:  json.RawMessage("{\n  \"a\": 1.0\n}"),
		When: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), base: base{7},
	}
	for name, run := range map[string]*Run{"file": r, "resolved": again} {
		got := parameters{Name: "default"}
		// The env's own name is no parameter.
		if err := run.Sources()[0].EnvParams(&got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(parameters{}, base{})); diff != "" {
			t.Errorf("parameters from %s differ (-want +got):\n%s", name, diff)
		}
		var s struct {
			CaseSensitive bool `json:"case_sensitive"`
		}
		if err := run.Sources()[0].Score[0].Params(&s); err != nil || !s.CaseSensitive {
			t.Errorf("scorer's parameters from %s: %+v, %v", name, s, err)
		}
	}
}

func TestParamsErrors(t *testing.T) {
	text := strings.ReplaceAll(withParams, "  small: 255\n", "  small: 256\n")
	text = strings.ReplaceAll(text, "ratio: 0.5", "ratio: 2")
	text = strings.ReplaceAll(text, "wait: 1m", "wait: 1")
	text = strings.ReplaceAll(text, "n: 1}", "n: 0, m: 1}")
	text = strings.ReplaceAll(text, "case_sensitive: true\n  max_len", "case_sensitve: true\n  max_len")
	text = strings.ReplaceAll(text, "when: 2024-02-29T00:00:00Z", "when: later")
	text = strings.ReplaceAll(text, "any: {a", "other: 1\n  any: {a")
	r := parse(t, text, Options{})
	err := r.Sources()[0].EnvParams(&parameters{})
	want := `dir/test.yaml:6: env.case_sensitve: unknown key; did you mean case_sensitive?
dir/test.yaml:8: env.ratio: 2 is too large; it must be at most 1
dir/test.yaml:9: env.small: want a whole number of 0 or more, got 256
dir/test.yaml:10: env.wait: want a duration with its unit, such as 500ms, 30s, 5m or 24h, got 1
dir/test.yaml:12: env.list.1.n: 0 is too small; it must be at least 1
dir/test.yaml:12: env.list.1.m: unknown key; did you mean n?
dir/test.yaml:14: env.other: unknown key; known are seed, name, case_sensitive, max_len, ratio, small, wait, level, list, map, any, raw, when
dir/test.yaml:17: env.when: parsing time "later" as "2006-01-02T15:04:05Z07:00": cannot parse "later" as "2006"`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error differs (-want +got):\n%s", diff)
	}
	var none struct{}
	err = r.Sources()[0].Score[0].Params(&none)
	if want := "dir/test.yaml:20: score.0.case_sensitive: unknown key; there are no parameters here, remove it"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}
