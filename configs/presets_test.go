package configs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEndpoints(t *testing.T) {
	tests := []struct {
		agent string
		want  []Endpoint
	}{
		{"model: scripted/null", nil},
		{"model: scripted/null, base_url: http://x", nil},
		{"model: openai/x", []Endpoint{{"https://api.openai.com/v1", 1}}},
		{"model: 'ollama/x:1b'", []Endpoint{{"http://127.0.0.1:11434", 1}}},
		{"model: vllm/x, base_url: http://a/v1", []Endpoint{{"http://a/v1", 1}}},
		{"model: vllm/x, base_url: ''", []Endpoint{{"http://127.0.0.1:8000/v1", 1}}},
		{
			"model: vllm/x, base_url: [http://a/v1, {url: http://b/v1}, {url: http://c/v1, weight: 2.5}]",
			[]Endpoint{{"http://a/v1", 1}, {"http://b/v1", 1}, {"http://c/v1", 2.5}},
		},
	}
	for _, tt := range tests {
		r := parse(t, "version: 1\ntasks: {path: t.jsonl}\nagent: {"+tt.agent+"}\n", Options{})
		if diff := cmp.Diff(tt.want, r.Agent.Endpoints()); diff != "" {
			t.Errorf("{%s}: endpoints (-want +got):\n%s", tt.agent, diff)
		}
	}
}

func TestEndpointsRefused(t *testing.T) {
	tests := []struct{ agent, want string }{
		{"base_url: 5", "agent.base_url: want a URL"},
		{"base_url: {url: http://a}", "agent.base_url: want a URL"},
		{"base_url: [5]", "agent.base_url.0: want an object of keys, such as {url: http://127.0.0.1:8000/v1, weight: 2}"},
		{"base_url: [{url: http://a, wait: 1}]", "agent.base_url.0.wait: unknown key; known are url, weight"},
		{"base_url: [{url: http://a, weight: 0}]", "agent.base_url.0.weight: want a number above 0"},
		{"base_url: [{url: http://a, weight: -1}]", "agent.base_url.0.weight:"},
		{"base_url: [{weight: 1}]", "agent.base_url: the value is not a URL"},
		{"base_url: [http://127.0.0.1, http://127.0.0.1]", "http://127.0.0.1 is there twice"},
		{"base_url: [http://127.0.0.1, 'http://u:p@b']", "a URL with a password"},
		{"base_url: [http://127.0.0.1, http://elsewhere/v1]", "needs a key"},
		{"sampling: {top_k: 1}, extra_body: {top_k: 2}", "agent.extra_body.top_k: top_k stands under agent.sampling, too"},
	}
	for _, tt := range tests {
		_, err := Parse("c.yaml", []byte("version: 1\ntasks: {path: t.jsonl}\nagent: {model: openai/x, "+tt.agent+"}\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("{%s}: error %v, want %q in it", tt.agent, err, tt.want)
		}
	}
}
