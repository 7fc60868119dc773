//go:build unix

package file

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// engine is a way to search: a PATH with some programs more or less.
type engine struct {
	name string
	path string
	perl bool // it knows the regular expressions of Perl
}

// engines are those that can be had here: grep, grep without Perl's regular
// expressions, and ripgrep if it is installed.
func engines(t *testing.T) []engine {
	t.Helper()
	grep := programs(t, nil)
	poor := programs(t, map[string]string{"grep": "#!/bin/sh\ncase $1 in -*P*) exit 2;; esac\nexec " + which(t, "grep") + ` "$@"` + "\n"})
	list := []engine{{"grep", grep, true}, {"grep without Perl's", poor, false}}
	if rg, err := exec.LookPath("rg"); err == nil {
		list = append(list, engine{"ripgrep", programs(t, map[string]string{"rg": "#!/bin/sh\nexec " + rg + ` "$@"` + "\n"}), true})
	}
	return list
}

// programs makes a PATH of what a search needs and of some scripts.
func programs(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"cut", "find", "grep", "head", "ls", "sort", "xargs"} {
		if scripts[name] != "" {
			continue
		}
		if err := os.Symlink(which(t, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func which(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	return path
}

func searchCases() []toolCase {
	return []toolCase{
		{name: "lines", params: with("pattern", "alpha"), want: ".hidden/h.txt:1:alpha hidden\na.txt:1:alpha\na.txt:3:alpha beta\nsub/b.py:1:x = 'alpha'\n[results 1-4 of 4]"},
		{name: "in a directory", params: with("pattern", "alpha", "path", "sub"), want: "sub/b.py:1:x = 'alpha'\n[results 1-1 of 1]"},
		{name: "in a directory, with a slash", params: with("pattern", "alpha", "path", "./sub/"), want: "./sub/b.py:1:x = 'alpha'\n[results 1-1 of 1]"},
		{name: "in a file", params: with("pattern", "beta", "path", "a.txt"), want: "a.txt:2:beta\na.txt:3:alpha beta\n[results 1-2 of 2]"},
		{name: "expression", params: with("pattern", "^(alpha|beta)$"), want: "a.txt:1:alpha\na.txt:2:beta\n[results 1-2 of 2]"},
		{name: "blanks and quotes", params: with("pattern", "= 'alpha'"), want: "sub/b.py:1:x = 'alpha'\n[results 1-1 of 1]"},
		{name: "a text for the shell", params: with("pattern", "`touch owned`$(touch owned)\"; touch owned"), want: "[no match]"},
		{name: "a path for the shell", params: with("pattern", "x", "path", "$(touch owned)`touch owned`'; touch owned"), err: true, want: "$(touch owned)`touch owned`'; touch owned: no such file or directory"},
		{name: "a glob for the shell", params: with("pattern", "x", "file_glob", "'; touch owned; '"), want: "[no match]"},
		{name: "like an option", params: with("pattern", "--dash"), want: "-dash/f:1:--dash\n[results 1-1 of 1]"},
		{name: "a path like an option", params: with("pattern", "dash", "path", "-dash"), want: "./-dash/f:1:--dash\n[results 1-1 of 1]"},
		{name: "unicode", params: with("pattern", "größe"), want: "ü n/ä.txt:1:größe 世界\n[results 1-1 of 1]"},
		{name: "files with a name", params: with("pattern", "alpha", "file_glob", "*.py"), want: "sub/b.py:1:x = 'alpha'\n[results 1-1 of 1]"},
		{name: "not UTF-8", params: with("pattern", "latin"), want: "latin:1:latin \uFFFD\n[results 1-1 of 1]"},
		{name: "binary files are left out", params: with("pattern", "ELF"), want: "[no match]"},
		{name: "git is left out", params: with("pattern", "ref"), want: "[no match]"},
		{name: "git where it is meant", params: with("pattern", "ref", "path", ".git"), want: ".git/HEAD:1:ref: x\n[results 1-1 of 1]"},
		{name: "only the files", params: with("pattern", "alpha", "output_mode", "files_only"), want: ".hidden/h.txt\na.txt\nsub/b.py\n[results 1-3 of 3]"},
		{name: "counts", params: with("pattern", "alpha", "output_mode", "count"), want: ".hidden/h.txt:1\na.txt:2\nsub/b.py:1\n[results 1-3 of 3]"},
		{name: "counts in one file", params: with("pattern", "alpha", "output_mode", "count", "path", "a.txt"), want: "a.txt:2\n[results 1-1 of 1]"},
		{name: "lines around", params: with("pattern", "^beta", "path", "a.txt", "context", 1), want: "a.txt-1-alpha\na.txt:2:beta\na.txt-3-alpha beta\n[results 1-3 of 3]"},
		{name: "the first ones", params: with("pattern", "alpha", "limit", 2), want: ".hidden/h.txt:1:alpha hidden\na.txt:1:alpha\n[results 1-2 of 4; go on with offset 2]"},
		{name: "the next ones", params: with("pattern", "alpha", "limit", 2, "offset", 2), want: "a.txt:3:alpha beta\nsub/b.py:1:x = 'alpha'\n[results 3-4 of 4]"},
		{name: "beyond", params: with("pattern", "alpha", "offset", 4), want: "[there are 4 results: offset 4 is beyond them]"},
		{name: "none", params: with("pattern", "nowhere"), want: "[no match]"},
		{name: "empty directory", params: with("pattern", "x", "path", "nothing"), want: "[no match]"},
		{name: "defaults by null", params: with("pattern", "^beta", "target", nil, "path", nil, "file_glob", nil, "limit", nil, "offset", nil, "output_mode", nil, "context", nil), want: "a.txt:2:beta\n[results 1-1 of 1]"},

		{name: "files", params: with("pattern", "*.txt", "target", "files"), want: ".hidden/h.txt\na.txt\nü n/ä.txt\n[results 1-3 of 3]"},
		{name: "files below", params: with("pattern", "*", "target", "files", "path", "sub"), want: "sub/b.py\nsub/deep/c.go\n[results 1-2 of 2]"},
		{name: "files with a directory", params: with("pattern", "sub/*.py", "target", "files"), want: "sub/b.py\n[results 1-1 of 1]"},
		{name: "files with the current directory", params: with("pattern", "./deep/c.go", "target", "files"), want: "sub/deep/c.go\n[results 1-1 of 1]"},
		{name: "no files", params: with("pattern", "*.rs", "target", "files"), want: "[no match]"},
		{name: "no regular expression", params: with("pattern", "a.txt|b.py", "target", "files"), want: "[no match]"},

		{name: "no such path", params: with("pattern", "x", "path", "nowhere"), err: true, want: "nowhere: no such file or directory"},
		{name: "no pattern", params: with("path", "sub"), err: true, want: `parameter "pattern" is missing`},
		{name: "NUL", params: with("pattern", "a\x00"), err: true, want: "a search cannot hold a NUL character"},
		{name: "unknown target", params: with("pattern", "x", "target", "names"), err: true, want: `parameter "target" is "names": it has to be one of content, files`},
		{name: "unknown mode", params: with("pattern", "x", "output_mode", "lines"), err: true, want: `parameter "output_mode" is "lines": it has to be one of content, files_only, count`},
		{name: "too many", params: with("pattern", "x", "limit", 501), err: true, want: `parameter "limit" is 501: it has to be from 1 to 500`},
		{name: "before the first", params: with("pattern", "x", "offset", -1), err: true, want: `parameter "offset" is -1: it has to be from 0 to 2147483647`},
		{name: "too wide", params: with("pattern", "x", "context", 11), err: true, want: `parameter "context" is 11: it has to be from 0 to 10`},
	}
}

func TestSearch(t *testing.T) {
	h := newHost(t, map[string]string{
		"a.txt": "alpha\nbeta\nalpha beta\n", "sub/b.py": "x = 'alpha'\n", "sub/deep/c.go": "package c // 42\n", ".hidden/h.txt": "alpha hidden\n",
		".git/HEAD": "ref: x\n", "bin": "ELF\x00alpha\n", "ü n/ä.txt": "größe 世界\n", "-dash/f": "--dash\n", "latin": "latin \xe4\n",
	})
	if err := os.Mkdir(h.at("nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range engines(t) {
		h.path = e.path
		for _, tt := range searchCases() {
			t.Run(e.name+"/"+tt.name, func(t *testing.T) {
				tt.tool = SearchName
				tt.check(t, h)
			})
		}
		t.Run(e.name+"/Perl's", func(t *testing.T) {
			c := toolCase{tool: SearchName, params: with("pattern", `c // \d+(?= ?)`), want: "sub/deep/c.go:1:package c // 42\n[results 1-1 of 1]"}
			if !e.perl {
				c.want, c.err = `the pattern cannot be used: grep knows no \d and no (? here: write [0-9]`, true
			}
			if e.name == "ripgrep" {
				c.params = with("pattern", `c // \d+`)
			}
			c.check(t, h)
		})
		t.Run(e.name+"/no expression", func(t *testing.T) {
			got := call(t, h, SearchName, with("pattern", "(alpha"))
			if !got.IsError || !strings.HasPrefix(got.Content, "the pattern cannot be used: ") {
				t.Errorf("got %q", got.Content)
			}
		})
	}
	if _, err := os.Stat(h.at("owned")); err == nil {
		t.Error("a parameter was run by the shell")
	}
}

// TestSearchIsBounded cuts results that are too long or too many.
func TestSearchIsBounded(t *testing.T) {
	h := newHost(t, map[string]string{
		"long": "x" + strings.Repeat("ä", 5000) + "\n", "many/a": strings.Repeat("many of them\n", 100_000), "wide/b": strings.Repeat(strings.Repeat("wide", 200)+"\n", 500),
	})
	for _, e := range engines(t) {
		h.path = e.path
		t.Run(e.name, func(t *testing.T) {
			toolCase{tool: SearchName, params: with("pattern", "^x", "path", "long"), want: "long:1:x" + strings.Repeat("ä", maxFound-8) + " [...]\n[results 1-1 of 1]"}.check(t, h)
			got := call(t, h, SearchName, with("pattern", "many", "path", "many", "limit", 2)).Content
			head, of, _ := strings.Cut(got, "[results 1-2 of more than ")
			var total int
			if _, err := fmt.Sscanf(of, "%d; go on with offset 2]", &total); err != nil || head != "many/a:1:many of them\nmany/a:2:many of them\n" || total < maxSearched/30 || total > maxSearched/20 {
				t.Errorf("got %q", got)
			}
			got = call(t, h, SearchName, with("pattern", "wide", "path", "wide", "limit", 500)).Content
			if len(got) > maxText+100 || !strings.HasSuffix(got, "of 500; go on with offset 187]") {
				t.Errorf("%d bytes, at the end %q", len(got), got[len(got)-50:])
			}
		})
	}
}

// slow is a sandbox in which nothing comes to an end.
type slow struct{ sandbox.Sandbox }

func (slow) Exec(context.Context, sandbox.Command) (sandbox.Result, error) {
	return sandbox.Result{ExitCode: sandbox.ExitTimeout, TimedOut: true, Duration: time.Minute}, nil
}

func TestSearchTimesOut(t *testing.T) {
	got, err := tool(t, SearchName).Bind(slow{})(t.Context(), []byte(`{"pattern":"x"}`))
	if want := "the search did not end in 1m0s: search below a narrower path"; err != nil || got.Content != want || !got.IsError {
		t.Errorf("got %q, error %v", got.Content, err)
	}
}
