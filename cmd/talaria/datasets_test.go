package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset/source/hub/hubtest"
	"github.com/talaria-run/talaria/dataset/store"
)

func readRun(t *testing.T, dir string) store.Run {
	t.Helper()
	run, err := store.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A run of a dataset on a hub records the commit, and goes on with it when the
// hub has moved on, when it is gone, and without a word of the token.
func TestHubRun(t *testing.T) {
	const token = "hf_verysecret"
	h := hubtest.New(t)
	h.Token, h.Gated["org/sums"] = token, true
	rows := func(from, to int) map[string][]byte {
		var b strings.Builder
		b.WriteString("question,answer,note\n")
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "%d + 1,%d,%s\n", i, i+1, token)
		}
		return map[string][]byte{"data/test-00000-of-00001.csv": []byte(b.String()), "data/train-00000-of-00001.csv": []byte("question,answer\nx,y\n")}
	}
	commit := h.Add("org/sums", "main", rows(0, 40), nil)
	dir := t.TempDir()
	config, run := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "run")
	writeFile(t, config, `version: 1
tasks: {path: "hf://org/sums?split=test", columns: {input: question, target: answer}, keep: [note]}
agent: {model: scripted/oracle}
score: [{name: exact}]
`)
	t.Setenv("HF_ENDPOINT", h.URL)
	t.Setenv("TALARIA_CACHE", filepath.Join(dir, "cache"))
	_, errs := mustExit(t, 2, "run", config, "--out", run)
	wantTexts(t, errs, config+":2: tasks.0.path: hf://org/sums: the dataset is gated (status 401)", "set HF_TOKEN")

	t.Setenv("HF_TOKEN", token)
	out, errs := mustExit(t, 0, "run", config, "--out", run, "--set", "samples=1")
	wantTexts(t, out, "40")
	files := []store.Fingerprint{{
		Path: "hf://org/sums/data/test-00000-of-00001.csv", Revision: commit, Source: "hf://org/sums?split=test",
	}}
	got := readRun(t, run).Datasets
	if len(got) == 1 {
		files[0].Bytes, files[0].SHA256 = got[0].Bytes, got[0].SHA256
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("fingerprint differs (-want +got):\n%s", diff)
	}

	h.Add("org/sums", "main", rows(100, 150), nil)
	out, more := mustExit(t, 0, "resume", run, "--set", "samples=2")
	wantTexts(t, out, "80")
	h.Close()
	out, last := mustExit(t, 0, "resume", run, "--set", "samples=3")
	wantTexts(t, out, "120")
	if r := readRun(t, run); len(r.EarlierDatasets) > 0 || r.Datasets[0].Revision != commit {
		t.Errorf("the run has moved on: %+v, earlier %+v", r.Datasets, r.EarlierDatasets)
	}
	wantNoText(t, run, token)
	for _, text := range []string{errs, more, last} {
		if strings.Contains(text, token) {
			t.Errorf("the token is told: %s", text)
		}
	}
	if sqlBuiltIn {
		out, _ := mustExit(t, 0, "query", run, "SELECT DISTINCT dataset, dataset_revision, split FROM tasks", "--format", "csv")
		wantTexts(t, out, "org/sums,"+commit+",test")
	}
}

// wantNoText wants a text in no file of a folder.
func wantNoText(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.Contains(string(readFile(t, path)), text) {
			t.Errorf("%s has %q", path, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A dataset that has changed under the ids of a run is told, and what it was is
// kept.
func TestChangedDataset(t *testing.T) {
	dir := t.TempDir()
	tasks, config, run := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "c.yaml"), filepath.Join(dir, "run")
	row := func(id, question, answer string) string {
		return fmt.Sprintf(`{"id":%q,"question":%q,"answer":%q}`, id, question, answer) + "\n"
	}
	writeFile(t, tasks, row("a", "one", "1")+row("b", "two", "2")+row("c", "three", "3"))
	writeFile(t, config, `version: 1
tasks: {path: t.jsonl, columns: {id: id, input: question, target: answer}}
agent: {model: scripted/oracle}
score: [{name: exact}]
`)
	mustExit(t, 0, "run", config, "--out", run)
	before := readRun(t, run).Datasets

	_, errs := mustExit(t, 0, "resume", run)
	if strings.Contains(errs, "content") {
		t.Errorf("nothing has changed, and yet: %s", errs)
	}
	// a is another question now, c is gone, d is new.
	writeFile(t, tasks, row("a", "one?", "1")+row("b", "two", "2")+row("d", "four", "4"))
	out, errs := mustExit(t, 0, "resume", run)
	wantTexts(t, errs, "recorded tasks have other content now", "start a new run", "tasks=1")
	wantTexts(t, out, "4")
	got := readRun(t, run)
	if len(got.EarlierDatasets) != 1 {
		t.Fatalf("earlier datasets: %+v", got.EarlierDatasets)
	}
	was := got.EarlierDatasets[0]
	if was.ChangedTasks != 1 || was.MissingTasks != 1 || !cmp.Equal(was.Datasets, before) || cmp.Equal(got.Datasets, before) {
		t.Errorf("earlier dataset: %+v, now %+v", was, got.Datasets)
	}
	// Other columns under the same ids are other content too.
	writeFile(t, tasks, row("a", "one?", "1")+row("b", "two", "2")+row("d", "four", "4"))
	_, errs = mustExit(t, 0, "resume", run, "--set", "tasks.columns.target=question")
	wantTexts(t, errs, "recorded tasks have other content now", "tasks=3")
	if n := len(readRun(t, run).EarlierDatasets); n != 1 {
		t.Errorf("%d earlier datasets, want 1: the files are the same", n)
	}
}

// Kept columns of parts that saw other rows are read as one column that holds
// both.
func TestKeptTypes(t *testing.T) {
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	dir := t.TempDir()
	config, run := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "run")
	writeFile(t, filepath.Join(dir, "t.jsonl"), strings.Join([]string{
		`{"input":"1","target":"","whole":1,"number":1,"sure":true,"mixed":true,"text":"1","late":null}`,
		`{"input":"2","target":"","whole":2,"number":2.5,"sure":null,"mixed":1,"text":"x","late":null}`,
		`{"input":"3","target":"","whole":null,"number":3,"sure":false,"mixed":"y","text":null,"late":7}`,
	}, "\n"))
	writeFile(t, config, `version: 1
tasks: {path: t.jsonl, keep: [whole, number, sure, mixed, text, late]}
agent: {model: scripted/null}
`)
	mustExit(t, 0, "run", config, "--out", run, "--limit", "1")
	mustExit(t, 0, "resume", run, "--set", "tasks.limit=3")
	parts, err := filepath.Glob(filepath.Join(run, "tasks", "*.parquet"))
	if err != nil || len(parts) != 2 {
		t.Fatalf("parts %v, %v", parts, err)
	}
	want := "meta_whole,BIGINT\nmeta_number,DOUBLE\nmeta_sure,BOOLEAN\nmeta_mixed,VARCHAR\nmeta_text,VARCHAR\nmeta_late,BIGINT\n"
	out, _ := mustExit(t, 0, "query", run, "SELECT column_name, column_type FROM (DESCRIBE tasks) WHERE column_name LIKE 'meta_%'", "--format", "csv")
	if diff := cmp.Diff(lines("column_name,column_type\n"+want), lines(out)); diff != "" {
		t.Errorf("types differ (-want +got):\n%s", diff)
	}
	out, _ = mustExit(t, 0, "query", run, "SELECT input, sum(meta_number) s, bool_or(meta_sure) b, any_value(meta_mixed) m FROM tasks GROUP BY ALL ORDER BY ALL", "--format", "csv")
	if diff := cmp.Diff("input,s,b,m\n1,1,true,true\n2,2.5,,1\n3,3,false,y\n", strings.ReplaceAll(out, ".0", "")); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
}

// lines are the sorted lines of a text.
func lines(text string) map[string]bool {
	set := map[string]bool{}
	for l := range strings.Lines(text) {
		set[strings.TrimSpace(l)] = true
	}
	return set
}
