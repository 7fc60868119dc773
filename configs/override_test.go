package configs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const minimal = `version: 1
tasks: {path: t.jsonl}
agent: {model: scripted/oracle}
`

func parse(t *testing.T, text string, o Options) *Run {
	t.Helper()
	r, err := Parse("dir/test.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at looks a key up in the resolved config.
func at(t *testing.T, r *Run, key string) any {
	t.Helper()
	data, err := r.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	v, err := parseJSON(place{}, data)
	if err != nil {
		t.Fatal(err)
	}
	for segment := range strings.SplitSeq(key, ".") {
		if i, ok := index(segment, 0); ok && v.kind == list && i < len(v.items) {
			v = v.items[i]
		} else if v = v.get(segment); v == nil {
			return nil
		}
	}
	return v.plain()
}

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestOverrides(t *testing.T) {
	const twoScores = minimal + "score: [{name: exact}, {name: numeric, extract: boxed}]\n"
	const twoSources = "version: 1\ntasks: [{path: a.jsonl}, {path: b.jsonl}]\nagent: {model: scripted/oracle}\n"
	tests := []struct {
		name string
		text string
		opts Options
		key  string
		want any
	}{
		{"number", minimal, Options{Set: []string{"samples=4"}}, "samples", int64(4)},
		{"last one wins", minimal, Options{Set: []string{"samples=4", "samples=5"}}, "samples", int64(5)},
		{"makes parents", minimal, Options{Set: []string{"agent.sampling.temperature=0.5"}}, "agent.sampling.temperature", 0.5},
		{"extra sampling", minimal, Options{Set: []string{"agent.sampling.top_k=40"}}, "agent.sampling.top_k", int64(40)},
		{"extra nested", minimal, Options{Set: []string{"agent.sampling.chat.think=true"}}, "agent.sampling.chat.think", true},
		{"list", minimal, Options{Set: []string{"tags=[a, b]"}}, "tags", []any{"a", "b"}},
		{"adds to a list", minimal, Options{Set: []string{"tags.+=a", "tags.+=b"}}, "tags", []any{"a", "b"}},
		{"null gives the default", minimal + "samples: 9\n", Options{Set: []string{"samples="}}, "samples", int64(1)},
		{"duration", minimal, Options{Set: []string{"limits.grace=30s"}}, "limits.grace", "30s"},
		{"whole object", minimal, Options{Set: []string{"limits.concurrency={episodes: 2}"}}, "limits.concurrency.episodes", int64(2)},
		{"equals signs", minimal, Options{Set: []string{"note=a=b"}}, "note", "a=b"},

		{"text: template", minimal, Options{Set: []string{"prompt={question} please: #1"}}, "prompt", "{question} please: #1"},
		{"text: template alone", minimal, Options{Set: []string{"prompt={question}"}}, "prompt", "{question}"},
		{"text: number", minimal, Options{Set: []string{"name=007"}}, "name", "007"},
		{"text: quoted", minimal, Options{Set: []string{`note="a\nb"`}}, "note", "a\nb"},
		{"text: single quotes", minimal, Options{Set: []string{"note='it''s'"}}, "note", "it's"},
		{"text: empty", minimal + "note: x\n", Options{Set: []string{"note="}}, "note", ""},
		{"text: null", minimal + "note: x\n", Options{Set: []string{"note=null"}}, "note", ""},
		{"text: hashes", twoScores, Options{Set: []string{"score.0.target_extract=####"}}, "score.0.target_extract", "####"},
		{"text: regex", twoScores, Options{Set: []string{`score.1.extract=/A: *(-?[\d,.]+)/`}}, "score.1.extract", `/A: *(-?[\d,.]+)/`},
		{"text: no key", minimal, Options{Set: []string{"agent.api_key_env="}}, "agent.api_key_env", ""},

		{"element", twoScores, Options{Set: []string{"score.1.name=regex"}}, "score.1.name", "regex"},
		{"new element", twoScores, Options{Set: []string{"score.2.name=regex"}}, "score.2.name", "regex"},
		{"first element of nothing", minimal, Options{Set: []string{"score.0.name=exact"}}, "score.0.name", "exact"},
		{"only element", minimal + "score: [{name: exact}]\n", Options{Set: []string{"score.extract=boxed"}}, "score.0.extract", "boxed"},
		{"only source", minimal, Options{Set: []string{"tasks.limit=3"}}, "tasks.0.limit", int64(3)},
		{"only source by index", minimal, Options{Set: []string{"tasks.0.limit=3"}}, "tasks.0.limit", int64(3)},
		{"one of two", twoSources, Options{Set: []string{"tasks.1.limit=3"}}, "tasks.1.limit", int64(3)},
		{"all of two", twoSources, Options{Set: []string{"tasks.*.limit=3"}}, "tasks.1.limit", int64(3)},
		{"whole source", minimal, Options{Set: []string{"tasks={path: /x.jsonl}", "tasks.limit=2"}}, "tasks.0.path", "/x.jsonl"},
		{"no tasks in the file", "version: 1\nagent: {model: scripted/oracle}\n", Options{Set: []string{"tasks.path=/x.jsonl"}}, "tasks.0.path", "/x.jsonl"},

		{"variable", minimal, Options{Env: environment(map[string]string{"TALARIA_SAMPLES": "3"})}, "samples", int64(3)},
		{"variable over file", minimal + "samples: 2\n", Options{Env: environment(map[string]string{"TALARIA_SAMPLES": "3"})}, "samples", int64(3)},
		{"flag over variable", minimal, Options{Set: []string{"samples=4"}, Env: environment(map[string]string{"TALARIA_SAMPLES": "3"})}, "samples", int64(4)},
		{"empty variable", minimal + "samples: 2\n", Options{Env: environment(map[string]string{"TALARIA_SAMPLES": ""})}, "samples", int64(2)},
		{"variable of a source", minimal, Options{Env: environment(map[string]string{"TALARIA_TASKS_LIMIT": "3"})}, "tasks.0.limit", int64(3)},
		{"variable with a list", minimal, Options{Env: environment(map[string]string{"TALARIA_AGENT_TOOLSETS": "[answer]"})}, "agent.toolsets", []any{"answer"}},

		{"named flag", minimal, Options{Flags: []Flag{{"--limit", "tasks.*.limit", "3"}}}, "tasks.0.limit", int64(3)},
		{"--set after a flag", minimal, Options{Flags: []Flag{{"--samples", "samples", "3"}}, Set: []string{"samples=4"}}, "samples", int64(4)},
		{"model", minimal, Options{Model: []string{"openai/x"}}, "agent.model", "openai/x"},
		{"model over --set", minimal, Options{Model: []string{"openai/x"}, Set: []string{"agent.model=openai/y"}}, "agent.model", "openai/x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, at(t, parse(t, test.text, test.opts), test.key)); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", test.key, diff)
			}
		})
	}
}

func TestOverrideErrors(t *testing.T) {
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"unknown key", Options{Set: []string{"agent.modle=x"}}, "--set: agent.modle: unknown key; did you mean model?"},
		{"foreign word", Options{Set: []string{"epochs=4"}}, "--set: epochs: unknown key; here it is called samples"},
		{"no value", Options{Set: []string{"samples"}}, `--set: "samples" is not key=value, such as --set samples=4`},
		{"no key", Options{Set: []string{"=4"}}, `--set: "=4" is not key=value, such as --set samples=4`},
		{"empty part", Options{Set: []string{"agent..model=4"}}, "--set: agent..model: a key has no empty parts; write it as a.b.c"},
		{"wrong type", Options{Set: []string{"samples=many"}}, `--set: samples: want a whole number, got the text "many"`},
		{"bad YAML", Options{Set: []string{"tags=[a"}}, "--set: tags: the value is not valid YAML: did not find expected ',' or ']'; the list that begins here is not closed"},
		{"beneath a scalar", Options{Set: []string{"samples.x=1"}}, "--set: samples: want a whole number, got an object"},
		{"beneath the file's scalar", Options{Set: []string{"agent.model.x=1"}}, `--set: agent.model.x: agent.model is the text "scripted/oracle" and has no keys`},
		{"behind the end", Options{Set: []string{"score.2.name=x"}}, "--set: score.2: the list has 0 elements; + adds one"},
		{"secret", Options{Set: []string{"agent.api_key=sk-1"}}, "--set: agent.api_key: a secret has no place in a config; put it into an environment variable " +
			"and name that in agent.api_key_env, or into a file and name that in agent.api_key_file"},
		{"part of a swept key", Options{Set: []string{"agent.replay.path=x"}}, "--set: agent.replay.path: the sweep sets all of agent.replay; change sweep.agent.replay instead"},
		{"named flag", Options{Flags: []Flag{{"--samples", "samples", "0"}}}, "--samples: samples: 0 is too small; it must be at least 1"},
		{"variable", Options{Env: environment(map[string]string{"TALARIA_SAMPLES": "x"})}, `TALARIA_SAMPLES: samples: want a whole number, got the text "x"`},
		{"model", Options{Model: []string{"gpt"}}, `-m: agent.model: "gpt" is not preset/model; the presets are llamacpp, ollama, openai, openrouter, scripted, sglang, vllm; openai is for every server that speaks its protocol`},
		{"models", Options{Model: []string{"scripted/null", "gpt"}}, `-m: agent.model: "gpt" is not preset/model; the presets are llamacpp, ollama, openai, openrouter, scripted, sglang, vllm; openai is for every server that speaks its protocol`},
		{"model twice", Options{Model: []string{"scripted/null", "scripted/null"}}, `-m: sweep.agent.model: the value "scripted/null" is there twice; remove one`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("test.yaml", []byte(minimal+"score: []\nsweep: {agent.replay: [{path: errors_test.go, column: a}]}\n"), test.opts)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeveralSourcesNeedAnIndex(t *testing.T) {
	_, err := Parse("t.yaml", []byte("version: 1\ntasks: [{path: a.jsonl}, {path: b.jsonl}]\nagent: {model: scripted/null}\n"),
		Options{Env: environment(map[string]string{"TALARIA_TASKS_LIMIT": "3"})})
	want := "TALARIA_TASKS_LIMIT: tasks.limit: tasks is a list of 2; say which one: tasks.0.limit, or all: tasks.*.limit"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// Paths in the file are relative to its folder, those from outside to the
// working directory; what is embedded has no folder.
func TestPaths(t *testing.T) {
	wd, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	const text = minimal + "prices: ../prices.json\nout: runs/here\n"
	tests := []struct {
		name string
		opts Options
		key  string
		want string
	}{
		{"file", Options{}, "tasks.0.path", filepath.Join(wd, "dir/t.jsonl")},
		{"parent", Options{}, "prices", filepath.Join(wd, "prices.json")},
		{"folder given", Options{Dir: "/data"}, "tasks.0.path", "/data/t.jsonl"},
		{"--set", Options{Set: []string{"tasks.path=x/*.jsonl"}}, "tasks.0.path", filepath.Join(wd, "x/*.jsonl")},
		{"--set of the parent", Options{Set: []string{"tasks={path: x.jsonl}"}}, "tasks.0.path", filepath.Join(wd, "x.jsonl")},
		{"variable", Options{Env: environment(map[string]string{"TALARIA_PRICES": "p.json"})}, "prices", filepath.Join(wd, "p.json")},
		{"absolute", Options{Set: []string{"prices=/p.json"}}, "prices", "/p.json"},
		{"embedded", Options{Set: []string{"tasks.path=bundled:quickstart"}}, "tasks.0.path", "bundled:quickstart"},
		{"out", Options{}, "out", "runs/here"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := at(t, parse(t, text, test.opts), test.key); got != test.want {
				t.Errorf("%s = %v, want %s", test.key, got, test.want)
			}
		})
	}
}

// What is set explicitly is not swept over any more.
func TestOverrideOfASweptKey(t *testing.T) {
	const text = minimal + "sweep: {agent.model: [scripted/null, scripted/random], agent.sampling.temperature: [0, 1]}\n"
	tests := []struct {
		name string
		opts Options
		want []string
	}{
		{"nothing set", Options{}, []string{
			"model=scripted/null,temperature=0", "model=scripted/null,temperature=1",
			"model=scripted/random,temperature=0", "model=scripted/random,temperature=1",
		}},
		{"--set", Options{Set: []string{"agent.model=scripted/loop"}}, []string{"temperature=0", "temperature=1"}},
		{"one model", Options{Model: []string{"scripted/loop"}}, []string{"temperature=0", "temperature=1"}},
		{"models", Options{Model: []string{"scripted/a", "scripted/b"}, Set: []string{"agent.sampling.temperature=0"}}, []string{"model=scripted/a", "model=scripted/b"}},
		{"parent", Options{Set: []string{"agent={model: scripted/x}"}}, []string{"default"}},
		{"the sweep", Options{Set: []string{"sweep={}"}}, []string{"default"}},
		{"an axis", Options{Set: []string{"sweep.agent.model=[scripted/x]", "sweep.agent.sampling.temperature=[2]"}}, []string{"model=scripted/x,temperature=2"}},
		{"variable", Options{Env: environment(map[string]string{"TALARIA_AGENT_MODEL": "scripted/x"})}, []string{"temperature=0", "temperature=1"}},
		{"variable of the sweep", Options{Env: environment(map[string]string{"TALARIA_SWEEP": "{agent.model: [scripted/x]}"})}, []string{"model=scripted/x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(t, parse(t, text, test.opts))); diff != "" {
				t.Errorf("variants differ (-want +got):\n%s", diff)
			}
		})
	}
}

func names(t *testing.T, r *Run) []string {
	t.Helper()
	variants, err := r.Variants()
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, len(variants))
	for i, v := range variants {
		list[i] = v.Name
	}
	return list
}
