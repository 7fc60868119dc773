package tool

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env"
)

func registry() Registry {
	tools := map[string]env.Tool{}
	for _, name := range []string{"read", "write", "run", "search"} {
		tools[name] = env.Tool{Name: name}
	}
	return Registry{Tools: tools, Sets: map[string]Set{
		"file":    {Tools: []string{"write", "read"}},
		"shell":   {Tools: []string{"run"}},
		"coding":  {Includes: []string{"file", "shell"}},
		"left":    {Tools: []string{"read"}, Includes: []string{"right"}},
		"right":   {Tools: []string{"search"}, Includes: []string{"left"}},
		"diamond": {Includes: []string{"coding", "file", "left"}},
		"dream":   {Includes: []string{"flying"}},
		"broken":  {Tools: []string{"fly"}},
	}}
}

func TestResolve(t *testing.T) {
	tests := []struct {
		name string
		sets []string
		want []string
		err  string
	}{
		{"none", nil, []string{}, ""},
		{"sorted", []string{"file"}, []string{"read", "write"}, ""},
		{"union", []string{"shell", "file"}, []string{"read", "run", "write"}, ""},
		{"named twice", []string{"shell", "shell"}, []string{"run"}, ""},
		{"included", []string{"coding"}, []string{"read", "run", "write"}, ""},
		{"circle", []string{"left"}, []string{"read", "search"}, ""},
		{"diamond", []string{"diamond"}, []string{"read", "run", "search", "write"}, ""},
		{"unknown", []string{"files"}, nil, `unknown toolset "files" (known: broken, coding, diamond, dream, file, left, right, shell)`},
		{"unknown include", []string{"dream"}, nil, `toolset "dream": unknown toolset "flying" (known: broken, coding, diamond, dream, file, left, right, shell)`},
		{"unknown tool", []string{"broken"}, nil, `toolset "broken": unknown tool "fly" (known: read, run, search, write)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tools, err := registry().Resolve(tt.sets)
			if (err != nil) != (tt.err != "") || err != nil && err.Error() != tt.err {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			if err != nil {
				return
			}
			got := []string{}
			for _, tool := range tools {
				got = append(got, tool.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuiltinToolsAreSound(t *testing.T) {
	r := Builtin()
	used := map[string]bool{}
	for name := range r.Sets {
		tools, err := r.Resolve([]string{name})
		if err != nil {
			t.Error(err)
		}
		for _, tool := range tools {
			used[tool.Name] = true
		}
	}
	for name, tool := range r.Tools {
		switch {
		case tool.Name != name:
			t.Errorf("tool %q is registered as %q", tool.Name, name)
		case tool.Description == "" || (tool.Call == nil) == (tool.Bind == nil) || !json.Valid(tool.Parameters):
			t.Errorf("tool %q lacks a description, a function or a schema", name)
		case !used[name]:
			t.Errorf("tool %q is in no toolset", name)
		}
	}
}

// TestSchemas wants what every provider takes: an object, each of whose
// properties has a type and a description, and no other.
func TestSchemas(t *testing.T) {
	for name, tool := range Builtin().Tools {
		var s struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tool.Parameters, &s); err != nil {
			t.Fatal(err)
		}
		if s.Type != "object" || len(s.Properties) == 0 || s.Additional == nil || *s.Additional {
			t.Errorf("schema of %s: %s", name, tool.Parameters)
		}
		for property, p := range s.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s: property %s lacks a type or a description", name, property)
			}
		}
		for _, required := range s.Required {
			if _, ok := s.Properties[required]; !ok {
				t.Errorf("%s: there is no property %s to require", name, required)
			}
		}
	}
}

func TestResolveBuiltin(t *testing.T) {
	tests := []struct {
		sets []string
		want []string
	}{
		{[]string{"math", "answer"}, []string{"calculator", "submit_answer"}},
		{[]string{"terminal"}, []string{"terminal"}},
		{[]string{"terminal", "file"}, []string{"patch", "read_file", "search_files", "terminal", "write_file"}},
	}
	for _, tt := range tests {
		tools, err := Resolve(tt.sets)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, 0, len(tools))
		for _, tool := range tools {
			got = append(got, tool.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("tools of %v (-want +got):\n%s", tt.sets, diff)
		}
	}
}

func TestSetsOf(t *testing.T) {
	for tool, want := range map[string][]string{"read": {"file", "left"}, "run": {"shell"}, "search": {"right"}, "fly": {"broken"}, "swim": nil} {
		if diff := cmp.Diff(want, registry().SetsOf(tool)); diff != "" {
			t.Errorf("sets of %s (-want +got):\n%s", tool, diff)
		}
	}
}
