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
