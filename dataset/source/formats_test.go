package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// The files of testdata/formats were written by pyarrow; same.* hold the same
// rows.

// The same rows give the same tasks in every format.
func TestSameRowsInEveryFormat(t *testing.T) {
	files, err := filepath.Glob("testdata/formats/same.*")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, columns := range []map[string]string{
		{Input: "question", Target: "answer"},
		{Input: "question", Target: "answer", ID: "uid"},
		{Input: "question", Target: "score", "hint": "level", "certain": "hard"},
	} {
		want := sameTasks(t, "testdata/formats/same.jsonl", columns)
		if len(want) != 4 {
			t.Fatalf("%d tasks, want 4", len(want))
		}
		for _, file := range files {
			for name, path := range variantsOf(t, file) {
				if diff := cmp.Diff(want, sameTasks(t, path, columns)); diff != "" {
					t.Errorf("tasks of %s with columns %v differ (-want +got):\n%s", name, columns, diff)
				}
			}
		}
	}
}

// variantsOf are a file and, where that makes sense, the same compressed.
func variantsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	all := map[string]string{file: file}
	if filepath.Ext(file) == ".parquet" {
		return all
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all[file+".gz"] = write(t, "same", gzipOf(t, data))
	all[file+".zst"] = write(t, "same", zstdOf(t, data))
	return all
}

// sameTasks are tasks as far as all formats can tell of them: values as text.
func sameTasks(t *testing.T, path string, columns map[string]string) []string {
	t.Helper()
	tasks := readAll(t, Options{Path: path, Columns: columns, Keep: []string{"level"}})
	lines := make([]string, len(tasks))
	for i, task := range tasks {
		params, err := decodeRow([]byte(task.Params))
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = fmt.Sprintf("%s %s %d %q %q %s %s %v", task.ID, task.Hash, task.Occurrence, task.Input, task.Target,
			dataset.Canonical(task.Row), dataset.Canonical(params), task.Keep["level"])
	}
	return lines
}

// Every type of column has its value in the row.
func TestTypes(t *testing.T) {
	files, err := filepath.Glob("testdata/formats/types*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var report strings.Builder
	for _, file := range files {
		for _, task := range readAll(t, Options{Path: file}) {
			text, err := encodeParams(task.Row)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&report, "%s %s\n", filepath.Base(file), text)
		}
	}
	golden(t, "types.golden", report.String())
}

// A Parquet file that is cut off anywhere is never taken for a whole one.
func TestParquetCutAnywhere(t *testing.T) {
	data, err := os.ReadFile("testdata/formats/same.parquet")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	for cut := range len(data) - 1 {
		if err := os.WriteFile(path, data[:cut+1], 0o600); err != nil {
			t.Fatal(err)
		}
		err := failure(Options{Path: path, Columns: map[string]string{Input: "question", Target: "answer"}})
		if err == nil || !strings.HasPrefix(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("cut off after %d bytes: error = %v", cut+1, err)
		}
	}
}
