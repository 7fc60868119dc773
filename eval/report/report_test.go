package report_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/eval/report"
	"github.com/talaria-run/talaria/eval/table"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func write(t *testing.T, r *report.Report, format table.Format) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recorded is the report that the golden JSON holds.
func recorded(t *testing.T, name string) *report.Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestWrite(t *testing.T) {
	r := recorded(t, "two_runs.json")
	golden(t, "two_runs.txt", write(t, r, table.Table))
	golden(t, "two_runs.jsonl", write(t, r, table.JSONL))
	golden(t, "two_runs.csv", write(t, r, table.CSV))
	golden(t, "two_runs.json", write(t, r, table.JSON))
	golden(t, "empty.txt", write(t, recorded(t, "empty.json"), table.Table))
	if err := r.Write(&strings.Builder{}, table.Parquet); err == nil {
		t.Error("a report was written as parquet")
	}
}

// TestSourcesAreToldApart: what several sources have in common hides what they
// do not; of one source the table would say nothing new.
func TestSourcesAreToldApart(t *testing.T) {
	const title = "Passes by source of tasks"
	r := recorded(t, "two_runs.json")
	if text := write(t, r, table.Table); strings.Contains(text, title) {
		t.Errorf("one source has a table of its own:\n%s", text)
	}
	half := 0.5
	r.Sources = []report.Source{
		{Key: r.Variants[0].Key, Dataset: "sums", Episodes: 4, Scored: 4, Passed: 2, PassRate: &half},
		{Key: r.Variants[0].Key, Dataset: "words", Episodes: 2, Missing: 2},
	}
	text := strings.Join(strings.Fields(write(t, r, table.Table)), " ")
	for _, want := range []string{title, "good sums 4 4 0 2 50.0 % - - -", "good words 2 0 2 0 - - - -"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}
