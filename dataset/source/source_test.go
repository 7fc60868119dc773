package source

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/talaria-run/talaria/dataset"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// write makes a file of a test and returns its path.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipOf(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstdOf(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func collect(tasks iter.Seq2[dataset.Task, error]) ([]dataset.Task, error) {
	var all []dataset.Task
	for t, err := range tasks {
		if err != nil {
			return all, err
		}
		all = append(all, t)
	}
	return all, nil
}

func readAll(t *testing.T, o Options) []dataset.Task {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := collect(s.Tasks())
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// failure is the error of opening and reading a source.
func failure(o Options) error {
	s, err := Open(o)
	if err != nil {
		return err
	}
	_, err = collect(s.Tasks())
	return err
}

func TestBrokenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("%d broken files, want at least 20", len(files))
	}
	var report strings.Builder
	for _, f := range files {
		err := failure(Options{Path: f})
		if err == nil {
			t.Errorf("%s gives no error", f)
			continue
		}
		fmt.Fprintf(&report, "%s\n", err)
	}
	golden(t, "broken.golden", report.String())
}

func TestBrokenOptions(t *testing.T) {
	rows := write(t, "rows.jsonl", []byte(`{"input":"q","target":"a","id":["x"],"level":1,"hard":true}`+"\n"))
	dir := filepath.Dir(rows)
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"no path", Options{}, "no path of a dataset was given"},
		{"missing file", Options{Path: dir + "/none.jsonl"}, "DIR/none.jsonl: no such file"},
		{"glob without match", Options{Path: dir + "/x*.jsonl"}, "DIR/x*.jsonl: no file matches"},
		{"bad glob", Options{Path: dir + "/[.jsonl"}, "DIR/[.jsonl: not a valid pattern: syntax error in pattern"},
		{"double star", Options{Path: dir + "/**/x.jsonl"}, "DIR/**/x.jsonl: ** is not supported; * matches within one folder"},
		{"folder", Options{Path: dir}, "DIR: it is a folder; name its files, such as DIR/*.jsonl, or harbor:DIR if it holds Harbor tasks"},
		{"device", Options{Path: "/dev/null"}, "/dev/null: it is not a regular file; a dataset is read more than once"},
		{"unknown bundle", Options{Path: "bundled:none"}, "bundled:none: no such embedded tasks; there are bundled:quickstart, bundled:terminal"},
		{
			"id is a list",
			Options{Path: rows, Columns: map[string]string{ID: "id"}},
			`DIR/rows.jsonl:1: the id in column "id" is a list; it must be text or a number`,
		},
		{
			"id is missing",
			Options{Path: rows, Columns: map[string]string{ID: "key"}},
			`DIR/rows.jsonl:1: the row has no column "key"; it has hard, id, input, level, target`,
		},
		{
			"further name is missing",
			Options{Path: rows, Columns: map[string]string{"choices": "options"}},
			`DIR/rows.jsonl:1: the row has no column "options"; it has hard, id, input, level, target`,
		},
		{
			"further name is taken",
			Options{Path: rows, Columns: map[string]string{"level": "hard"}},
			`DIR/rows.jsonl:1: the column "hard" is to be called "level", but the row has a column of that name`,
		},
		{
			"required column is missing",
			Options{Path: rows, Require: []string{"topic"}},
			`DIR/rows.jsonl:1: the row has no column "topic"; it has hard, id, input, level, target`,
		},
		{
			"kept column is in no row",
			Options{Path: rows, Keep: []string{"level", "topik"}},
			`DIR/rows.jsonl: no row has the column "topik" that is to be kept`,
		},
		{
			"not one good row",
			Options{Path: rows, SkipBadRows: true, Columns: map[string]string{Input: "question"}},
			`DIR/rows.jsonl: not one of 1 rows can be a task; the first: ` +
				`DIR/rows.jsonl:1: the row has no column "question"; it has hard, id, input, level, target`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := failure(test.opts)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, strings.ReplaceAll(err.Error(), dir, "DIR")); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTasks(t *testing.T) {
	const text = "\xef\xbb\xbf" + `{"q":"1 + 1?","a":2,"n":"x1","level":3,"extra":{"b":1.50,"a":"<&>"},"topic":"sums"}` + "\r\n" +
		"\r\n" +
		`  {"topic":"words","level":"easy","a":["a","b"],"q":"é?","n":7}` // without an end of line
	got := readAll(t, Options{
		Path: write(t, "t.jsonl", []byte(text)), Name: "sums", Split: "test",
		Columns: map[string]string{Input: "q", Target: "a", ID: "n", "difficulty": "level"},
		Keep:    []string{"topic"},
	})
	want := []dataset.Task{
		{
			ID: "x1", Dataset: "sums", Split: "test", Input: "1 + 1?", Target: "2",
			Params: `{"extra":{"a":"<&>","b":1.50}}`, Keep: map[string]any{"topic": "sums"},
			Row: map[string]any{
				"q": "1 + 1?", "a": json.Number("2"), "n": "x1", "level": json.Number("3"), "difficulty": json.Number("3"),
				"extra": map[string]any{"b": json.Number("1.50"), "a": "<&>"}, "topic": "sums",
			},
		},
		{
			ID: "7", Dataset: "sums", Split: "test", Input: "é?", Target: `["a","b"]`,
			Params: `{}`, Keep: map[string]any{"topic": "words"},
			Row: map[string]any{
				"q": "é?", "a": []any{"a", "b"}, "n": json.Number("7"), "level": "easy", "difficulty": "easy", "topic": "words",
			},
		},
	}
	for i := range got {
		if i < len(want) {
			want[i].Hash = got[i].Hash // TestIDs fixes them
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks differ (-want +got):\n%s", diff)
	}
}

func TestKeepAll(t *testing.T) {
	got := readAll(t, Options{
		Path:    write(t, "t.jsonl", []byte(`{"input":"q","target":"a","x":1,"y":null}`)),
		KeepAll: true,
	})
	if diff := cmp.Diff(map[string]any{"x": json.Number("1"), "y": nil}, got[0].Keep); diff != "" {
		t.Errorf("kept columns differ (-want +got):\n%s", diff)
	}
	if got[0].Params != "{}" {
		t.Errorf("Params = %s, want {}", got[0].Params)
	}
}

func TestWithoutTarget(t *testing.T) {
	got := readAll(t, Options{
		Path:    write(t, "t.jsonl", []byte(`{"input":"q"}`)),
		Columns: map[string]string{Target: ""},
	})
	if got[0].Target != "" || got[0].Input != "q" {
		t.Errorf("task = %+v", got[0])
	}
}

func TestLenient(t *testing.T) {
	path := write(t, "t.jsonl", []byte(`{"q":"one","solution":"1"}`+"\n"+`{"id":"b","q":null}`+"\n"+`{"id":null,"q":"c","a":"x"}`+"\n"))
	columns := map[string]string{Input: "q", Target: "a", ID: "id"}
	got := readAll(t, Options{Path: path, Columns: columns, Lenient: true})
	type short struct{ ID, Input, Target string }
	shorts := make([]short, 0, len(got))
	for _, task := range got {
		if task.ID == task.Hash {
			task.ID = "(hash)"
		}
		shorts = append(shorts, short{task.ID, task.Input, task.Target})
	}
	want := []short{{"(hash)", "one", ""}, {"b", "", ""}, {"(hash)", "c", "x"}}
	if diff := cmp.Diff(want, shorts); diff != "" {
		t.Errorf("tasks differ (-want +got):\n%s", diff)
	}
	path = write(t, "t.jsonl", []byte(`{"solution":"1"}`))
	err := failure(Options{Path: path, Columns: columns, Lenient: true})
	want1 := `the row has no column "q"; it has solution`
	if err == nil || !strings.HasSuffix(err.Error(), want1) {
		t.Errorf("error = %v, want ... %s", err, want1)
	}
}

// The same rows give the same tasks however the file is stored or named.
func TestCompression(t *testing.T) {
	text := []byte("\xef\xbb\xbf" + `{"input":"q1","target":"a"}` + "\n" + `{"input":"q2","target":"b"}` + "\n")
	stored := map[string][]byte{
		"plain.bin":   text,
		"gzip.jsonl":  gzipOf(t, text),
		"zstd.gz":     zstdOf(t, text),
		"parts.jsonl": append(gzipOf(t, text[:40]), gzipOf(t, text[40:])...),
		"frames.zst":  append(append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"), zstdOf(t, text[:40])...), zstdOf(t, text[40:])...),
	}
	want := readAll(t, Options{Path: write(t, "want", text), Name: "same"})
	if len(want) != 2 {
		t.Fatalf("%d tasks, want 2", len(want))
	}
	for name, data := range stored {
		got := readAll(t, Options{Path: write(t, name, data), Name: "same"})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tasks of %s differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestTruncatedZstd(t *testing.T) {
	var text bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&text, `{"input":"%d %d","target":"a"}`+"\n", i, i*i*7919)
	}
	data := zstdOf(t, text.Bytes())
	path := write(t, "cut.zst", data[:len(data)*3/4])
	s, err := Open(Options{Path: path, SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := collect(s.Tasks())
	var row RowError
	if !errors.As(err, &row) {
		t.Fatalf("error = %v, want a RowError", err)
	}
	if row.Line != len(tasks)+1 || row.Line < 2 {
		t.Errorf("cut off in line %d after %d tasks", row.Line, len(tasks))
	}
	if want := "the zstd data is cut off; fetch the file again"; row.Reason != want {
		t.Errorf("reason = %q, want %q", row.Reason, want)
	}
}

func TestSkipBadRows(t *testing.T) {
	path := write(t, "t.jsonl", []byte(strings.Join([]string{
		`{"input":"q1","target":"a"}`, `{"input":`, ``, `[]`, `{"input":"q2","target":"a"}`, `{"target":"a"}`,
	}, "\n")))
	s, err := Open(Options{Path: path, SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second pass counts anew
		tasks, err := collect(s.Tasks())
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks) != 2 {
			t.Errorf("%d tasks, want 2", len(tasks))
		}
		want := BadRows{Count: 3, First: []RowError{
			{File: path, Line: 2, Reason: "not JSON at byte 9: unexpected end of JSON input"},
			{File: path, Line: 4, Reason: "a row is a JSON object, not a list"},
			{File: path, Line: 6, Reason: `the row has no column "input"; it has target`},
		}}
		if diff := cmp.Diff(want, s.Bad()); diff != "" {
			t.Errorf("bad rows differ (-want +got):\n%s", diff)
		}
	}
}

func TestManyBadRows(t *testing.T) {
	s, err := Open(Options{Path: write(t, "t.jsonl", []byte(`{"input":"q","target":"a"}`+strings.Repeat("\n{}", 1000))), SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Tasks()); err != nil {
		t.Fatal(err)
	}
	if got := s.Bad(); got.Count != 1000 || len(got.First) != maxBadRows {
		t.Errorf("%d bad rows, %d kept; want 1000, %d", got.Count, len(got.First), maxBadRows)
	}
}

func TestGlob(t *testing.T) {
	dir := t.TempDir()
	for name, input := range map[string]string{"b.jsonl": "2", "a.jsonl": "1", "c.txt": "3", "[x].jsonl": "4"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"input":`+input+`,"target":""}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"[ab].jsonl": {"1", "2"},
		"*":          {"4", "1", "2", "3"},
		"[x].jsonl":  {"4"}, // a file of that name goes before the pattern
	} {
		tasks := readAll(t, Options{Path: filepath.Join(dir, pattern)})
		got := make([]string, 0, len(tasks))
		for _, task := range tasks {
			got = append(got, task.Input)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("inputs of %s differ (-want +got):\n%s", pattern, diff)
		}
	}
}

func TestFingerprint(t *testing.T) {
	text := []byte(`{"input":"q","target":"a"}` + "\n\n")
	packed := gzipOf(t, text)
	path := write(t, "t.gz", packed)
	onDemand, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	read, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(read.Tasks()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Source{onDemand, read} {
		got, err := s.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].Path != path || got[0].Bytes != int64(len(packed)) {
			t.Errorf("fingerprint = %+v, want %s with %d bytes", got, path, len(packed))
		}
	}
	a, _ := onDemand.Fingerprint()
	b, _ := read.Fingerprint()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("on demand and while reading differ:\n%s", diff)
	}
}

func TestChangedFile(t *testing.T) {
	path := write(t, "t.jsonl", []byte(`{"input":"q","target":"a"}`))
	s, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Tasks()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"input":"r","target":"a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = collect(s.Tasks())
	if want := path + ": the dataset has changed since it was first read; start a new run"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}
