package main

import (
	"path/filepath"
	"testing"
)

// scriptedRun is a finished run of some questions without a lab.
func scriptedRun(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", questions(t, n), "--out", dir, "--quiet")
	return dir
}

// TestQueryExitCodes: a mistake in the SQL is one of usage, told with its place;
// what fails while it runs is an error.
func TestQueryExitCodes(t *testing.T) {
	t.Parallel()
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	dir := scriptedRun(t, 2)
	tests := []struct {
		name, sql string
		code      int
		says      string
	}{
		{"rows", "SELECT 1", 0, ""},
		{"syntax", "SELECT 1;\nSELEC 1", 2, `talaria: Parser Error: syntax error at or near "SELEC" (line 2, column 1)` + "\n"},
		{"unknown column", "SELECT rewad FROM episodes", 2, "(line 1, column 8)\n"},
		{"not allowed", "COPY episodes TO 'x'", 2, "talaria: COPY is not allowed: "},
		{"no SQL", " ; ", 2, "talaria: there is no SQL to run\n"},
		{"while it runs", "SELECT error('mine') FROM episodes", 1, "talaria: Invalid Input Error: mine\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, stderr := mustExit(t, tt.code, "query", dir, tt.sql)
			wantTexts(t, stderr, tt.says)
		})
	}
}
