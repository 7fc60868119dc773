package args

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		raw  string
		want string
		err  string // substring, "cut" for ErrCut
	}{
		{"object", `{"a": 1}`, `{"a": 1}`, ""},
		{"empty object", `{}`, `{}`, ""},
		{"nothing", ``, `{}`, ""},
		{"blanks", " \n\t", `{}`, ""},
		{"blanks around", "\n{\"a\":[]} ", `{"a":[]}`, ""},
		{"nested", `{"a":{"b":[{"c":null}]}}`, `{"a":{"b":[{"c":null}]}}`, ""},
		{"array", `[1]`, "", "have to be a JSON object"},
		{"string", `"x"`, "", "have to be a JSON object"},
		{"number", `42`, "", "have to be a JSON object"},
		{"null", `null`, "", "have to be a JSON object"},
		{"cut in a string", `{"a": "b`, "", "cut"},
		{"cut after a value", `{"a": 1`, "", "cut"},
		{"cut after a colon", `{"a":`, "", "cut"},
		{"only a brace", `{`, "", "cut"},
		{"words", `answer is 4`, "", "cut"},
		{"trailing comma", `{"a": 1,}`, "", "not valid JSON: invalid character '}'"},
		{"single quotes", `{'a': 1}`, "", "not valid JSON"},
		{"two objects", `{"a":1}{"b":2}`, "", "not valid JSON"},
		{"wrong bracket", `{"a": [1}`, "", "not valid JSON"},
		{"newline in a string", "{\"a\": \"b\nc\"}", "", "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.raw)
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if (err != nil) != (tt.err != "") {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			if cut := tt.err == "cut"; cut != errors.Is(err, ErrCut) {
				t.Errorf("cut: got %v, want %v (%v)", !cut, cut, err)
			}
			if err != nil && tt.err != "cut" && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %q, want %q in it", err, tt.err)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	type params struct {
		Answer string `json:"answer"`
		Count  int    `json:"count"`
	}
	tests := []struct {
		name string
		args string
		want params
		err  string
	}{
		{"all", `{"answer":"x","count":2}`, params{"x", 2}, ""},
		{"some", `{"answer":"x"}`, params{Answer: "x"}, ""},
		{"unknown", `{"anwser":"x"}`, params{}, `unknown field "anwser"`},
		{"wrong type", `{"answer":4}`, params{}, `parameter "answer" has to be of type string, not number`},
		{"fraction", `{"count":1.5}`, params{}, `parameter "count" has to be of type int, not number 1.5`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got params
			err := Decode(json.RawMessage(tt.args), &got)
			if (err != nil) != (tt.err != "") || err != nil && err.Error() != tt.err {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			if err == nil && got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"a": 1}`, `{"a": "b`, `[1]`, `null`, `{"a":1,}`, "\xff}", `{"\ud800":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		object, err := Parse(raw)
		if (err == nil) == (object == nil) {
			t.Fatalf("Parse(%q) = %q, %v: neither or both", raw, object, err)
		}
		if err != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(object, &m); err != nil || m == nil {
			t.Errorf("Parse(%q) = %q, which is no object: %v", raw, object, err)
		}
	})
}
