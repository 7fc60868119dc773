package openai

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/modeltest"
	"github.com/talaria-run/talaria/dataset"
)

// benchReply is a reply of about 1.5 kB with a tool call, as real servers send it.
const benchReply = `{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"m","choices":[{"index":0,"message":` +
	`{"role":"assistant","content":"The \"total\" is 17 + 25.\nLet me check it with the calculator, step by step, and then answer.",` +
	`"refusal":null,"annotations":[],"reasoning_content":"` + benchThought + benchThought + benchThought + benchThought + `",` +
	`"tool_calls":[{"id":"call_abc123","type":"function","function":{"name":"calculator","arguments":"{\"expression\": \"17 + 25\"}"}}]},` +
	`"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1117,"completion_tokens":46,"total_tokens":1163,` +
	`"prompt_tokens_details":{"cached_tokens":1024,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":12,"audio_tokens":0,` +
	`"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_fc9f1d7035"}`

const benchThought = `The question asks for a sum of two numbers, so the calculator is the right tool for it, although one could do it by hand as well, as one learns at school. `

// benchRequest is the third turn of an episode with tools.
func benchRequest() model.Request {
	req := modeltest.Ask("0123456789abcdef0123456789abcdef-0-2", modeltest.Calculator(), modeltest.Calculator())
	for i := range 2 {
		id := "call_" + strconv.Itoa(i)
		req.Messages = append(
			req.Messages,
			dataset.Message{Role: dataset.Assistant, Content: strings.Repeat("I will compute that. ", 20), ToolCalls: []dataset.ToolCall{{ID: id, Name: "calculator", Arguments: `{"expression": "17 + 25"}`}}},
			dataset.Message{Role: dataset.ToolRole, ToolCallID: id, Content: "42"},
		)
	}
	return req
}

func BenchmarkEncode(b *testing.B) {
	c := offline(b, "")
	req := benchRequest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.encode(nil, &req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	body := []byte(benchReply)
	for b.Loop() {
		if _, err := decode(body); err != nil {
			b.Fatal(err)
		}
	}
}

// wire answers every request from memory: what is measured is the client.
type wire struct{}

func (wire) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(benchReply))}, err
}

// BenchmarkOwn is what a call costs beside the HTTP exchange.
func BenchmarkOwn(b *testing.B) {
	c, err := New(Options{Options: endpoint.Options{BaseURL: "http://localhost", Transport: wire{}}, Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	req := benchRequest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Generate(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoopback compares a call with a bare exchange of the same bytes
// whose answer is thrown away; both include the server's part.
func BenchmarkLoopback(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, benchReply)
	}))
	defer srv.Close()
	c, err := New(Options{Options: endpoint.Options{BaseURL: srv.URL}, Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.CloseIdleConnections()
	req := benchRequest()
	body, err := c.encode(nil, &req)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			post, err := http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL, bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			resp, err := srv.Client().Do(post)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	})
	b.Run("call", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Generate(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
}
