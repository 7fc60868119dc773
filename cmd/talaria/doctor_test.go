package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// TestDoctorModel looks at labs with the ways of each server, and wants the fix
// by name.
func TestDoctorModel(t *testing.T) {
	const flags = "--enable-auto-tool-choice --tool-call-parser"
	tests := []struct {
		name, model string
		script      lab.Script
		code        int
		want        string
	}{
		{"openai", "openai/m", lab.Script{Turns: 1}, 0, "tools      ok       called calculator"},
		{"ollama", "ollama/m", lab.Script{Turns: 1}, 0, "tools      ok       called calculator"},
		{"vllm without its flags", "vllm/m", lab.Script{Server: lab.ServerVLLM, NoTools: true, Turns: 1}, 1, flags},
		{"vllm with a model that calls none", "vllm/m", lab.Script{Server: lab.ServerVLLM}, 1, flags},
		{"sglang without its flag", "sglang/m", lab.Script{Server: lab.ServerSGLang, NoTools: true, Turns: 1}, 1, "--tool-call-parser"},
		{"llama.cpp without its flag", "llamacpp/m", lab.Script{Server: lab.ServerLlamaCpp, NoTools: true, Turns: 1}, 1, "--jinja"},
		{"ollama with a model without tools", "ollama/m", lab.Script{Server: lab.ServerOllama, NoTools: true}, 1, "num_ctx"},
		{"a key", "openai/m", lab.Script{APIKey: "sk-other"}, 1, "--set agent.api_key_env=OPENAI_API_KEY"},
		{"another model", "openai/m", lab.Script{Models: []string{"large", "small"}}, 1, "it has large, small"},
		{"another model of ollama", "ollama/m", lab.Script{Models: []string{"large", "small"}}, 1, "it has large, small"},
		{"arguments", "openai/m", lab.Script{Turns: 1, Faults: []lab.Fault{{Kind: lab.FaultArguments, Rate: 1}}}, 1, "are not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := lab.New(tt.script)
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(l)
			t.Cleanup(srv.Close)
			out, errs, code := talaria(t, "doctor", "-m", tt.model, "--base-url", srv.URL+"/v1")
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", code, tt.code, tt.want, out, errs)
			}
			if n := len(l.Ledger()); n != 1 {
				t.Errorf("%d calls, want 1", n)
			}
		})
	}
}

// TestDoctorUnreachable has no server where the model is, no key, and no model.
func TestDoctorUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	out, _, code := talaria(t, "doctor", "-m", "vllm/m", "--base-url", srv.URL)
	if code != 1 || !strings.Contains(out, "is the server running?") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, errs, code := talaria(t, "doctor", "-m", "nothing"); code != 2 || !strings.Contains(errs, "is not preset/model") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
