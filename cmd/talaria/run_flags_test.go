package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTagsAndSamples: what flags say is in every row, and a resume that plans
// fewer episodes takes none away.
func TestTagsAndSamples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", questions(t, 9), "--out", dir, "--limit", "3", "--samples", "2", "-m", "scripted/oracle",
		"--tag", "first", "--tag", "with, comma", "--note", "a note", "--name", "trial")
	rows := recorded(t, dir)
	if len(rows) != 6 {
		t.Errorf("%d attempts, want 3 tasks twice", len(rows))
	}
	samples := map[string][]int32{}
	for _, row := range rows {
		if diff := cmp.Diff([]string{"first", "with, comma"}, row.Tags); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
		samples[row.TaskID] = append(samples[row.TaskID], row.Sample)
	}
	if len(samples) != 3 {
		t.Errorf("samples by task %v, want 3 tasks", samples)
	}
	run := runOf(t, dir)
	if run.Name != "trial" || run.Note != "a note" {
		t.Errorf("name %q, note %q, want trial, a note", run.Name, run.Note)
	}

	mustExit(t, 0, "resume", dir, "--set", "samples=1")
	stdout, _ := mustExit(t, 0, "status", dir, "--format", "json")
	var status struct{ Episodes, Planned int }
	if err := json.Unmarshal([]byte(stdout), &status); err != nil {
		t.Fatal(err)
	}
	if status.Episodes != 6 || status.Planned != 6 {
		t.Errorf("status tells of %d episodes, %d planned, want 6, 6", status.Episodes, status.Planned)
	}
}
