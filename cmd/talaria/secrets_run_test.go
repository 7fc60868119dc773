package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/talaria-run/talaria/agent/model/lab"
)

const secretKey = "sk-lab-7c1f90ab34d2"

// TestSecretsStayOut: a key, from the environment or from a file, is never
// written, not even where the server sends it back: in an error, in an answer,
// in the arguments of a tool call.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "key.txt")
	writeFile(t, keyFile, secretKey+"\n")
	talks := lab.Script{
		APIKey: secretKey, Turns: 1, Answer: "My key is " + secretKey + ".",
		Tool: lab.Tool{Arguments: `{"expression": "1 + 1", "note": "` + secretKey + `"}`},
	}
	tests := []struct {
		name   string
		script lab.Script
		set    string
		want   int
	}{
		{"echoed in an answer, key in a file", talks, "agent.api_key_file=" + keyFile, 0},
		{"echoed in an answer, key in the environment", talks, "agent.api_key_env=TEST_LAB_KEY", 0},
		{"echoed in an error", lab.Script{APIKey: "another"}, "agent.api_key_env=TEST_LAB_KEY", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, test.script)
			config := labConfig(t, l.base, 3, "limits: {concurrency: {episodes: 1}}\n")
			dir := filepath.Join(t.TempDir(), "run")
			l.hold(beyond(3)) // so that there is a journal to look into
			p := launch(t, withKey(t, "run", config, "--out", dir, "--set", test.set, "--log-level", "debug"))
			if test.want == 0 {
				l.awaitHeld(t, 1)
				wantNoSecret(t, dir)
			}
			l.open()
			if code := p.wait(t); code != test.want {
				t.Errorf("exit code %d, want %d\n%s", code, test.want, p.err)
			}
			wantNoSecret(t, dir)
			wantMasked(t, "stdout and stderr", []byte(p.out.String()+p.err.String()))
			wantMaskedRows(t, dir, test.want == 0)
		})
	}
}

// TestHostVariablesStayOut: a variable of the host that tasks may have is used by
// agent and verifier, and never written, though both show it.
func TestHostVariablesStayOut(t *testing.T) {
	t.Parallel()
	const second = "the second line"
	tasks := t.TempDir()
	for name, text := range map[string]string{
		"task.toml": "schema_version = \"1.4\"\n[task]\nname = \"x/keys\"\n[environment.env]\nTOKEN = \"${TEST_LAB_KEY}\"\n" +
			"[verifier.env]\nWANT = \"${TEST_LAB_KEY}\"\n",
		"instruction.md":    "Write the token to the file out.",
		"solution/solve.sh": "echo \"$TOKEN\" | tee out; tail -n 1 out\n",
		"tests/test.sh": "echo \"it says $(cat out)\"; tail -n 1 out\n" +
			"[ \"$(cat out)\" = \"$WANT\" ] && echo 1 >\"$LOGS/verifier/reward.txt\" || echo 0 >\"$LOGS/verifier/reward.txt\"\n",
		"wrong/almost.sh": "echo \"$TOKEN.\" >out; kill -9 $PPID\n",
	} {
		file := filepath.Join(tasks, "keys", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, text)
	}
	config := filepath.Join(t.TempDir(), "keys.yaml")
	writeFile(t, config, "version: 1\ntasks: {path: \"harbor:"+tasks+"\"}\nenv: {name: terminal, host_env: [TEST_LAB_KEY]}\n"+
		"agent: {model: scripted/oracle, toolsets: [terminal]}\nsandbox: {allow_unconfined: true}\n")
	dir := filepath.Join(t.TempDir(), "run")
	for _, args := range [][]string{
		{"run", config, "--out", dir, "--log-level", "debug"},
		{"tasks", config, "--audit", "--format", "json", "--log-level", "debug"},
	} {
		cmd := exec.CommandContext(t.Context(), "talaria", args...)
		cmd.Env = append(os.Environ(), "TEST_LAB_KEY="+secretKey+"\n"+second)
		p := launch(t, cmd)
		if code := p.wait(t); code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, p.out, p.err)
		}
		wantMasked(t, "stdout and stderr", []byte(p.out.String()+p.err.String()))
	}
	wantNoSecret(t, dir)
	if !sqlBuiltIn {
		return
	}
	var all strings.Builder
	for _, table := range []string{"all_attempts", "all_messages", "all_tool_calls", "all_spans", "all_rewards", "runs"} {
		stdout, _ := mustExit(t, 0, "query", dir, "SELECT * FROM "+table, "--format", "json")
		wantMasked(t, table, []byte(stdout))
		all.WriteString(stdout)
	}
	shown := all.String()
	if strings.Contains(shown, second) {
		t.Errorf("a line of the variable is shown: %s", shown)
	}
	wantTexts(t, shown, "it says [secret]")
}

// wantMaskedRows looks through what SQL shows, and wants the mask in answers
// that had the key.
func wantMaskedRows(t *testing.T, dir string, answered bool) {
	t.Helper()
	if !sqlBuiltIn {
		return
	}
	for _, table := range []string{"all_attempts", "all_messages", "all_tool_calls", "all_spans", "all_rewards", "runs"} {
		stdout, _ := mustExit(t, 0, "query", dir, "SELECT * FROM "+table, "--format", "json")
		wantMasked(t, table, []byte(stdout))
		if answered && table == "all_messages" {
			wantTexts(t, stdout, "My key is [secret].")
		}
	}
}

// withKey is talaria with the key in its environment.
func withKey(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "talaria", args...)
	cmd.Env = append(os.Environ(), "TEST_LAB_KEY="+secretKey)
	return cmd
}

// wantNoSecret looks through all bytes of a run, the journal's unpacked.
func wantNoSecret(t *testing.T, dir string) {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content := readFile(t, path)
		wantMasked(t, path, content)
		if !strings.HasSuffix(path, ".zst") {
			return nil
		}
		plain, _ := decoder.DecodeAll(content, nil) // up to a frame that is just being written
		if len(plain) == 0 {
			t.Errorf("%s holds nothing", path)
		}
		wantMasked(t, path, plain)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wantMasked(t *testing.T, what string, content []byte) {
	t.Helper()
	if i := bytes.Index(content, []byte(secretKey)); i >= 0 {
		t.Errorf("%s has the key: ...%s", what, content[max(i-200, 0):i])
	}
}
