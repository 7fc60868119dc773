package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

func TestEncode(t *testing.T) {
	tests := []struct {
		name string
		req  model.Request
		want string
	}{
		{
			"messages",
			model.Request{Messages: []dataset.Message{
				{Role: dataset.System, Content: "s"},
				{Role: dataset.User, Parts: json.RawMessage(`[{"type":"text","text":"look"}]`), Content: "look"},
				{Role: dataset.Assistant, Content: "thinking", Reasoning: "not sent", ToolCalls: []dataset.ToolCall{
					{ID: "c1", Name: "f", Arguments: `{"a": "\u00e9"`}, {ID: "c1", Name: "g"},
				}},
				{Role: dataset.ToolRole, ToolCallID: "c1", ToolName: "f", Content: "one"},
				{Role: dataset.ToolRole, ToolCallID: "c1", ToolName: "g", IsError: true},
				{Role: dataset.Assistant, ToolCalls: []dataset.ToolCall{{ID: "c2", Name: "f"}}},
				{Role: dataset.ToolRole, ToolCallID: "c2", Content: "two"},
				{Role: dataset.Assistant},
			}},
			`{"model":"m","messages":[
				{"role":"system","content":"s"},
				{"role":"user","content":[{"type":"text","text":"look"}]},
				{"role":"assistant","content":"thinking","tool_calls":[
					{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": \"\\u00e9\""}},
					{"id":"c1","type":"function","function":{"name":"g","arguments":""}}]},
				{"role":"tool","content":"one","tool_call_id":"c1"},
				{"role":"tool","content":"","tool_call_id":"c1"},
				{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"f","arguments":""}}]},
				{"role":"tool","content":"two","tool_call_id":"c2"},
				{"role":"assistant","content":""}]}`,
		},
		{
			"tools",
			model.Request{Tools: []model.ToolSpec{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}}},
			`{"model":"m","messages":[],"tools":[
				{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},
				{"type":"function","function":{"name":"g","description":""}}]}`,
		},
		{
			"only what is set",
			model.Request{Sampling: dataset.Sampling{Temperature: new(0.0), MaxTokens: new(7)}},
			`{"model":"m","messages":[],"temperature":0,"max_tokens":7}`,
		},
		{
			"all that can be set",
			model.Request{Sampling: dataset.Sampling{
				Temperature: new(1e-7), TopP: new(0.95),
				Extra: map[string]any{"stop": []any{"\n"}, "n": json.Number("1"), "stream": false, "seed": 3, "top_k": 40, "x": nil},
			}},
			`{"model":"m","messages":[],"temperature":1e-07,"top_p":0.95,"n":1,"seed":3,"stop":["\n"],"stream":false,"top_k":40,"x":null}`,
		},
		{
			"max_tokens under its newer name",
			model.Request{Sampling: dataset.Sampling{MaxTokens: new(7), Extra: map[string]any{"max_completion_tokens": true}}},
			`{"model":"m","messages":[],"max_completion_tokens":7}`,
		},
		{
			"max_completion_tokens instead",
			model.Request{Sampling: dataset.Sampling{MaxTokens: new(7), Extra: map[string]any{"max_completion_tokens": 9}}},
			`{"model":"m","messages":[],"max_completion_tokens":9}`,
		},
		{
			"the episode's seed in 31 bits",
			model.Request{Episode: &dataset.Episode{Seed: 1<<40 + 5}, Sampling: dataset.Sampling{Extra: map[string]any{"seed": "episode"}}},
			`{"model":"m","messages":[],"seed":5}`,
		},
		{
			"no seed unless asked for",
			model.Request{Episode: &dataset.Episode{Seed: 5}},
			`{"model":"m","messages":[]}`,
		},
	}
	c := &Client{model: "m"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.encode(&tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tt.want), value(t, string(got))); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestEncodeRefuses(t *testing.T) {
	tests := []struct {
		name     string
		sampling dataset.Sampling
		want     string
	}{
		{"NaN", dataset.Sampling{Temperature: new(math.NaN())}, "temperature is NaN"},
		{"infinity", dataset.Sampling{TopP: new(math.Inf(1))}, "top_p is +Inf"},
		{"model", dataset.Sampling{Extra: map[string]any{"model": "x"}}, "extra parameter model"},
		{"messages", dataset.Sampling{Extra: map[string]any{"messages": nil}}, "extra parameter messages"},
		{"stream", dataset.Sampling{Extra: map[string]any{"stream": true}}, "not streamed"},
		{"n", dataset.Sampling{Extra: map[string]any{"n": 4}}, "samples are episodes"},
		{"no JSON", dataset.Sampling{Extra: map[string]any{"f": func() {}}}, "extra parameter f"},
	}
	c, err := New(Options{BaseURL: "http://localhost", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := c.Generate(t.Context(), model.Request{Sampling: tt.sampling})
			if model.ClassOf(err) != model.ClassFormat || !strings.Contains(err.Error(), tt.want) || resp.Unreported != 0 {
				t.Errorf("error %v, unreported %d", err, resp.Unreported)
			}
		})
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\nd\te\r\x00\x1f\x7f", "naïve 東京 🙂", "\xff\xfe long enough to be looked at", "12345678\x80", "\u2028<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := appendString(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q is no JSON: %v", got, err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if back != want {
			t.Errorf("%q reads back as %q", got, back)
		}
	})
}
