package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// shell is a sandbox that gives one result and keeps the commands.
type shell struct {
	sandbox.Sandbox

	result sandbox.Result
	err    error
	ran    []sandbox.Command
}

func (s *shell) Exec(_ context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	s.ran = append(s.ran, cmd)
	return s.result, s.err
}

func call(t *testing.T, s *shell, arguments string) env.ToolResult {
	t.Helper()
	got, err := Tool().Bind(s)(t.Context(), json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCommand(t *testing.T) {
	tests := []struct {
		name string
		args string
		want sandbox.Command
	}{
		{"command alone", `{"command":"ls"}`, sandbox.Command{Script: "ls", MaxOutput: maxOutput}},
		{"all", `{"command":"ls\n","timeout":600,"workdir":"a"}`, sandbox.Command{Script: "ls\n", Cwd: "a", Timeout: 600 * time.Second, MaxOutput: maxOutput}},
		{"nulls", `{"command":"ls","timeout":null,"workdir":null}`, sandbox.Command{Script: "ls", MaxOutput: maxOutput}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shell)
			call(t, s, tt.args)
			if diff := cmp.Diff([]sandbox.Command{tt.want}, s.ran); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotRun(t *testing.T) {
	long, err := json.Marshal(map[string]string{"command": strings.Repeat("x", maxCommand+1)})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		args    string
		want    string
		blocked string
	}{
		{"nothing", `{}`, `parameter "command" is missing`, ""},
		{"blank", `{"command":" \n"}`, `parameter "command" is missing`, ""},
		{"wrong type", `{"command":["ls"]}`, `parameter "command" has to be of type string, not array`, ""},
		{"surplus", `{"command":"ls","background":true}`, `unknown field "background"`, ""},
		{"no time", `{"command":"ls","timeout":0}`, `parameter "timeout" is 0: it has to be from 1 to 600 seconds`, ""},
		{"too much time", `{"command":"ls","timeout":601}`, `parameter "timeout" is 601: it has to be from 1 to 600 seconds`, ""},
		{"NUL", `{"command":"ls\u0000"}`, "a command cannot hold a NUL character", ""},
		{"NUL in the directory", `{"command":"ls","workdir":"\u0000"}`, "a command cannot hold a NUL character", ""},
		{"too long", string(long), "the command has 131073 bytes, at most 131072 are allowed: write long content to a file first", ""},
		{
			"harmful", `{"command":"rm -rf /"}`,
			"Refused: it would delete the whole file system. This is never run. If it is not what you meant, write the command so that it names only what it is for.",
			BlockedHardline,
		},
		{
			"harmful there", `{"command":"rm -rf *","workdir":"/etc"}`,
			"Refused: it would delete the system's directory /etc. This is never run. If it is not what you meant, write the command so that it names only what it is for.",
			BlockedHardline,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shell)
			want := env.ToolResult{Content: tt.want, IsError: true, BlockedBy: tt.blocked}
			if diff := cmp.Diff(want, call(t, s, tt.args)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if len(s.ran) > 0 {
				t.Errorf("ran %+v", s.ran)
			}
		})
	}
}

// TestFailure passes on what is no fault of the command.
func TestFailure(t *testing.T) {
	gone := errors.New("the sandbox is gone")
	_, err := Tool().Bind(&shell{err: gone})(t.Context(), json.RawMessage(`{"command":"ls"}`))
	if !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}

func TestReport(t *testing.T) {
	tests := []struct {
		name    string
		command string
		result  sandbox.Result
		want    env.ToolResult
	}{
		{"output", "ls", sandbox.Result{Output: []byte("a\nb\n")}, env.ToolResult{Content: "a\nb\n", ExitCode: new(0)}},
		{"no output", "true", sandbox.Result{}, env.ToolResult{Content: "[no output]", ExitCode: new(0)}},
		{"failure", "x", sandbox.Result{Output: []byte("no x\n"), ExitCode: 3}, env.ToolResult{Content: "no x\n[exit code 3]", ExitCode: new(3)}},
		{"failure without output", "false", sandbox.Result{ExitCode: 1}, env.ToolResult{Content: "[exit code 1]", ExitCode: new(1)}},
		{"unended line", "x", sandbox.Result{Output: []byte("a"), ExitCode: 1}, env.ToolResult{Content: "a\n[exit code 1]", ExitCode: new(1)}},
		{"unended line that stays", "x", sandbox.Result{Output: []byte("a")}, env.ToolResult{Content: "a", ExitCode: new(0)}},
		{"meaning", "grep x f", sandbox.Result{ExitCode: 1}, env.ToolResult{Content: "[exit code 1: grep found no match, which is no error]", ExitCode: new(1)}},
		{
			"timeout", "sleep 9",
			sandbox.Result{Output: []byte("a\n"), ExitCode: sandbox.ExitTimeout, TimedOut: true},
			env.ToolResult{Content: "a\n[stopped: the command did not end in time; its timeout can be at most 600 seconds]", IsError: true, ExitCode: new(124)},
		},
		{"its own 124", "timeout 1 sleep 9", sandbox.Result{ExitCode: 124}, env.ToolResult{Content: "[exit code 124]", ExitCode: new(124)}},
		{
			"rolled back", "exec echo a",
			sandbox.Result{Output: []byte("a\n"), StateRolledBack: true},
			env.ToolResult{Content: "a\n[the shell did not end by itself: directory, variables and functions are as before this command]", ExitCode: new(0)},
		},
		{
			"killed", "kill -9 $$",
			sandbox.Result{ExitCode: 137, StateRolledBack: true},
			env.ToolResult{Content: "[exit code 137: killed by signal 9, as when memory runs out]\n[the shell did not end by itself: directory, variables and functions are as before this command]", ExitCode: new(137)},
		},
		{
			"too much", "x",
			sandbox.Result{Output: []byte("abcd"), Gap: 2, Omitted: 70},
			env.ToolResult{Content: "ab\n[... 70 bytes left out ...]\ncd", Omitted: 70, ExitCode: new(0)},
		},
		{
			"too much, cut through characters", "x",
			sandbox.Result{Output: []byte("a\xe2\x82\x82\xacb\n"), Gap: 3, Omitted: 7},
			env.ToolResult{Content: "a\n[... 11 bytes left out ...]\nb\n", Omitted: 11, ExitCode: new(0)},
		},
		{
			"too much, cut between characters", "x",
			sandbox.Result{Output: []byte("€€"), Gap: 3, Omitted: 7},
			env.ToolResult{Content: "€\n[... 7 bytes left out ...]\n€", Omitted: 7, ExitCode: new(0)},
		},
		{
			"too much of no text", "x",
			sandbox.Result{Output: []byte("\xff\xff\xff\xff\x80\x80\x80\x80\x80"), Gap: 4, Omitted: 7},
			env.ToolResult{Content: "\uFFFD\n[... 7 bytes left out ...]\n\uFFFD", Omitted: 7, ExitCode: new(0)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arguments, err := json.Marshal(params{Command: tt.command})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, call(t, &shell{result: tt.result}, string(arguments))); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadable(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"text", "a\tä\r\n€", "a\tä\r\n€"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m", "red x"},
		{"cursor", "\x1b[2J\x1b[?25la\x1b[10Cb\x1b7c\x1b8\x1b=", "abc"},
		{"title", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"},
		{"title without end", "\x1b]0;title\na", "]0;title\na"},
		{"charset", "\x1b(Ba\x1b)0", "a"},
		{"cut off", "a\x1b[3", "a"},
		{"alone", "a\x1b", "a"},
		{"before a letter that is no sequence", "\x1bé", "é"},
		{"no UTF-8", "a\xff\xfeb\xc3", "a\uFFFDb\uFFFD"},
		{"NUL", "a\x00\x00b", "a\uFFFDb"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		if got := readable([]byte(tt.in)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMeaning(t *testing.T) {
	const grep, diff = "grep found no match, which is no error", "diff found differences, which is no error"
	tests := []struct {
		command string
		code    int
		want    string
	}{
		{"grep x f", 1, grep},
		{"grep x f", 2, ""},
		{"cat f | grep x", 1, grep},
		{"cd a && grep x f", 1, grep},
		{"grep x f; ls", 1, ""},
		{"grep x f | sort", 1, ""},
		{"grep 'a | b; c && d' f", 1, grep},
		{"grep \"a | sort\" f", 1, grep},
		{"echo 'x | grep y'", 1, ""},
		{"LC_ALL=C grep x f", 1, grep},
		{"sudo timeout 5 /bin/grep x f", 1, grep},
		{"grep x f > out 2>&1", 1, grep},
		{"grep x $(ls | sort)", 1, grep},
		{"X=$(grep x f)", 1, grep},
		{"(grep x f)", 1, ""},
		{"if grep x f; then true; fi", 1, ""},
		{"while read l; do grep x f; done", 1, ""},
		{"grep x f # | sort", 1, grep},
		{"grep x <<EOF\na | sort\nEOF", 1, grep},
		{"rg x", 1, "rg found no match, which is no error"},
		{"diff a b", 1, diff},
		{"diff a b", 2, ""},
		{"diff <(sort a) <(grep b)", 1, diff},
		{"cmp a b", 1, "cmp found differences, which is no error"},
		{"find / -name x", 1, "find could not read some of the files; it has found the others"},
		{"test -f x", 1, "the condition is false, which is no error"},
		{"[ -f x ]", 1, "the condition is false, which is no error"},
		{"[[ -f x || -d y ]]", 1, "the condition is false, which is no error"},
		{"[ -f x ]", 2, ""},
		{"curl -s x", 6, "curl could not resolve the host"},
		{"curl -s x", 28, "curl ran out of time"},
		{"curl -s x", 3, ""},
		{"git -C d diff --quiet", 1, "git diff found differences, which is no error"},
		{"git grep x", 1, "git grep found no match, which is no error"},
		{"git push", 1, ""},
		{"git", 1, ""},
		{"python3 x.py", 139, "killed by signal 11, an invalid memory access"},
		{"sleep 9", 143, "terminated by signal 15"},
		{"grep 'unclosed", 1, grep},
		{"", 1, ""},
		{"true", 1, ""},
	}
	for _, tt := range tests {
		if got := meaning(tt.command, tt.code); got != tt.want {
			t.Errorf("%q with %d: got %q, want %q", tt.command, tt.code, got, tt.want)
		}
	}
}

// TestSchemaIsOfTheParams wants a property for every parameter.
func TestSchemaIsOfTheParams(t *testing.T) {
	var s struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(Tool().Parameters, &s); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(params{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(s.Properties))); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

// FuzzReadable wants text of any bytes.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{"a", "\x1b[1m", "\x1b]0;x\x07", "\xff\x00", "\x1b\x1b[", "é"} {
		f.Add([]byte(seed), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, gap int) {
		gap = max(0, min(gap, len(b)))
		for _, omitted := range []int64{0, 9} {
			got, missing := output(sandbox.Result{Output: b, Gap: gap, Omitted: omitted})
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b") {
				t.Errorf("output %q of %q", got, b)
			}
			if missing < omitted || missing > omitted+6 {
				t.Errorf("%d bytes are missing, want %d and a little", missing, omitted)
			}
		}
	})
}
