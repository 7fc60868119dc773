package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

func TestParseReward(t *testing.T) {
	long := strings.Repeat("1", maxReward+1)
	tests := []struct {
		name, text string
		json       bool
		want       map[string]float64
		err        string
	}{
		{name: "a whole number", text: "1\n", want: map[string]float64{"reward": 1}},
		{name: "a fraction", text: "-0.5", want: map[string]float64{"reward": -0.5}},
		{name: "nothing", text: " \n", err: "it is empty"},
		{name: "two numbers", text: "1 0", err: `"1 0" is not a number`},
		{name: "infinite", text: "-inf", err: "not finite"},
		{name: "too great", text: "1e999", err: `"1e999" is not a number`},
		{name: "long", text: long, err: "larger than 65536 bytes"},
		{name: "a long word", text: strings.Repeat("x", 999), err: `"` + strings.Repeat("x", 40) + `" is not a number`},
		{name: "number", json: true, text: "0.75", want: map[string]float64{"reward": 0.75}},
		{name: "object", json: true, text: `{"reward": 1, "speed": 12}`, want: map[string]float64{"reward": 1, "speed": 12}},
		{name: "object without the score", json: true, text: `{"speed": 12}`, err: `no key "reward"`},
		{name: "text", json: true, text: `"1"`, err: `"1" is not a number`},
		{name: "null", json: true, text: `null`, err: "null is not a number"},
		{name: "true", json: true, text: `true`, err: "cannot unmarshal"},
		{name: "list", json: true, text: `[1]`, err: "cannot unmarshal"},
		{name: "null within", json: true, text: `{"reward": null}`, err: `key "reward": null is not a number`},
		{name: "text within", json: true, text: `{"reward": 1, "speed": "fast"}`, err: `key "speed": "fast" is not a number`},
		{name: "object within", json: true, text: `{"reward": {"a": 1}}`, err: `key "reward"`},
		{name: "too great within", json: true, text: `{"reward": 1e999}`, err: `key "reward"`},
		{name: "empty key", json: true, text: `{"reward": 1, "": 2}`, err: "empty key"},
		{name: "not finite", json: true, text: `{"reward": NaN}`, err: "invalid character"},
		{name: "cut", json: true, text: `{"reward": 1`, err: "unexpected end"},
		{name: "more behind", json: true, text: `1 2`, err: "invalid character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parse := parseText
			if tt.json {
				parse = parseJSON
			}
			rewards, err := parseReward([]byte(tt.text), parse)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, values(t, rewards)); diff != "" {
				t.Errorf("rewards differ (-want +got):\n%s", diff)
			}
		})
	}
}

// values are rewards by name; only the first one is chosen.
func values(t *testing.T, rewards []dataset.Reward) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for i, r := range rewards {
		if r.Chosen != (i == 0) || r.Source != dataset.FromEnv {
			t.Errorf("reward %+v", r)
		}
		got[r.Name] = *r.Value
	}
	return got
}
