package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/tool"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/local"
)

// toolStep is a call of a tool and what has to come of it. DIR stands for the
// sandbox's first directory.
type toolStep struct {
	tool, args string
	want       env.ToolResult
}

func ran(content string, exit int) env.ToolResult {
	return env.ToolResult{Content: content, ExitCode: &exit}
}

func said(content string) env.ToolResult { return env.ToolResult{Content: content} }

func refusedTool(content, by string) env.ToolResult {
	return env.ToolResult{Content: content, IsError: true, BlockedBy: by}
}

// toolSteps are a dialogue with one sandbox: commands and files share their
// directory, and what one tool does the others see.
func toolSteps() []toolStep {
	const rolledBack = "[the shell did not end by itself: directory, variables and functions are as before this command]"
	return []toolStep{
		{"write_file", `{"path":"src/a.py","content":"def f():\n    return 1\n\n\ndef g():\n    return f()\n"}`, said("Wrote 48 bytes to src/a.py, a new file.")},
		{"read_file", `{"path":"src/a.py"}`, said("1|def f():\n2|    return 1\n3|\n4|\n5|def g():\n6|    return f()\n[lines 1-6 of 6]")},
		{"terminal", `{"command":"cd src && export KEPT=yes && ls && pwd"}`, ran("a.py\nDIR/src\n", 0)},
		{"terminal", `{"command":"echo $KEPT; pwd"}`, ran("yes\nDIR/src\n", 0)},
		{"read_file", `{"path":"a.py","offset":6}`, said("6|    return f()\n[lines 6-6 of 6]")},
		{"patch", `{"path":"a.py","old_string":"return 1","new_string":"return 2"}`, said("Replaced the text in a.py.\n--- a.py\n+++ a.py\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n+    return 2\n \n \n def g():\n")},
		{"search_files", `{"pattern":"return \\w"}`, said("a.py:2:    return 2\na.py:6:    return f()\n[results 1-2 of 2]")},
		{"search_files", `{"pattern":"*.py","target":"files","path":".."}`, said("../src/a.py\n[results 1-1 of 1]")},
		{"terminal", `{"command":"alias grep='false'; find() { echo mine; }; [ -z \"$BASH_VERSION\" ] || export -f find"}`, ran("[no output]", 0)},
		{"search_files", `{"pattern":"def f"}`, said("a.py:1:def f():\n[results 1-1 of 1]")},
		{"terminal", `{"command":"echo $KEPT; pwd; echo $LC_ALL"}`, ran("yes\nDIR/src\n\n", 0)},
		{"terminal", `{"command":"cat a.py | wc -l","workdir":"DIR/src/"}`, ran("6\n", 0)},
		{"terminal", `{"command":"diff a.py /dev/null >/dev/null"}`, ran("[exit code 1: diff found differences, which is no error]", 1)},
		{"terminal", `{"command":"echo out; echo err >&2; exit 3"}`, ran("out\nerr\n[exit code 3]", 3)},
		{"terminal", `{"command":"read line; echo \"<$line>\""}`, ran("<>\n", 0)},
		{"terminal", `{"command":"printf '\\033[31mred\\033[0m \\377\\n'"}`, ran("red \uFFFD\n", 0)},
		{"terminal", `{"command":"export KEPT=no; kill -9 $$"}`, ran("[exit code 137: killed by signal 9, as when memory runs out]\n"+rolledBack, 137)},
		{"terminal", `{"command":"echo $KEPT"}`, ran("yes\n", 0)},
		{"terminal", `{"command":"echo begun; while :; do :; done","timeout":1}`, env.ToolResult{
			Content: "begun\n[stopped: the command did not end in time; its timeout can be at most 600 seconds]", IsError: true, ExitCode: new(sandbox.ExitTimeout),
		}},
		{"terminal", `{"command":"yes a | head -c 100000"}`, env.ToolResult{
			Content: strings.Repeat("a\n", 10_000) + "\n[... 50000 bytes left out ...]\n" + strings.Repeat("a\n", 15_000), Omitted: 50_000, ExitCode: new(0),
		}},
		{"terminal", `{"command":"rm -rf /"}`, refusedTool("Refused: it would delete the whole file system. This is never run. If it is not what you meant, write the command so that it names only what it is for.", "hardline")},
		{"terminal", `{"command":"true","workdir":"nowhere"}`, ran("sandbox: cannot start the command: stat DIR/src/nowhere: no such file or directory\n[exit code 126]", 126)},
		{"read_file", `{"path":"b.py"}`, refusedTool("DIR/src/b.py: no such file or directory; there is a.py", "")},
		{"read_file", `{"path":"/dev/zero"}`, refusedTool("/dev/zero: not a regular file", "")},
		{"read_file", `{"path":".."}`, refusedTool("DIR: is a directory; search_files lists the files below it", "")},
		{"write_file", `{"path":"a.py/x","content":""}`, refusedTool("DIR/src/a.py: not a directory", "")},
		{"search_files", `{"pattern":"x","path":"nowhere"}`, refusedTool("nowhere: no such file or directory", "")},
		{"terminal", `{"command":"chmod 755 a.py"}`, ran("[no output]", 0)},
		{"patch", `{"path":"DIR/src/a.py","old_string":"def g():\n  return f()\n","new_string":""}`, said("Replaced the text in DIR/src/a.py. It is not exactly as in old_string (found by: whitespace), see what has changed.\n--- DIR/src/a.py\n+++ DIR/src/a.py\n@@ -2,5 +2,3 @@\n     return 2\n \n \n-def g():\n-    return f()\n")},
		{"terminal", `{"command":"test -x a.py && cat a.py"}`, ran("def f():\n    return 2\n\n\n", 0)},
	}
}

// TestToolsInSandbox has the dialogue with a sandbox, and with one that is only
// a process, in bash and in sh.
func TestToolsInSandbox(t *testing.T) {
	for name, options := range map[string]local.Options{"confined": {}, "unconfined": {Bwrap: "/no/such/bwrap", AllowUnconfined: true}} {
		for _, shell := range []string{"", "/bin/sh"} {
			t.Run(name+shell, func(t *testing.T) {
				box := startLocal(t, options, sandbox.Spec{Shell: shell, Timeout: patience})
				calls := bound(t, box)
				for _, step := range toolSteps() {
					arguments := json.RawMessage(strings.ReplaceAll(step.args, "DIR", box.Info().Workdir))
					got, err := calls[step.tool](t.Context(), arguments)
					if err != nil {
						t.Fatalf("%s %s: %v", step.tool, step.args, err)
					}
					got.Content = strings.ReplaceAll(got.Content, box.Info().Workdir, "DIR")
					if diff := cmp.Diff(step.want, got); diff != "" {
						t.Errorf("%s %s (-want +got):\n%s", step.tool, step.args, diff)
					}
				}
			})
		}
	}
}

// bound are the tools that act in a sandbox, bound to box.
func bound(t *testing.T, box sandbox.Sandbox) map[string]env.ToolCall {
	t.Helper()
	tools, err := tool.Resolve([]string{"terminal", "file"})
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]env.ToolCall{}
	for _, tool := range tools {
		calls[tool.Name] = tool.Bind(box)
	}
	return calls
}

func startLocal(t *testing.T, options local.Options, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // other users search it
		t.Fatal(err)
	}
	options.StateDir = filepath.Join(dir, "state")
	b, err := local.New(t.Context(), options)
	if why, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		t.Skip(why)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	box, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return box // closed with the backend
}

// TestToolsWithoutTheirSandbox tells a failure of the sandbox from one of the
// model.
func TestToolsWithoutTheirSandbox(t *testing.T) {
	box := startLocal(t, local.Options{AllowUnconfined: true}, sandbox.Spec{Timeout: patience})
	calls := bound(t, box)
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]string{
		"terminal": `{"command":"true"}`, "read_file": `{"path":"a"}`, "write_file": `{"path":"a","content":""}`,
		"patch": `{"path":"a","old_string":"a","new_string":"b"}`, "search_files": `{"pattern":"a"}`,
	} {
		if got, err := calls[name](t.Context(), json.RawMessage(arguments)); err == nil {
			t.Errorf("%s after its sandbox has ended: %+v", name, got)
		}
	}
}
