package ollama

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/agent/model/modeltest"
	"github.com/talaria-run/talaria/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	modeltest.Run(t, lab.ServerOllama, func(url string) model.Model {
		c, err := New(Options{Options: endpoint.Options{BaseURL: url, APIKey: modeltest.APIKey}, Model: modeltest.ModelName})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	o.BaseURL, o.Model = "http://127.0.0.1:11434", "m"
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEncode(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		req  model.Request
		want string // beside model, stream, truncate, shift
	}{
		{
			"messages",
			Options{},
			model.Request{Messages: []dataset.Message{
				{Role: dataset.System, Content: "s"},
				{Role: dataset.User, Content: "look", Parts: json.RawMessage(`[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]`)},
				{Role: dataset.Assistant, Reasoning: "r", ToolCalls: []dataset.ToolCall{
					{ID: "c1", Name: "f", Arguments: `{"a":1}`},
					{ID: "c2", Name: "g"},
					{ID: "c3", Name: "h", Arguments: "[1]"},
					{ID: "c4", Name: "i", Arguments: "{a", Coerced: `{"a":2}`},
					{ID: "c5", Name: "j", Arguments: "{a"},
				}},
				{Role: dataset.ToolRole, ToolCallID: "c1", ToolName: "f", Content: "one"},
				{Role: dataset.Assistant, Content: "said", Reasoning: "not sent"},
			}},
			`{"messages":[
				{"role":"system","content":"s"},
				{"role":"user","content":"look","images":["QUJD"]},
				{"role":"assistant","content":"","thinking":"r","tool_calls":[
					{"id":"c1","function":{"name":"f","arguments":{"a":1}}},
					{"id":"c2","function":{"name":"g","arguments":{}}},
					{"id":"c3","function":{"name":"h","arguments":{"arguments":[1]}}},
					{"id":"c4","function":{"name":"i","arguments":{"a":2}}},
					{"id":"c5","function":{"name":"j","arguments":{"arguments":"{a"}}}]},
				{"role":"tool","content":"one","tool_name":"f","tool_call_id":"c1"},
				{"role":"assistant","content":"said"}]}`,
		},
		{
			"tools",
			Options{},
			model.Request{Tools: []model.ToolSpec{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}}},
			`{"messages":[],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]}`,
		},
		{
			"options",
			Options{},
			model.Request{
				Episode: &dataset.Episode{Seed: 1<<40 + 5},
				Sampling: dataset.Sampling{
					Temperature: new(0.5), TopP: new(0.9), MaxTokens: new(7),
					Extra: map[string]any{"num_ctx": 8192, "seed": "episode", "max_completion_tokens": true},
				},
			},
			`{"messages":[],"options":{"temperature":0.5,"top_p":0.9,"num_predict":7,"num_ctx":8192,"seed":5}}`,
		},
		{
			"max_completion_tokens instead",
			Options{},
			model.Request{Sampling: dataset.Sampling{MaxTokens: new(7), Extra: map[string]any{"max_completion_tokens": 9}}},
			`{"messages":[],"options":{"num_predict":9}}`,
		},
		{"an effort", Options{Effort: "high"}, model.Request{}, `{"messages":[],"think":"high"}`},
		{"no thinking", Options{Effort: "none"}, model.Request{}, `{"messages":[],"think":false}`},
		{"extra", Options{Extra: map[string]any{"keep_alive": "1h"}}, model.Request{}, `{"messages":[],"keep_alive":"1h"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := client(t, tt.o).encode(nil, &tt.req)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			want["model"], want["stream"], want["truncate"], want["shift"] = "m", false, false, false
			var body map[string]any
			if err := json.Unmarshal(got, &body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		req  model.Request
		want string
	}{
		{"an effort that there is not", Options{Effort: "xhigh"}, model.Request{}, `"xhigh" is none of`},
		{"options", Options{Extra: map[string]any{"options": 1}}, model.Request{}, "options is sent by talaria itself"},
		{"think twice", Options{Effort: "low", Extra: map[string]any{"think": true}}, model.Request{}, "think is sent by talaria itself"},
		{"NaN", Options{}, model.Request{Sampling: dataset.Sampling{Temperature: new(math.NaN())}}, "temperature is NaN"},
		{
			"an image's address",
			Options{},
			model.Request{Messages: []dataset.Message{{Parts: json.RawMessage(`[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]`)}}},
			"does not fetch",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.o
			o.BaseURL, o.Model = "http://127.0.0.1:11434", "m"
			c, err := New(o)
			if err == nil {
				_, err = c.Generate(t.Context(), tt.req)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	const done = `"done":true,"done_reason":"stop"`
	tests := []struct {
		name, body string
		sampling   dataset.Sampling
		want       model.Response
		class      string // of the error
	}{
		{
			"thinking and calls", `{"model":"m:1","message":{"role":"assistant","content":"","thinking":"t","tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}}]},` + done + `,"prompt_eval_count":9,"eval_count":3}`,
			dataset.Sampling{},
			model.Response{
				ModelServed: "m:1", Usage: &dataset.Usage{Input: 9, Output: 3},
				Message: dataset.Message{Role: dataset.Assistant, Reasoning: "t", FinishReason: "tool_calls", ToolCalls: []dataset.ToolCall{
					{ID: "call_" + dataset.ID("call", "e-0-0", "0")[:24], Name: "f", Arguments: `{"a": 1}`},
				}},
			},
			"",
		},
		{
			"cut at num_predict", `{"message":{"content":"a"},"done":true,"done_reason":"length","prompt_eval_count":9,"eval_count":3}`,
			dataset.Sampling{},
			model.Response{Usage: &dataset.Usage{Input: 9, Output: 3}, Message: dataset.Message{Role: dataset.Assistant, Content: "a", FinishReason: "length"}},
			"",
		},
		{
			"no counts", `{"message":{"content":"a"},` + done + `}`,
			dataset.Sampling{},
			model.Response{Unreported: 1, Message: dataset.Message{Role: dataset.Assistant, Content: "a", FinishReason: "stop"}},
			"",
		},
		{
			"a prompt that was cut", `{"message":{"content":"a"},` + done + `,"prompt_eval_count":4096,"eval_count":3}`,
			dataset.Sampling{Extra: map[string]any{"num_ctx": int64(4096)}},
			model.Response{Usage: &dataset.Usage{Input: 4096, Output: 3}},
			model.ClassContextOverflow,
		},
		{
			"a prompt that just fits", `{"message":{"content":"a"},` + done + `,"prompt_eval_count":4095,"eval_count":1}`,
			dataset.Sampling{Extra: map[string]any{"num_ctx": json.Number("4096")}},
			model.Response{Usage: &dataset.Usage{Input: 4095, Output: 1}, Message: dataset.Message{Role: dataset.Assistant, Content: "a", FinishReason: "stop"}},
			"",
		},
		{"loaded only", `{"message":{"content":""},"done":true,"done_reason":"load"}`, dataset.Sampling{}, model.Response{}, model.ClassServer},
		{"not done", `{"message":{"content":"a"},"done":false}`, dataset.Sampling{}, model.Response{}, model.ClassBadResponse},
		{"no message", `{` + done + `}`, dataset.Sampling{}, model.Response{}, model.ClassBadResponse},
		{"an error", `{"error":"model runner has unexpectedly stopped"}`, dataset.Sampling{}, model.Response{}, model.ClassServer},
		{"no JSON", `{"message"`, dataset.Sampling{}, model.Response{}, model.ClassBadResponse},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := model.Request{CallID: "e-0-0", Sampling: tt.sampling}
			var got model.Response
			failed := client(t, Options{}).read(&req, endpoint.Answer{Status: http.StatusOK, Body: []byte(tt.body)}, &got)
			class := ""
			if failed != nil {
				class = failed.Class
			}
			if class != tt.class {
				t.Fatalf("error %v, want class %q", failed, tt.class)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzRead wants no body to make the reader panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"prompt_eval_count":1}`))
	f.Add([]byte(`{"error":{"message":"a"}}`))
	c, err := New(Options{Options: endpoint.Options{BaseURL: "http://localhost"}, Model: "m"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var resp model.Response
		failed := c.read(&model.Request{}, endpoint.Answer{Status: 200, Body: body}, &resp)
		if failed == nil && !json.Valid(body) {
			t.Errorf("read as %+v", resp)
		}
	})
}
