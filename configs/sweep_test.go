package configs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariantNames(t *testing.T) {
	long := strings.Repeat("word ", 20)
	tests := []struct {
		name, sweep string
		want        []string
	}{
		{"none", "{}", []string{"default"}},
		{"order of the file", "{prompt: [b, a], agent.sampling.temperature: [1, 0.70, 1e-1]}", []string{
			"prompt=b,temperature=1", "prompt=b,temperature=0.7", "prompt=b,temperature=0.1",
			"prompt=a,temperature=1", "prompt=a,temperature=0.7", "prompt=a,temperature=0.1",
		}},
		{"same last part", "{agent.sampling.limit: [1], env.limit: [2], limits.episode.turns: [3]}", []string{"sampling.limit=1,env.limit=2,turns=3"}},
		{"one key ends with another", "{env.a.limit: [1], agent.sampling.a.limit: [2]}", []string{"env.a.limit=1,sampling.a.limit=2"}},
		{"lists", "{agent.toolsets: [[], [answer], [answer, math]]}", []string{"toolsets=[]", "toolsets=answer", "toolsets=answer+math"}},
		{"a plus in an element", "{agent.toolsets: [[a+b], [a, b]]}", []string{"toolsets=_a+b_~47626b82", "toolsets=a+b"}},
		{"scalars", "{env.x: [true, null, '', 'a,b', 12345678901234567890]}", []string{
			"x=true", "x=~null", "x=''", "x=a_b~0a427456", "x=12345678901234567000",
		}},
		{"long text", "{prompt: ['" + long + "']}", []string{"prompt=word_word_word_word_word~8802e3be"}},
		{"objects", "{agent.replay: [{path: sweep_test.go, column: a}, {path: sweep_test.go, column: b}]}", []string{"", ""}},
		{"ollama", "{agent.model: ['openai/qwen:7b']}", []string{"model=openai/qwen:7b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := names(t, parse(t, minimal+"sweep: "+test.sweep+"\n", Options{Dir: "."}))
			for i := range test.want {
				if test.want[i] == "" && i < len(got) {
					test.want[i] = got[i] // only that there is one
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("names differ (-want +got):\n%s", diff)
			}
			seen := map[string]bool{}
			for _, name := range got {
				if seen[name] || strings.ContainsAny(name, " \n") {
					t.Errorf("name %q is taken or has blanks", name)
				}
				seen[name] = true
			}
		})
	}
}

func TestVariants(t *testing.T) {
	r := parse(t, minimal+`
few_shot: {path: shots.jsonl, n: 1}
sweep:
  agent:
    - {model: scripted/null}
    - model: openai/x
      sampling: {temperature: 0, top_k: 4}
  limits.episode: [{turns: 2}]
`, Options{Dir: "testdata"})
	variants, err := r.Variants()
	if err != nil {
		t.Fatal(err)
	}
	if len(variants) != 2 {
		t.Fatalf("%d variants, want 2", len(variants))
	}
	v := variants[1]
	want := map[string]any{
		"agent":          map[string]any{"model": "openai/x", "sampling": map[string]any{"temperature": int64(0), "top_k": int64(4)}},
		"limits.episode": map[string]any{"turns": int64(2)},
	}
	if diff := cmp.Diff(want, v.Params); diff != "" {
		t.Errorf("params differ (-want +got):\n%s", diff)
	}
	if v.Run.Agent.Model != "openai/x" || v.Run.Limits.Episode.Turns != 2 || v.Run.Sweep != nil {
		t.Errorf("values are not applied: %+v", v.Run)
	}
	if v.Run.Agent.Kind != "tools" || v.Run.Limits.Episode.Bytes != Defaults().Limits.Episode.Bytes {
		t.Errorf("an object takes the place of defaults: %+v", v.Run)
	}
	if got := v.Run.Agent.Sampling.Dataset(); *got.Temperature != 0 || got.TopP != nil || got.Extra["top_k"] != int64(4) {
		t.Errorf("sampling = %+v", got)
	}
	if got := v.Run.Place("agent.model"); got != "dir/test.yaml:9: agent.model" {
		t.Errorf("place = %s", got)
	}
	if again, err := v.Run.Variants(); err != nil || len(again) != 1 || again[0].Name != DefaultVariant || again[0].Run != v.Run {
		t.Errorf("a variant's variants: %v, %v", again, err)
	}
}
