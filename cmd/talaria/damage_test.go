package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// finishedRun is a run of two parts with four episodes each.
func finishedRun(t *testing.T) (dir string) {
	t.Helper()
	config := labConfig(t, newLab(t, lab.Script{}).base, 4, "")
	dir = filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", config, "--out", dir)
	mustExit(t, 0, "resume", dir, "--set", "samples=2")
	return dir
}

func copyRun(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// reading is the commands that read a run.
func reading(dir string) map[string][]string {
	commands := map[string][]string{"status": {"status", dir}, "resume": {"resume", dir}}
	if sqlBuiltIn {
		commands["report"] = []string{"report", dir}
		commands["query"] = []string{"query", dir, "SELECT * FROM all_attempts JOIN all_messages USING (episode_id, attempt)"}
	}
	return commands
}

// TestDamage breaks a file of a run: status, query, report and resume each say
// which one and what to do, and change nothing.
func TestDamage(t *testing.T) {
	t.Parallel()
	whole := finishedRun(t)
	tests := []struct {
		name, file string
		harm       func([]byte) []byte
		says       string
		unseen     string // the command that does not read it
	}{
		{"run.json cut", "run.json", cutTail(100), "restore it from a copy", ""},
		{"manifest line in the middle", "manifest.jsonl", flip(40), "line 1: wrong checksum; restore it from a copy of the run; nothing was changed", ""},
		{"part cut", "attempts/part-00000.parquet", cutTail(100), "restore the file from a copy of the run", ""},
		{"part empty", "attempts/part-00001.parquet", func([]byte) []byte { return nil }, "restore the file from a copy of the run", ""},
		{"bytes in a part", "attempts/part-00000.parquet", spoil, "restore the file from a copy of the run", ""},
		{"part of another table cut", "messages/part-00000.parquet", cutTail(100), "restore the file from a copy of the run", "status"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := copyRun(t, whole)
			path := filepath.Join(dir, filepath.FromSlash(test.file))
			writeFile(t, path, string(test.harm(readFile(t, path))))
			before := snapshot(t, dir)
			for command, args := range reading(dir) {
				if command == test.unseen {
					mustExit(t, 0, args...)
					continue
				}
				_, stderr := mustExit(t, 1, args...)
				wantTexts(t, stderr, path+" is damaged: ", test.says)
			}
			if !maps.Equal(before, snapshot(t, dir)) {
				t.Error("the run was changed")
			}
		})
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// cutTail cuts n bytes off the end.
func cutTail(n int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:len(b)-n] }
}

// flip changes the byte at an offset.
func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b = bytes.Clone(b)
		b[at] ^= 0xff
		return b
	}
}

// spoil changes every hundredth byte of a Parquet file and leaves its footer.
func spoil(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 100; i < len(b)/2; i += 100 {
		b[i] ^= 0xff
	}
	return b
}

// snapshot is the content of each file of a run but its lock.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		files[path] = string(readFile(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTornManifestLine is what a crash in the middle of a commit leaves, beside
// the journal: nothing is lost, and resume cuts it.
func TestTornManifestLine(t *testing.T) {
	t.Parallel()
	dir := copyRun(t, finishedRun(t))
	path := filepath.Join(dir, "manifest.jsonl")
	whole := readFile(t, path)
	writeFile(t, path, string(whole)+`{"part":2,"segm`)
	for _, args := range reading(dir) {
		mustExit(t, 0, args...)
	}
	if rows := recorded(t, dir); len(rows) != 8 {
		t.Errorf("%d attempts, want 8", len(rows))
	}
	if !bytes.Equal(readFile(t, path), whole) {
		t.Error("resume did not cut the torn line")
	}
}
