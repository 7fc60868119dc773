package configs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func resolved(t *testing.T, r *Run) []byte {
	t.Helper()
	data, err := r.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fromResolved(t *testing.T, data []byte, o Options) *Run {
	t.Helper()
	r, err := FromResolved(data, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResolved(t *testing.T) {
	for _, text := range []string{minimal, full, withParams} {
		r := parse(t, text, Options{Dir: "testdata"})
		again := fromResolved(t, resolved(t, r), Options{})
		if diff := cmp.Diff(string(resolved(t, r)), string(resolved(t, again))); diff != "" {
			t.Errorf("resolved twice differs (-once +twice):\n%s", diff)
		}
		if r.ConfigHash() != again.ConfigHash() || r.Agent.Model != again.Agent.Model || r.Limits != again.Limits || r.Name != again.Name {
			t.Errorf("another run: %+v, want %+v", again, r)
		}
		if diff := cmp.Diff(names(t, r), names(t, again)); diff != "" {
			t.Errorf("variants differ:\n%s", diff)
		}
		for i := range r.Tasks {
			if r.VariantHash(i) != again.VariantHash(i) || r.ScorerHash(i) != again.ScorerHash(i) {
				t.Errorf("hashes of source %d differ", i)
			}
		}
	}
}

// The golden file is what run.json holds of a config: a change of a name or a
// default in it is a change for readers and for resume.
func TestResolvedGolden(t *testing.T) {
	wd, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.ReplaceAll(resolved(t, parse(t, full, Options{Dir: "testdata"})), []byte(wd), []byte("DIR"))
	golden(t, "resolved.golden", string(text))
	text = bytes.ReplaceAll(resolved(t, parse(t, minimal, Options{})), []byte(wd), []byte("DIR"))
	golden(t, "defaults.golden", string(text))
}

// Resuming from run.json, flags apply as they do over a file.
func TestFromResolvedOverrides(t *testing.T) {
	data := resolved(t, parse(t, full, Options{Dir: "testdata"}))
	r := fromResolved(t, data, Options{Set: []string{"limits.concurrency.episodes=7", "tasks.0.path=x.jsonl", "agent.sampling.top_p=0.9"}})
	wd, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	if r.Limits.Concurrency.Episodes != 7 || r.Tasks[0].Path != filepath.Join(wd, "x.jsonl") || len(r.Sweep) != 0 {
		t.Errorf("overrides are not applied: %+v", r)
	}
	_, err = FromResolved(data, Options{Set: []string{"limits.retries.infra=-1"}})
	if want := "--set: limits.retries.infra: -1 is too small; it must be at least 0"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestFromResolvedErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                             "run.json: not a config as JSON: EOF",
		`{"version": 1`:                "run.json: not a config as JSON: EOF",
		`{} {}`:                        "run.json: not a config as JSON: there is more after its end",
		`[]`:                           "run.json: a config is an object of keys, not a list; it begins with version: 1",
		`{"version": 9}`:               "run.json: version: version 9 is newer than this release reads (1); use a newer release",
		`{"version": 1, "version": 1}`: `run.json: not a config as JSON: the key "version" is there twice`,
		`{"version": 1, "tasks": [{"path": "/t"}], "agent": {"model": "scripted/null"}, "later": 1}`: "run.json: later: unknown key; known here are " +
			"version, name, note, tags, seed, tasks, env, prompt, few_shot, sandbox, agent, samples, score, limits, prices, sweep, out",
	} {
		_, err := FromResolved([]byte(text), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: error = %v, want %s", text, err, want)
		}
	}
}

// A file that has changed since the run began is a change of identity, also
// where its path is swept over.
func TestChangedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("shots.jsonl", `{"input":"q","target":"a"}`)
	write("a.jsonl", "a")
	write("b.jsonl", "b")
	data := resolved(t, parse(t, minimal+`
few_shot: {path: shots.jsonl, n: 1}
sweep: {agent.replay: [{path: a.jsonl, column: c}, {path: b.jsonl, column: c}]}
`, Options{Dir: dir}))

	recorded := fromResolved(t, data, Options{Recorded: true})
	if diff := DiffIdentity(recorded, fromResolved(t, data, Options{})); diff != nil {
		t.Errorf("changes without a change: %v", diff)
	}
	write("shots.jsonl", `{"input":"q","target":"b"}`)
	write("b.jsonl", "c")
	recorded = fromResolved(t, data, Options{Recorded: true})
	now := fromResolved(t, data, Options{})
	if diff := DiffIdentity(recorded, now); len(diff) != 1 || diff[0].Key != "few_shot.sha256" {
		t.Errorf("changes = %v, want few_shot.sha256", diff)
	}
	hash := func(r *Run, i int) string {
		variants, err := r.Variants()
		if err != nil {
			t.Fatal(err)
		}
		return variants[i].Run.Agent.Replay.SHA256
	}
	if hash(recorded, 0) != hash(now, 0) || hash(recorded, 1) == hash(now, 1) {
		t.Error("the swept files' hashes are not those recorded and those read")
	}

	// What is recorded needs no files.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	fromResolved(t, data, Options{Recorded: true})
	if _, err := FromResolved(data, Options{}); err == nil {
		t.Error("no error without the files")
	}
}
