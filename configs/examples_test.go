package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exampleOptions complete the examples that need files of the user's.
func exampleOptions(t *testing.T) map[string]Options {
	t.Helper()
	answers := filepath.Join(t.TempDir(), "answers.jsonl")
	if err := os.WriteFile(answers, []byte(`{"question":"q"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]Options{
		"gsm8k-replay.yaml": {Set: []string{"tasks.path=tasks.jsonl", "agent.replay.path=" + answers}},
	}
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 {
		t.Fatalf("examples are %v, want at least 3", files)
	}
	options := exampleOptions(t)
	for _, f := range files {
		fromFile, err := Load(f, options[f])
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		name := bundledPrefix + strings.TrimSuffix(f, ".yaml")
		embedded, err := Load(name, options[f])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(string(resolved(t, fromFile)), string(resolved(t, embedded))); diff != "" {
			t.Errorf("%s and %s differ:\n%s", f, name, diff)
		}
		if fromFile.Name != strings.TrimSuffix(f, ".yaml") {
			t.Errorf("%s is called %s", f, fromFile.Name)
		}
		if _, err := fromFile.Prompt(); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestQuickstart(t *testing.T) {
	r, err := Load("bundled:quickstart", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"model=scripted/oracle", "model=scripted/random", "model=scripted/null"}, names(t, r)); diff != "" {
		t.Errorf("variants differ (-want +got):\n%s", diff)
	}
	if r.Samples != 4 || r.Tasks[0].Path != "bundled:quickstart" {
		t.Errorf("%d samples of %s", r.Samples, r.Tasks[0].Path)
	}
}

func TestLoadErrors(t *testing.T) {
	for path, want := range map[string]string{
		"none.yaml":    "none.yaml: no such file; give the path of a config or an embedded one: bundled:answer, bundled:gsm8k-replay, bundled:quickstart",
		"bundled:none": "bundled:none: no such embedded config; there are bundled:answer, bundled:gsm8k-replay, bundled:quickstart",
		"testdata":     "reading the config: read testdata: is a directory",
	} {
		_, err := Load(path, Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: error = %v, want %s", path, err, want)
		}
	}
}

func TestDefaultName(t *testing.T) {
	for path, want := range map[string]string{
		"a/b/quick.yaml": "quick", "bundled:quickstart": "quickstart", "my config (2).yml": "my-config-2",
		".yaml": "run", "x": "x", "été.yaml": "t",
	} {
		if got := defaultName(path); got != want {
			t.Errorf("defaultName(%q) = %q, want %q", path, got, want)
		}
	}
}
