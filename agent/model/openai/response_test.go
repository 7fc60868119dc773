package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/dataset"
)

// offline is a client that calls nothing.
func offline(tb testing.TB, d Dialect) *Client {
	tb.Helper()
	c, err := New(Options{Options: endpoint.Options{BaseURL: "http://localhost/v1"}, Model: "m", Dialect: d})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// readBody is the client's reading of a body with status 200.
func readBody(t *testing.T, body string) (resp model.Response, failed *model.Error) {
	t.Helper()
	failed = offline(t, "").read("e-0-0", endpoint.Answer{Status: 200, Body: []byte(body)}, &resp)
	return resp, failed
}

func TestRead(t *testing.T) {
	tests := []struct {
		name, body string
		want       model.Response
	}{
		{
			"text", `{"id":"x","model":"m-1","system_fingerprint":"fp","provider":"up",
				"choices":[{"message":{"role":"assistant","content":"hé\u006c\ud83d\ude42 \"q\""},"finish_reason":"stop"}],
				"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`,
			model.Response{
				ModelServed: "m-1", Fingerprint: "fp", Upstream: "up",
				Message: dataset.Message{Role: dataset.Assistant, Content: "hél🙂 \"q\"", FinishReason: "stop"},
				Usage:   &dataset.Usage{Input: 9, Output: 3},
			},
		},
		{
			"tool calls, one without id, one with arguments that are an object",
			`{"choices":[{"message":{"content":null,"tool_calls":[
				{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1"}},
				{"function":{"name":"g","arguments":{"b":[1, 2]}}},
				{"id":"d","function":{"name":"h"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			model.Response{
				Message: dataset.Message{Role: dataset.Assistant, FinishReason: "tool_calls", ToolCalls: []dataset.ToolCall{
					{ID: "c", Name: "f", Arguments: `{"a": 1`},
					{ID: "call_" + dataset.ID("call", "e-0-0", "1")[:24], Name: "g", Arguments: `{"b":[1, 2]}`},
					{ID: "d", Name: "h"},
				}},
				Usage: &dataset.Usage{Input: 1, Output: 1},
			},
		},
		{
			"reasoning", `{"choices":[{"message":{"content":"a","reasoning":"b"},"finish_reason":"length"},{"message":null}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			model.Response{
				Message: dataset.Message{Role: dataset.Assistant, Content: "a", Reasoning: "b", FinishReason: "length"},
				Usage:   &dataset.Usage{Input: 1, Output: 1},
			},
		},
		{
			"refusal", `{"choices":[{"message":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			model.Response{
				Message: dataset.Message{Role: dataset.Assistant, Content: "I will not.", FinishReason: "content_filter"},
				Usage:   &dataset.Usage{Input: 1, Output: 1},
			},
		},
		{
			"parts", `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":5}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			model.Response{
				Message: dataset.Message{
					Role: dataset.Assistant, Content: "ab", FinishReason: "stop",
					Parts: json.RawMessage(`[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"text","text":"b"}]`),
				},
				Usage: &dataset.Usage{Input: 1, Output: 1},
			},
		},
		{
			"no usage", `{"choices":[{"message":{"content":"a"},"finish_reason":null}],"usage":null,"error":null}`,
			model.Response{Message: dataset.Message{Role: dataset.Assistant, Content: "a", FinishReason: "stop"}, Unreported: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readBody(t, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name, usage string
		want        *dataset.Usage
	}{
		{"cached tokens are part of the prompt", `{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5}}`, &dataset.Usage{Input: 36, CacheRead: 64, Output: 7, Reasoning: new(int64(5))}},
		{"cache writes", `{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":30}}`, &dataset.Usage{Input: 6, CacheRead: 64, CacheWrite: 30, Output: 7}},
		{"as a proxy names them", `{"prompt_tokens":100,"completion_tokens":7,"cache_read_input_tokens":10,"cache_creation_input_tokens":20}`, &dataset.Usage{Input: 70, CacheRead: 10, CacheWrite: 20, Output: 7}},
		{"more cached than there is", `{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":30}}`, &dataset.Usage{CacheRead: 10, Output: 7}},
		{"negative", `{"prompt_tokens":-3,"completion_tokens":-1}`, &dataset.Usage{}},
		{"reasoning beside the completion", `{"prompt_tokens":10,"completion_tokens":7,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":5}}`, &dataset.Usage{Input: 10, Output: 12, Reasoning: new(int64(5))}},
		{"reasoning in the completion", `{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":5}}`, &dataset.Usage{Input: 10, Output: 7, Reasoning: new(int64(5))}},
		{"details that are null", `{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":null,"completion_tokens_details":null}`, &dataset.Usage{Input: 10, Output: 7}},
		{"floats", `{"prompt_tokens":10.0,"completion_tokens":7e0}`, &dataset.Usage{Input: 10, Output: 7}},
		{"half a token", `{"prompt_tokens":10.5,"completion_tokens":7}`, nil},
		{"no counter", `{"prompt_tokens":99999999999999999999,"completion_tokens":7}`, nil},
		{"one side", `{"prompt_tokens":10}`, nil},
		{"empty", `{}`, nil},
		{"null", `null`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readBody(t, `{"choices":[{"message":{"content":"a"}}],"usage":`+tt.usage+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCost reads what a router charged, exact to half a nano-dollar.
func TestCost(t *testing.T) {
	tests := []struct {
		usage string // beside the tokens
		want  *int64
	}{
		{`"cost":0.00014`, new(int64(140_000))},
		{`"cost":1.4e-05`, new(int64(14_000))},
		{`"cost":"0.25"`, new(int64(250_000_000))},
		{`"cost":0`, new(int64(0))},
		{`"cost":0.0000000005`, new(int64(1))},
		{`"cost":0.00000000049`, new(int64(0))},
		{`"cost":null`, nil},
		{`"cost":-1`, nil},
		{`"cost":1e999999999`, nil},
		{`"cost":1e11`, nil},
		{`"cost":{}`, nil},
		{`"cost":0.95,"cost_details":{"upstream_inference_cost":19}`, new(int64(19_950_000_000))},
		{`"cost":0.95,"is_byok":true,"cost_details":{"upstream_inference_cost":19}`, new(int64(19_950_000_000))},
		{`"cost":0.95,"is_byok":true,"cost_details":{"upstream_inference_cost":null}`, nil},
		{`"cost":19,"is_byok":false,"cost_details":{"upstream_inference_cost":19,"x":[1]}`, new(int64(19_000_000_000))},
		{`"cost":19,"cost_details":null`, new(int64(19_000_000_000))},
	}
	for _, tt := range tests {
		body := `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,` + tt.usage + `}}`
		for dialect, want := range map[Dialect]*int64{OpenRouter: tt.want, OpenAI: nil} {
			var resp model.Response
			failed := offline(t, dialect).read("e-0-0", endpoint.Answer{Status: 200, Body: []byte(body)}, &resp)
			if failed != nil {
				t.Fatalf("%s: %v", tt.usage, failed)
			}
			if diff := cmp.Diff(want, resp.CostNanoUSD); diff != "" {
				t.Errorf("%s of %s: cost (-want +got):\n%s", tt.usage, dialect, diff)
			}
			if reported := resp.PriceVersion == model.PriceReported; reported != (want != nil) {
				t.Errorf("%s of %s: price version %q", tt.usage, dialect, resp.PriceVersion)
			}
		}
	}
}

// TestReasoning reads what servers call it.
func TestReasoning(t *testing.T) {
	tests := []struct{ message, reasoning, signature string }{
		{`"reasoning_content":"r"`, "r", ""},
		{`"reasoning":"r"`, "r", ""},
		{`"reasoning":"r","reasoning_content":null`, "r", ""},
		{`"reasoning":null`, "", ""},
		{`"reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r","signature":"s"}]`, "r", `[{"type":"reasoning.text","text":"r","signature":"s"}]`},
		{`"reasoning_details":[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.text","text":"b"}]`, "ab", `[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.text","text":"b"}]`},
		{`"reasoning_details":[]`, "", ""},
		{`"reasoning_details":null`, "", ""},
	}
	for _, tt := range tests {
		resp, failed := readBody(t, `{"choices":[{"message":{"content":"a",`+tt.message+`}}]}`)
		if failed != nil || resp.Message.Reasoning != tt.reasoning || resp.Message.ReasoningSignature != tt.signature {
			t.Errorf("%s: reasoning %q, signature %q, error %v", tt.message, resp.Message.Reasoning, resp.Message.ReasoningSignature, failed)
		}
	}
}

func TestFinishReason(t *testing.T) {
	tests := []struct {
		reason string
		calls  int
		want   string
	}{
		{"stop", 0, model.FinishStop},
		{"stop", 1, model.FinishToolCalls},
		{"tool_calls", 2, model.FinishToolCalls},
		{"function_call", 1, model.FinishToolCalls},
		{"tool_calls", 0, model.FinishStop},
		{"eos", 0, model.FinishStop},
		{"", 0, model.FinishStop},
		{"", 1, model.FinishToolCalls},
		{"length", 1, model.FinishLength},
		{"MAX_TOKENS", 0, model.FinishLength},
		{"content_filter", 0, model.FinishContentFilter},
		{"SAFETY", 0, model.FinishContentFilter},
		{"5", 0, model.FinishStop},
	}
	for _, tt := range tests {
		if got := finishReason(tt.reason, tt.calls); got != tt.want {
			t.Errorf("finishReason(%q, %d) = %q, want %q", tt.reason, tt.calls, got, tt.want)
		}
	}
}

// TestReadRefuses has answers with status 200 that are no reply.
func TestReadRefuses(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":1,"completion_tokens":1}`
	tests := []struct {
		name, body string
		want       model.Error
		text       string
		paid       bool
	}{
		{"malformed", `{"choices":[{"message":{"content":"a"}}];}`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, `';' at byte 40`, false},
		{"cut", `{"choices":[{"message":{"content":"a`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "ends after 36 bytes", false},
		{"more behind it", `{"choices":[{"message":{"content":"a"}}]} {}`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "the end is expected", false},
		{"empty", ``, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "ends after 0 bytes", false},
		{"no object", `[]`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "'{'", false},
		{"content is a number", `{"choices":[{"message":{"content":5}}],` + usage + `}`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "null is expected", false},
		{"no choices", `{"choices":[],` + usage + `}`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "no choices", true},
		{"choices is null", `{"choices":null}`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "no choices", false},
		{"no message", `{"choices":[{"finish_reason":"stop"}],` + usage + `}`, model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "without message", true},
		{"a page", "\n <html><title>Welcome</title></html>", model.Error{Class: model.ClassBadResponse, Status: 200, Retryable: true, Sent: true}, "an HTML page: Welcome instead of JSON: does base_url point at the API?", false},
		{"an error", `{"error":{"message":"slow down","code":429}}`, model.Error{Class: model.ClassRateLimit, Status: 429, Retryable: true}, "slow down", false},
		{"an error as text", `{"error":"broken"}`, model.Error{Class: model.ClassServer, Status: 502, Retryable: true}, "broken", false},
		{"broken off", `{"choices":[{"message":{"content":"a"},"finish_reason":"error"}],` + usage + `}`, model.Error{Class: model.ClassServer, Status: 200, Retryable: true, Sent: true}, "broke off", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := readBody(t, tt.body)
			if err == nil {
				t.Fatalf("read as %+v", resp)
			}
			if diff := cmp.Diff(&tt.want, err, cmpopts.IgnoreFields(model.Error{}, "Err")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("text %q, want %q in it", err, tt.text)
			}
			if got := resp.Usage != nil; got != tt.paid {
				t.Errorf("usage %+v", resp.Usage)
			}
		})
	}
}

// FuzzDecode holds the decoder against encoding/json: it never panics, never
// makes a reply of a body that is no JSON, and reads the same text.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(benchReply))
	for _, s := range []string{
		`{"choices":[{"message":{"content":"a\ud83d\ude42\ud800\u0041 b"}}]}`, `{"choices":[{"message":{"content":"\xff"}}]}`,
		`{"usage":{"prompt_tokens":1e3,"completion_tokens":-0.0}}`, `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":{}}}]}}]}`,
		`{"choices":[{"message":{"content":[{"text":"a"}]}}]}`, `{"\u0063hoices":[]}`, `{"a":[[[[]]]],"b":tru}`, `{"a":01}`, "{\"a\":\"\x01\"}", ` {} `, `{}x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body)
		c := &cursor{data: body}
		c.skip()
		c.end()
		if (c.err == nil) != valid {
			t.Fatalf("skip: %v, but json.Valid says %v", c.err, valid)
		}
		r, err := decode(body)
		if err == nil && !valid {
			t.Fatalf("a reply from what is no JSON: %+v", r)
		}
		if err != nil || r.message == nil || len(r.message.parts) > 0 {
			return
		}
		// encoding/json matches keys regardless of case and merges doubled ones.
		if lower := bytes.ToLower(body); !bytes.Equal(lower, body) || bytes.Count(body, []byte(`"message"`)) != 1 ||
			bytes.Count(body, []byte(`"choices"`)) != 1 || bytes.Count(body, []byte(`"content"`)) > 1 || bytes.Contains(body, []byte(`\u`)) {
			return
		}
		var want struct {
			Choices []struct {
				Message struct {
					Content string `json:"content"`
				} `json:"message"`
			} `json:"choices"`
		}
		if json.Unmarshal(body, &want) == nil && want.Choices[0].Message.Content != r.message.content {
			t.Errorf("content %q, encoding/json reads %q", r.message.content, want.Choices[0].Message.Content)
		}
	})
}

// FuzzText holds the reading of strings against encoding/json.
func FuzzText(f *testing.F) {
	for _, s := range []string{`""`, `"a\n\u00e9\ud83d\ude42\ud83d\ude42"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ude42\ud83d"`, "\"\xff\xc0\x80 a longer text\"", `"\/\b\f\r\t\\\""`, `"12345678\"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &cursor{data: body}
		got := c.text()
		c.end()
		var want string
		err := json.Unmarshal(body, &want)
		if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
			return // which encoding/json reads as no text
		}
		if (err == nil) != (c.err == nil) || err == nil && got != want {
			t.Errorf("%q, %v; encoding/json reads %q, %v", got, c.err, want, err)
		}
	})
}
