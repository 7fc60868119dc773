package configs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

func prompt(t *testing.T, text string) *Prompt {
	t.Helper()
	p, err := parse(t, text, Options{Dir: "testdata"}).Prompt()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(s string) dataset.Message { return dataset.Message{Role: dataset.User, Content: s} }

func assistant(s string) dataset.Message { return dataset.Message{Role: dataset.Assistant, Content: s} }

func TestPrompt(t *testing.T) {
	task := dataset.Task{ID: "x", Input: "1 + 1?", Target: "2", Row: map[string]any{
		"q": "1 + 1?", "n": json.Number("1.50"), "list": []any{"a", true}, "none": nil, "input": "the row's own",
	}}
	tests := []struct{ template, want string }{
		{"", "1 + 1?"},
		{"plain", "plain"},
		{"{q}", "1 + 1?"},
		{"{input}", "1 + 1?"}, // as mapped
		{"{{q}} is {q} }}{{", "{q} is 1 + 1? }{"},
		{"{{{q}}}", "{1 + 1?}"},
		{"{n} {list} [{none}]", `1.5 ["a",true] []`},
		{"{question}", "1 + 1?"}, // a further name of q
	}
	for _, test := range tests {
		r := parse(t, "version: 1\ntasks: {path: t.jsonl, columns: {input: q, question: q}}\nagent: {model: scripted/null}\n",
			Options{Set: []string{"prompt=" + test.template}})
		p, err := r.Prompt()
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Messages(task)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]dataset.Message{user(test.want)}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.template, diff)
		}
	}
}

func TestPromptWithoutColumn(t *testing.T) {
	p := prompt(t, minimal+"prompt: '{a} {topic}'\n")
	_, err := p.Messages(dataset.Task{ID: "x", Row: map[string]any{"a": 1}})
	want := `dir/test.yaml:4: prompt: task x: the row has no column "topic"; write {{ and }} for braces that are text`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if diff := cmp.Diff([]string{"a", "topic"}, p.Columns(0)); diff != "" {
		t.Errorf("columns differ (-want +got):\n%s", diff)
	}
}

func TestFewShot(t *testing.T) {
	const text = "version: 1\ntasks: [{path: t.jsonl, columns: {input: question, target: answer}}, {path: u.jsonl, columns: {input: question, target: question}}]\n" +
		"agent: {model: scripted/null}\nprompt: 'Q: {input}'\n"
	p := prompt(t, text+"few_shot: {path: shots.jsonl, n: 2, seed: 1}\n")
	task := dataset.Task{Row: map[string]any{"question": "why?"}}
	got, err := p.Messages(task)
	if err != nil {
		t.Fatal(err)
	}
	want := []dataset.Message{
		user("Q: 3 + 3?"), assistant("six"), user("Q: 1 + 1?"), assistant("2"), user("Q: why?"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
	task.Source = 1 // its columns are its own
	if got, err = p.Messages(task); err != nil || got[1].Content != "3 + 3?" {
		t.Errorf("messages of the second source: %v, %v", got, err)
	}
	draws := map[string]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		other := prompt(t, text+"few_shot: {path: shots.jsonl, n: 2, seed: "+seed+"}\n")
		if other.Hash() == p.Hash() != (seed == "1") {
			t.Errorf("hash with seed %s", seed)
		}
		messages, err := other.Messages(task)
		if err != nil {
			t.Fatal(err)
		}
		draws[messages[0].Content+messages[2].Content] = true
	}
	if len(draws) < 2 {
		t.Errorf("all seeds draw %v", draws)
	}
	if all := prompt(t, text+"few_shot: {path: shots.jsonl, n: 4}\n"); len(all.shots[0]) != 8 {
		t.Errorf("%d messages of all examples, want 8", len(all.shots[0]))
	}
}

func TestFewShotErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"too few", minimal + "few_shot: {path: shots.jsonl, n: 5}\n", "dir/test.yaml:4: few_shot.n: 5 examples are wanted, SHOTS has 4"},
		{"no target", minimal + "prompt: '{question}'\nfew_shot: {path: shots.jsonl, n: 4}\n", `SHOTS:LINE: the example has no column "target" to answer with`},
		{"no column", minimal + "prompt: '{topic}'\nfew_shot: {path: shots.jsonl, n: 4}\n", `SHOTS:LINE: the row has no column "topic"; write {{ and }} for braces that are text`},
		{"not JSONL", minimal + "few_shot: {path: ../doc.go, n: 1}\n", "SHOTS:1: not a JSON object on one line: invalid character '/' looking for beginning of value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := parse(t, test.text, Options{Dir: "testdata"})
			_, err := r.Prompt()
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), r.FewShot.Path, "SHOTS")
			for _, line := range []string{"2", "4", "5"} {
				got = strings.Replace(got, "SHOTS:"+line+":", "SHOTS:LINE:", 1)
			}
			if diff := cmp.Diff(test.want, strings.Replace(got, "SHOTS:1: the", "SHOTS:LINE: the", 1)); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPromptHash(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{"", "prompt: a\n", "prompt: b\n", "few_shot: {path: shots.jsonl, n: 1}\n", "few_shot: {path: shots.jsonl, n: 2}\n"} {
		hash := parse(t, minimal+text, Options{Dir: "testdata"}).promptHash()
		if other, ok := seen[hash]; ok {
			t.Errorf("%q and %q have one hash", text, other)
		}
		seen[hash] = text
	}
}
