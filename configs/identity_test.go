package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const full = `version: 1
name: full
note: n
tags: [a]
seed: 3
tasks:
  - path: t.jsonl
    split: test
    columns: {input: q, level: difficulty}
    keep: [level]
    limit: 5
    on_bad_row: skip
  - {path: u.jsonl, keep: all, env: {name: other, size: 2}, score: []}
env: {name: answer}
prompt: "{q}"
few_shot: {path: shots.jsonl, n: 2, seed: 1}
agent:
  model: openai/x
  base_url: http://127.0.0.1:1/v1
  api_key_env: KEY
  toolsets: [answer]
  system_prompt: s
  sampling: {temperature: 0, max_tokens: 5, top_k: 4, bias: {"50": -1.0}}
samples: 2
score: [{name: exact}, {name: numeric, chosen: true, tolerance: 0.1}]
limits:
  concurrency: {episodes: 1, requests: 2, sandboxes: 4, grading: 3}
  episode: {time: 1m, turns: 2, tokens: 3, cost_usd: 0.25, bytes: 1KiB}
  run: {time: 1h, cost_usd: 2, tokens: 9}
  retries: {infra: 0, requests: 0}
  fail_on_error: 0
  grace: 1s
  disk_wait: 2s
  score: 3s
  close: 4s
  request: 5s
prices: p.json
sweep: {agent.sampling.top_p: [0.5, 1]}
out: elsewhere
`

// A run keeps its hashes over releases: without, no run could be continued.
func TestHashes(t *testing.T) {
	var report strings.Builder
	for _, text := range []string{minimal, full} {
		r := parse(t, text, Options{Dir: "testdata"})
		variants, err := r.Variants()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variants {
			for _, s := range v.Run.Sources() {
				fmt.Fprintf(&report, "%s %s variant %s scorer %s\n", v.Name, s.Name, v.Run.VariantHash(s.Index), v.Run.ScorerHash(s.Index))
			}
		}
	}
	golden(t, "hashes.golden", report.String())
}

func TestIdentity(t *testing.T) {
	r := parse(t, full, Options{Dir: "testdata"})
	want := map[string]any{
		"seed": int64(3), "env.name": "answer", "prompt": "{q}",
		"few_shot.n": int64(2), "few_shot.seed": int64(1), "few_shot.sha256": "56b0d916c1808f7226ce397892cc66e687d2ec7ca5d3a1e5fc364e37066d837e",
		"agent.kind": "tools", "agent.model": "openai/x", "agent.toolsets": []any{"answer"}, "agent.system_prompt": "s",
		"agent.sampling.temperature": 0.0, "agent.sampling.max_tokens": int64(5), "agent.sampling.top_k": int64(4),
		"agent.sampling.bias": map[string]any{"50": -1.0},
		"limits.episode.time": "1m0s", "limits.episode.turns": int64(2), "limits.episode.tokens": int64(3),
		"limits.episode.cost_usd": 0.25, "limits.episode.bytes": int64(1024),
		"sandbox.backend": "local", "sandbox.network": "none", "sandbox.timeout": "2m0s",
		"sandbox.memory": int64(512 << 20), "sandbox.disk": int64(512 << 20), "sandbox.pids": int64(256),
	}
	if diff := cmp.Diff(want, r.Identity(0)); diff != "" {
		t.Errorf("identity differs (-want +got):\n%s", diff)
	}
	want["env.name"], want["env.size"] = "other", int64(2)
	if diff := cmp.Diff(want, r.Identity(1)); diff != "" {
		t.Errorf("identity of the source with an env of its own differs (-want +got):\n%s", diff)
	}
}

// Neither where files lie nor how a run is carried out is part of an identity.
func TestIdentityIsFreeOfOperation(t *testing.T) {
	dir := t.TempDir()
	shots, err := os.ReadFile("testdata/shots.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.jsonl"), shots, 0o600); err != nil {
		t.Fatal(err)
	}
	was := parse(t, full, Options{Dir: "testdata"})
	now := parse(t, full, Options{Dir: dir, Set: []string{
		"few_shot.path=" + filepath.Join(dir, "other.jsonl"), "name=x", "note=", "out=y", "limits.concurrency.episodes=9", "limits.run.tokens=1",
		"agent.base_url=http://localhost/v1", "samples=7", "score=[]", "tasks.0.limit=1", "prices=", "tags=[]", "limits.retries.infra=9",
	}})
	for i := range 2 {
		if was.VariantHash(i) != now.VariantHash(i) {
			t.Errorf("source %d: %s", i, cmp.Diff(was.Identity(i), now.Identity(i)))
		}
	}
	if diff := DiffIdentity(was, now); diff != nil {
		t.Errorf("changes: %v", diff)
	}
	if was.ScorerHash(0) == now.ScorerHash(0) {
		t.Error("other scorers have the same hash")
	}
	if was.ConfigHash() == now.ConfigHash() {
		t.Error("another config has the same hash")
	}
}

func TestDiffIdentity(t *testing.T) {
	tests := []struct {
		name string
		set  []string
		want []string
	}{
		{"nothing", nil, nil},
		{"model", []string{"agent.model=openai/y"}, []string{"agent.model: openai/x -> openai/y"}},
		{"seed and limit", []string{"seed=4", "limits.episode.tokens=0"}, []string{"limits.episode.tokens: 3 -> (not set)", "seed: 3 -> 4"}},
		{"new parameter", []string{"agent.sampling.min_p=0.1"}, []string{"agent.sampling.min_p: (not set) -> 0.1"}},
		{"env", []string{"env.hint=1"}, []string{"env.hint: (not set) -> 1"}},
		{"env of a source", []string{"tasks.1.env.size=3"}, []string{"tasks.1.env.size: 2 -> 3"}},
		{"swept key", []string{"agent.sampling.top_p=0.1"}, nil},
		{"new axis", []string{"sweep.prompt=[a, b]"}, nil},
		{"another source", []string{"tasks.+={path: v.jsonl, env: {name: third}}"}, nil},
		{"a source less", []string{"tasks=[{path: u.jsonl, env: {name: other, size: 2}}]"}, nil},
		{"few-shot examples", []string{"few_shot.path=errors_test.go"}, []string{"few_shot.sha256: 56b0d9 -> (other)"}},
		{"list", []string{"agent.toolsets=[answer, math]"}, []string{`agent.toolsets: ["answer"] -> ["answer","math"]`}},
	}
	was := parse(t, full, Options{Dir: "testdata"})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range DiffIdentity(was, parse(t, full, Options{Dir: "testdata", Set: test.set})) {
				if c.Key == "few_shot.sha256" {
					c.Old, c.New = c.Old.(string)[:6], "(other)"
				}
				got = append(got, c.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSources(t *testing.T) {
	r := parse(t, full, Options{Dir: "/data", Set: []string{"few_shot=null"}})
	type score struct {
		Name   string
		Chosen bool
		Key    string
	}
	scores := func(s Source) []score {
		list := make([]score, len(s.Score))
		for i, e := range s.Score {
			list[i] = score{e.Name, e.Chosen, e.Key}
		}
		return list
	}
	sources := r.Sources()
	if diff := cmp.Diff([]score{{"exact", false, "score.0"}, {"numeric", true, "score.1"}}, scores(sources[0])); diff != "" {
		t.Errorf("scorers differ (-want +got):\n%s", diff)
	}
	if got := scores(sources[1]); len(got) != 0 {
		t.Errorf("scorers of a source with none of its own = %v", got)
	}
	for i := range sources {
		sources[i].EnvParams, sources[i].Score = nil, nil
	}
	want := []Source{
		{
			Index: 0, Name: "t", Path: "/data/t.jsonl", Split: "test", Limit: 5, SkipBadRows: true, Env: "answer",
			Columns: map[string]string{"input": "q", "target": "target", "level": "difficulty"}, Keep: []string{"level"},
		},
		{
			Index: 1, Name: "u", Path: "/data/u.jsonl", Env: "other", KeepAll: true,
			Columns: map[string]string{"input": "input", "target": "target"},
		},
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("sources differ (-want +got):\n%s", diff)
	}
}

func TestChosenByDefault(t *testing.T) {
	s := parse(t, minimal+"score: [{name: exact}, {name: contains, chosen: false}]\n", Options{}).Sources()[0].Score
	if !s[0].Chosen || s[1].Chosen {
		t.Errorf("chosen = %v, %v; want the first", s[0].Chosen, s[1].Chosen)
	}
}

func TestKey(t *testing.T) {
	tests := []struct {
		agent     string
		env, file string
		needed    bool
	}{
		{"model: scripted/oracle", "", "", false},
		{"model: openai/x", "OPENAI_API_KEY", "", true},
		{"model: openai/x, api_key_env: MINE", "MINE", "", true},
		{"model: openai/x, api_key_file: /k", "", "/k", true},
		{"model: openai/x, base_url: 'http://127.0.0.1:1'", "", "", false},
		{"model: openai/x, base_url: 'http://[::1]:1'", "", "", false},
		{"model: openai/x, base_url: 'http://localhost/v1'", "", "", false},
		{"model: openai/x, base_url: 'http://localhost/v1', api_key_env: MINE", "MINE", "", true},
		{"model: openai/x, base_url: 'https://example.com/v1', api_key_env: MINE", "MINE", "", true},
		{"model: openai/x, base_url: 'http://node7:8000/v1', api_key_env: ''", "", "", false},
		{"model: openai/x, base_url: 'https://api.openai.com/v1'", "OPENAI_API_KEY", "", true},
		{"model: openai/x, base_url: ['http://127.0.0.1:1', 'http://127.0.0.1:2']", "", "", false},
		{"model: openrouter/a/b", "OPENROUTER_API_KEY", "", true},
		{"model: vllm/org/model", "VLLM_API_KEY", "", false},
		{"model: vllm/m, base_url: 'http://node7:8000/v1'", "", "", false},
		{"model: vllm/m, base_url: 'http://node7:8000/v1', api_key_env: MINE", "MINE", "", true},
		{"model: sglang/m, api_key_env: ''", "", "", false},
		{"model: llamacpp/m", "LLAMA_API_KEY", "", false},
		{"model: 'ollama/llama3.2:1b'", "OLLAMA_API_KEY", "", false},
	}
	for _, test := range tests {
		r := parse(t, "version: 1\ntasks: {path: t.jsonl}\nagent: {"+test.agent+"}\n", Options{})
		env, file, needed := r.Agent.Key()
		if env != test.env || file != test.file || needed != test.needed {
			t.Errorf("{%s}: key in %q, %q, needed %v; want %q, %q, %v", test.agent, env, file, needed, test.env, test.file, test.needed)
		}
	}
}
