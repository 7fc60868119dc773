package store

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/talaria-run/talaria/dataset"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// schemas of all tables, without kept columns.
func schemas() map[string]*parquet.Schema {
	return map[string]*parquet.Schema{
		tAttempts:  schemaOf[AttemptRow](tAttempts),
		tTasks:     tasksSchema(&metaColumns{}),
		tMessages:  schemaOf[MessageRow](tMessages),
		tToolCalls: schemaOf[ToolCallRow](tToolCalls),
		tSpans:     schemaOf[SpanRow](tSpans),
		tRewards:   schemaOf[RewardRow](tRewards),
		tSequences: schemaOf[SequenceRow](tSequences),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestSchema compares the schema of each table, as files have it, with the one
// of this schema version. A difference is a new schema version.
func TestSchema(t *testing.T) {
	rows := expectedRows(sampleRun(), sampleTrajectory(1, true))
	dir, p := writePart(t, rows)
	for table, schema := range schemas() {
		inFile := openPart(t, dir, p, table).Schema().String()
		if diff := cmp.Diff(schema.String(), inFile); diff != "" {
			t.Errorf("%s: the file's schema (-declared +written):\n%s", table, diff)
		}
		golden(t, filepath.Join("schema-v1", table+".txt"), []byte(inFile+"\n"))
	}
}

// TestRowsGolden compares rows, read back from Parquet, with those that this
// schema version gave.
func TestRowsGolden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{})
	parent, child := sampleTrajectory(1, true), sampleTrajectory(2, false)
	child.ParentEpisodeID = parent.Episode.ID
	child.Episode.ID = dataset.ChildID(parent.Episode.ID, 0)
	parent.Children = []*dataset.Trajectory{child}
	mustWrite(t, s, parent)
	mustClose(t, s)

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	rows := allRows(t, osFS{}, dir)
	for _, table := range [][]any{
		lines(rows.Attempts), lines(rows.Tasks), lines(rows.Messages), lines(rows.ToolCalls),
		lines(rows.Spans), lines(rows.Rewards), lines(rows.Sequences),
	} {
		for _, row := range table {
			if err := enc.Encode(row); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "rows-v1.jsonl", b.Bytes())
}

func lines[T any](rows []T) []any {
	out := make([]any, len(rows))
	for i := range rows {
		out[i] = rows[i]
	}
	return out
}
