package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// labConfig writes tasks and a config that plays them against the lab at base,
// with further lines of YAML, and returns the config's path.
func labConfig(t *testing.T, base string, tasks int, extra string) string {
	t.Helper()
	dir := t.TempDir()
	var rows bytes.Buffer
	for i := range tasks {
		fmt.Fprintf(&rows, `{"id":"t%d","question":"What is %d + %d?","answer":"%d"}`+"\n", i, i, i+1, 2*i+1)
	}
	writeFile(t, filepath.Join(dir, "tasks.jsonl"), rows.String())
	config := filepath.Join(dir, "lab.yaml")
	writeFile(t, config, fmt.Sprintf(`version: 1
name: lab
seed: 3
tasks: {path: tasks.jsonl, columns: {id: id, input: question, target: answer}}
env: {name: answer}
agent: {model: openai/lab, base_url: "%s", toolsets: [answer, math]}
score: [{name: numeric, extract: last_number}]
prices: prices.json
out: runs
%s`, base, extra))
	writeFile(t, filepath.Join(dir, "prices.json"),
		`{"version":"test","models":{"openai":{"lab":{"input":1000000000,"cache_read":100000000,"cache_write":1250000000,"output":3000000000}}}}`)
	return config
}

// questions is a config of so many questions that the scripted models know the
// answer of; it needs no lab.
func questions(t *testing.T, n int) (config string) {
	t.Helper()
	dir := t.TempDir()
	var rows bytes.Buffer
	for i := range n {
		fmt.Fprintf(&rows, `{"question":"%d + 1","answer":"%d"}`+"\n", i, i+1)
	}
	writeFile(t, filepath.Join(dir, "tasks.jsonl"), rows.String())
	config = filepath.Join(dir, "questions.yaml")
	writeFile(t, config, `version: 1
tasks: {path: tasks.jsonl, columns: {input: question, target: answer}}
agent: {model: scripted/oracle}
score: [{name: exact}]
`)
	return config
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// talaria runs a command to its end and returns its output and exit code.
func talaria(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := start(t, args...)
	code = p.wait(t)
	return p.out.String(), p.err.String(), code
}

// mustExit is talaria for a command that has to exit with a code.
func mustExit(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := talaria(t, args...)
	if code != want {
		t.Fatalf("talaria %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return stdout, stderr
}

// wantTexts wants each of the parts in a text.
func wantTexts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in:\n%s", part, text)
		}
	}
}

// ask answers SQL over a run by "talaria query", a struct a row.
func ask[T any](t *testing.T, dir, sql string) []T {
	t.Helper()
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	out, errs, code := talaria(t, "query", dir, sql, "--format", "json")
	if code != 0 {
		t.Fatalf("query: exit code %d: %s", code, errs)
	}
	var rows []T
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return rows
}

// askOne is ask for a single row.
func askOne[T any](t *testing.T, dir, sql string) T {
	t.Helper()
	rows := ask[T](t, dir, sql)
	if len(rows) != 1 {
		t.Fatalf("%d rows of %s, want 1", len(rows), sql)
	}
	return rows[0]
}
