package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A lab in a process of its own answers, outlives a hang-up of its terminal
// and the end of who read its output, keeps its ledger, and ends with code 0
// when it is told to.
func TestLabServe(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	cmd := exec.CommandContext(t.Context(), "talaria", "lab", "serve", "--ledger", ledger, "--set", "answer=A: 7")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	base, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	chat(t, strings.TrimSpace(base))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the lab ended with %v", err)
	}
	got, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(got), "\n") != 1 || !strings.Contains(string(got), `"answer":"A: 7"`) {
		t.Errorf("got ledger %q, want one line with the answer", got)
	}
}

func chat(t *testing.T, base string) {
	t.Helper()
	body := strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got status %s", resp.Status)
	}
}
