//go:build unix

package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// host is a directory of this machine in the place of a sandbox.
type host struct {
	sandbox.Sandbox

	dir  string
	path string // of the programs
	err  error  // of every operation
}

func newHost(t *testing.T, files map[string]string) *host {
	t.Helper()
	h := &host{dir: t.TempDir(), path: os.Getenv("PATH")}
	for name, content := range files {
		if err := h.WriteFile(t.Context(), name, []byte(content), 0); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *host) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(h.dir, name)
}

func (h *host) ReadFile(_ context.Context, name string, offset, limit int64) (sandbox.File, error) {
	if h.err != nil {
		return sandbox.File{}, h.err
	}
	file, err := os.Open(h.at(name))
	if err != nil {
		return sandbox.File{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return sandbox.File{}, err
	case info.IsDir():
		return sandbox.File{}, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return sandbox.File{}, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	case limit == 0:
		limit = sandbox.MaxRead
	}
	data, err := io.ReadAll(io.NewSectionReader(file, offset, limit))
	return sandbox.File{Data: data, Size: info.Size(), Mode: info.Mode()}, err
}

func (h *host) WriteFile(_ context.Context, name string, data []byte, _ fs.FileMode) error {
	if h.err != nil {
		return h.err
	}
	if err := os.MkdirAll(filepath.Dir(h.at(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(h.at(name), data, 0o644)
}

func (h *host) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	if h.err != nil {
		return sandbox.Result{}, h.err
	}
	c := exec.CommandContext(ctx, "/bin/sh", "-c", cmd.Script)
	c.Dir, c.Env = h.dir, []string{"PATH=" + h.path}
	out, err := c.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return sandbox.Result{}, err
	}
	return sandbox.Result{Output: out, ExitCode: c.ProcessState.ExitCode()}, nil
}

func (h *host) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(h.at(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// call runs a tool; the directory's own name is DIR in what it says.
func call(t *testing.T, h *host, name string, params map[string]any) env.ToolResult {
	t.Helper()
	arguments, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tool(t, name).Bind(h)(t.Context(), arguments)
	if err != nil {
		t.Fatal(err)
	}
	got.Content = strings.ReplaceAll(got.Content, h.dir, "DIR")
	return got
}

func tool(t *testing.T, name string) env.Tool {
	t.Helper()
	for _, tool := range Tools() {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("there is no %s", name)
	return env.Tool{}
}

// with is parameters as pairs of a name and a value.
func with(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// toolCase is a call and what has to come of it.
type toolCase struct {
	name   string
	tool   string
	params map[string]any
	want   string
	err    bool
}

func (c toolCase) check(t *testing.T, h *host) {
	t.Helper()
	got := call(t, h, c.tool, c.params)
	if diff := cmp.Diff(c.want, got.Content); diff != "" || got.IsError != c.err {
		t.Errorf("error %v, want %v; content (-want +got):\n%s", got.IsError, c.err, diff)
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// numbered is lines as read_file shows them.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%d|line %d\n", i, i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	h := newHost(t, map[string]string{
		"a.txt": "one\n\n\tthree\n", "empty": "", "open": "a\nb", "only": "a", "crlf": "a\r\nb\r\n", "crlf open": "a\r\nb", "mixed": "a\r\nb\n",
		"long": lines(1200), "longer": lines(2500), "latin": "a\xe4b\xfcc and much that is text\n", "binary": "\x7fELF\x00\x01", "noise": "\xff\xfe\xfd\xfc",
		"wide":        strings.Repeat("ä", 2000) + "\n" + strings.Repeat("ä", 2003) + "\nend\n",
		"dir/main.go": "x", "dir/Mien.go": "x", "dir/other.txt": "x", "ansi": "\x1b[1mx\n",
		"full": strings.Repeat(strings.Repeat("x", 999)+"\n", 200),
	})
	if err := os.Symlink("a.txt", h.at("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(h.at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []toolCase{
		{name: "whole", params: with("path", "a.txt"), want: "1|one\n2|\n3|\tthree\n[lines 1-3 of 3]"},
		{name: "absolute path", params: with("path", h.dir+"/a.txt"), want: "1|one\n2|\n3|\tthree\n[lines 1-3 of 3]"},
		{name: "through a link", params: with("path", "link"), want: "1|one\n2|\n3|\tthree\n[lines 1-3 of 3]"},
		{name: "from a line on", params: with("path", "a.txt", "offset", 3), want: "3|\tthree\n[lines 3-3 of 3]"},
		{name: "some lines", params: with("path", "a.txt", "offset", 1, "limit", 2), want: "1|one\n2|\n[lines 1-2 of 3; go on with offset 3]"},
		{name: "nulls", params: with("path", "a.txt", "offset", nil, "limit", nil), want: "1|one\n2|\n3|\tthree\n[lines 1-3 of 3]"},
		{name: "empty", params: with("path", "empty"), want: "[the file is empty]"},
		{name: "no end of line", params: with("path", "open"), want: "1|a\n2|b\n[lines 1-2 of 2; the last line has no line end]"},
		{name: "no end of line, not shown", params: with("path", "open", "limit", 1), want: "1|a\n[lines 1-1 of 2; go on with offset 2]"},
		{name: "one line without end", params: with("path", "only"), want: "1|a\n[lines 1-1 of 1; the last line has no line end]"},
		{name: "CRLF", params: with("path", "crlf"), want: "1|a\n2|b\n[lines 1-2 of 2; lines end in CRLF]"},
		{name: "CRLF without the last", params: with("path", "crlf open"), want: "1|a\n2|b\n[lines 1-2 of 2; lines end in CRLF; the last line has no line end]"},
		{name: "CRLF in part", params: with("path", "mixed"), want: "1|a\n2|b\n[lines 1-2 of 2]"},
		{name: "the default is 500 lines", params: with("path", "long"), want: numbered(1, 500) + "[lines 1-500 of 1200; go on with offset 501]"},
		{name: "2000 lines", params: with("path", "longer", "limit", 2000), want: numbered(1, 2000) + "[lines 1-2000 of 2500; go on with offset 2001]"},
		{name: "the end", params: with("path", "long", "offset", 1199), want: numbered(1199, 1200) + "[lines 1199-1200 of 1200]"},
		{name: "not UTF-8", params: with("path", "latin"), want: "1|a\uFFFDb\uFFFDc and much that is text\n[lines 1-1 of 1; what is not UTF-8 is shown as \uFFFD]"},
		{name: "escapes stay", params: with("path", "ansi"), want: "1|\x1b[1mx\n[lines 1-1 of 1]"},
		{name: "long lines", params: with("path", "wide"), want: "1|" + strings.Repeat("ä", 2000) + "\n2|" + strings.Repeat("ä", 2000) + " [... 6 more bytes]\n3|end\n[lines 1-3 of 3]"},
		{name: "as much as fits", params: with("path", "full"), want: fullText(94) + "[lines 1-94 of 200; go on with offset 95]"},

		{name: "beyond the end", params: with("path", "a.txt", "offset", 4), err: true, want: "the file has 3 lines: offset 4 is beyond its end"},
		{name: "binary", params: with("path", "binary"), err: true, want: "binary is no text: a binary file, or in an encoding that is not UTF-8 (6 bytes)"},
		{name: "noise", params: with("path", "noise"), err: true, want: "noise is no text: a binary file, or in an encoding that is not UTF-8 (4 bytes)"},
		{name: "directory", params: with("path", "dir"), err: true, want: "dir: is a directory; search_files lists the files below it"},
		{name: "device", params: with("path", "/dev/zero"), err: true, want: "/dev/zero: not a regular file"},
		{name: "not there", params: with("path", "nothing/like/it"), err: true, want: "DIR/nothing/like/it: no such file or directory"},
		{name: "another name", params: with("path", "dir/mian.go"), err: true, want: "DIR/dir/mian.go: no such file or directory; there is dir/Mien.go, dir/main.go"},
		{name: "another extension", params: with("path", "a.md"), err: true, want: "DIR/a.md: no such file or directory; there is a.txt"},
		{name: "no path", params: with(), err: true, want: `parameter "path" is missing`},
		{name: "NUL", params: with("path", "a\x00"), err: true, want: `parameter "path" holds a NUL character`},
		{name: "line 0", params: with("path", "a.txt", "offset", 0), err: true, want: `parameter "offset" is 0: it has to be from 1 to 2147483647`},
		{name: "too many lines", params: with("path", "a.txt", "limit", 2001), err: true, want: `parameter "limit" is 2001: it has to be from 1 to 2000`},
		{name: "wrong type", params: with("path", "a.txt", "limit", "all"), err: true, want: `parameter "limit" has to be of type int, not string`},
		{name: "surplus", params: with("path", "a.txt", "lines", 3), err: true, want: `unknown field "lines"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.tool = ReadName
			tt.check(t, h)
		})
	}
	if got := call(t, h, ReadName, with("path", "wide")).Omitted; got != 6 {
		t.Errorf("omitted %d bytes of a long line, want 6", got)
	}
}

func fullText(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d|%s\n", i+1, strings.Repeat("x", 999))
	}
	return b.String()
}

// TestReadInPieces reads files that are longer than one piece.
func TestReadInPieces(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	h := newHost(t, map[string]string{
		"large": strings.Repeat(line, 3*chunk/100), "one line": strings.Repeat("ä", chunk), "exactly": strings.Repeat("x\n", chunk/2),
		"huge": strings.Repeat(line, maxScan/100+50_000),
	})
	n := 3 * chunk / 100
	tests := []toolCase{
		{name: "over the border", params: with("path", "large", "offset", chunk/100, "limit", 3), want: fmt.Sprintf("10485|%s10486|%[1]s10487|%[1]s[lines 10485-10487 of %d; go on with offset 10488]", line, n)},
		{name: "at the end", params: with("path", "large", "offset", n), want: fmt.Sprintf("%d|%s[lines %[1]d-%[1]d of %[1]d]", n, line)},
		{name: "one line", params: with("path", "one line"), want: "1|" + strings.Repeat("ä", maxLine) + fmt.Sprintf(" [... %d more bytes]\n[lines 1-1 of 1; the last line has no line end]", 2*(chunk-maxLine))},
		{name: "as long as a piece", params: with("path", "exactly", "offset", chunk/2), want: "524288|x\n[lines 524288-524288 of 524288]"},
		{name: "the beginning of a huge one", params: with("path", "huge", "limit", 1), want: "1|" + line + "[lines 1-1 of more than 671088; go on with offset 2]"},
		{name: "the end of a huge one", params: with("path", "huge", "offset", 700_000), err: true, want: "line 700000 is not among the first 671088, and the file is too large to look further"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.tool = ReadName
			tt.check(t, h)
		})
	}
}

func TestWrite(t *testing.T) {
	tests := []struct {
		toolCase
		file string // afterwards
	}{
		{toolCase{name: "new", params: with("path", "new", "content", "a\nb"), want: "Wrote 3 bytes to new, a new file."}, "a\nb"},
		{toolCase{name: "new directories", params: with("path", "x/y/new", "content", "a"), want: "Wrote 1 bytes to x/y/new, a new file."}, "a"},
		{toolCase{name: "over another", params: with("path", "old", "content", "a"), want: "Wrote 1 bytes to old, in place of 8."}, "a"},
		{toolCase{name: "nothing", params: with("path", "old", "content", ""), want: "Wrote 0 bytes to old, in place of 8."}, ""},
		{toolCase{name: "bytes as they are", params: with("path", "new", "content", "é\u0000\r\n"), want: "Wrote 5 bytes to new, a new file."}, "é\x00\r\n"},
		{toolCase{name: "a table", params: with("path", "new", "content", "1|ann\n2|bob\n"), want: "Wrote 12 bytes to new, a new file."}, "1|ann\n2|bob\n"},
		{toolCase{name: "a table over a table", params: with("path", "table", "content", "1|ann\n2|bob\n"), want: "Wrote 12 bytes to table, in place of 12."}, "1|ann\n2|bob\n"},
		{toolCase{name: "numbers of their own", params: with("path", "old", "content", "1|a\n5|b\n"), want: "Wrote 8 bytes to old, in place of 8."}, "1|a\n5|b\n"},

		{toolCase{name: "what was read", params: with("path", "old", "content", "1|one\n2|two\n"), err: true, want: numberedProblem}, "one\ntwo\n"},
		{toolCase{name: "what was read elsewhere", params: with("path", "new", "content", "7|a:\n8|  b\n9|\n"), err: true, want: numberedProblem}, ""},
		{toolCase{name: "what was read, with the note", params: with("path", "new", "content", "1|a\n2|b\n[lines 1-2 of 2]"), err: true, want: numberedProblem}, ""},
		{toolCase{name: "over a directory", params: with("path", "dir", "content", ""), err: true, want: "DIR/dir: is a directory; search_files lists the files below it"}, ""},
		{toolCase{name: "below a file", params: with("path", "old/x", "content", ""), err: true, want: "DIR/old: not a directory"}, ""},
		{toolCase{name: "no content", params: with("path", "new"), err: true, want: `parameter "content" is missing`}, ""},
		{toolCase{name: "no path", params: with("content", ""), err: true, want: `parameter "path" is missing`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, map[string]string{"old": "one\ntwo\n", "table": "1|a\n2|b\n3|cc", "dir/x": ""})
			tt.tool = WriteName
			tt.check(t, h)
			name, _ := tt.params["path"].(string)
			if tt.err && tt.file == "" {
				if info, err := os.Stat(h.at(name)); err == nil && name != "" && !info.IsDir() {
					t.Errorf("%s was made", name)
				}
				return
			}
			if got := h.read(t, name); got != tt.file {
				t.Errorf("the file is %q, want %q", got, tt.file)
			}
		})
	}
}

const numberedProblem = "the content looks like what read_file shows: leave out the numbers and bars before the lines. If they are meant, write the file with another tool"

// TestFailure passes on what is no fault of the model.
func TestFailure(t *testing.T) {
	gone := errors.New("the sandbox is gone")
	for name, params := range map[string]map[string]any{
		ReadName: with("path", "f"), WriteName: with("path", "f", "content", ""),
		PatchName: with("path", "f", "old_string", "a", "new_string", "b"), SearchName: with("pattern", "x"),
	} {
		arguments, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tool(t, name).Bind(&host{err: gone})(t.Context(), arguments); !errors.Is(err, gone) {
			t.Errorf("%s: error %v, want %v", name, err, gone)
		}
	}
}

// TestSchemasAreOfTheParams wants a property for every parameter.
func TestSchemasAreOfTheParams(t *testing.T) {
	for name, params := range map[string]any{ReadName: readParams{}, WriteName: writeParams{}, PatchName: patchParams{}, SearchName: searchParams{}} {
		var s struct {
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(tool(t, name).Parameters, &s); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(s.Properties))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
