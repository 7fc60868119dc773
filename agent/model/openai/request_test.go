package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
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
					{"id":"c1","type":"function","function":{"name":"f","arguments":"\"{\\\"a\\\": \\\"\\\\u00e9\\\"\""}},
					{"id":"c1","type":"function","function":{"name":"g","arguments":"{}"}}]},
				{"role":"tool","content":"one","tool_call_id":"c1"},
				{"role":"tool","content":"","tool_call_id":"c1"},
				{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},
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
	c := offline(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.encode(nil, &tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tt.want), value(t, string(got))); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEncodeReasoning sends earlier reasoning back as each server wants it.
func TestEncodeReasoning(t *testing.T) {
	thought := func(reasoning, details string, calls ...dataset.ToolCall) dataset.Message {
		return dataset.Message{Role: dataset.Assistant, Content: "c", Reasoning: reasoning, ReasoningSignature: details, ToolCalls: calls}
	}
	call := dataset.ToolCall{ID: "1", Name: "f", Arguments: "{}"}
	messages := []dataset.Message{
		{Role: dataset.User, Content: "q"},
		thought("before", "", call),
		{Role: dataset.ToolRole, ToolCallID: "1"},
		{Role: dataset.User, Content: "q"},
		thought("called", `[{"type":"reasoning.encrypted","data":"x"}]`, call),
		{Role: dataset.ToolRole, ToolCallID: "1"},
		thought("said", ""),
	}
	const deepSeek = "https://api.deepseek.com"
	tests := []struct {
		name    string
		dialect Dialect
		base    string
		want    string // what stands in message 4
		absent  string
	}{
		{"OpenAI", OpenAI, "https://api.openai.com/v1", `}]}`, "called"},
		{"DeepSeek", OpenAI, deepSeek, `}],"reasoning_content":"called"}`, "before"},
		{"vLLM", VLLM, "http://localhost/v1", `}],"reasoning":"called"}`, "before"},
		{"SGLang", SGLang, "http://localhost/v1", `}],"reasoning_content":"called"}`, "before"},
		{"llama.cpp", LlamaCpp, "http://localhost/v1", `}],"reasoning_content":"called"}`, "before"},
		{"OpenRouter", OpenRouter, "https://openrouter.ai/api/v1", `}],"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`, "called"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(Options{Options: endpoint.Options{BaseURL: tt.base}, Model: "m", Dialect: tt.dialect})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.encode(nil, &model.Request{Messages: messages})
			if err != nil {
				t.Fatal(err)
			}
			value(t, string(got))
			if text := string(got); !strings.Contains(text, tt.want) || strings.Contains(text, tt.absent) || strings.Contains(text, "said") {
				t.Errorf("want %s, and neither %q nor \"said\" in\n%s", tt.want, tt.absent, text)
			}
		})
	}
}

// TestEncodeExtra has members of the user's own, and the effort as each server
// wants it.
func TestEncodeExtra(t *testing.T) {
	own := map[string]any{"top_k": 40, "provider": map[string]any{"order": []any{"a"}}}
	tests := []struct {
		dialect Dialect
		effort  string
		extra   map[string]any
		want    string // the members, or what the error says
	}{
		{OpenAI, "", nil, `{}`},
		{OpenAI, "minimal", nil, `{"reasoning_effort":"minimal"}`},
		{OpenRouter, "high", own, `{"provider":{"order":["a"]},"reasoning":{"effort":"high"},"top_k":40}`},
		{VLLM, "low", nil, `{"chat_template_kwargs":{"enable_thinking":true,"thinking":true},"reasoning_effort":"low"}`},
		{SGLang, "none", nil, `{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}`},
		{LlamaCpp, "medium", nil, `{"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"medium"}}`},
		{LlamaCpp, "none", nil, `{"chat_template_kwargs":{"enable_thinking":false}}`},
		{VLLM, "much", nil, `"much" is none of none, low`},
		{VLLM, "low", map[string]any{"chat_template_kwargs": 1}, "chat_template_kwargs is sent by talaria itself"},
		{OpenAI, "", map[string]any{"messages": 1}, "messages is sent by talaria itself"},
		{OpenAI, "", map[string]any{"max_completion_tokens": 1}, "max_completion_tokens is sent by talaria itself"},
		{"other", "", nil, `unknown dialect "other"`},
	}
	for _, tt := range tests {
		t.Run(string(tt.dialect)+" "+tt.effort, func(t *testing.T) {
			c, err := New(Options{
				Options: endpoint.Options{BaseURL: "http://localhost/v1"}, Model: "m",
				Dialect: tt.dialect, Effort: tt.effort, Extra: tt.extra,
			})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %q, want %q in it", err, tt.want)
				}
				return
			}
			got, err := c.encode(nil, &model.Request{})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"model":"m","messages":[]` + strings.Replace(","+tt.want[1:], ",}", "}", 1)
			if diff := cmp.Diff(value(t, want), value(t, string(got))); diff != "" {
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
	c, err := New(Options{Options: endpoint.Options{BaseURL: "http://localhost"}, Model: "m"})
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
