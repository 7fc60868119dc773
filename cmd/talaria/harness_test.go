package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// labProcess is a lab in a process of its own, with the ledger that it keeps.
type labProcess struct {
	base string // of its API, as in http://127.0.0.1:1234/v1
	cmd  *exec.Cmd
}

// startLab starts "talaria lab serve" and ends it with the test.
func startLab(t *testing.T, set ...string) *labProcess {
	t.Helper()
	args := slices.Grow([]string{"lab", "serve"}, 2*len(set))
	for _, s := range set {
		args = append(args, "--set", s)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "talaria", args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the lab's address: %v", err)
	}
	return &labProcess{base: strings.TrimSpace(line), cmd: cmd}
}

// ledger asks the lab for every request so far.
func (l *labProcess) ledger(t *testing.T) []lab.Entry {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(l.base, "/v1") + "/ledger") //nolint:noctx // a loopback server of this test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var entries []lab.Entry
	dec := json.NewDecoder(resp.Body)
	for {
		var e lab.Entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return entries
		} else if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
}

// settled waits until the lab has no request in flight and returns its ledger.
func (l *labProcess) settled(t *testing.T) []lab.Entry {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		entries := l.ledger(t)
		busy := false
		for _, e := range entries {
			busy = busy || e.InFlight
		}
		if !busy {
			return entries
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal("the lab has requests in flight for a minute")
	return nil
}

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
