//go:build unix

package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/env/sandbox"
)

func TestPatch(t *testing.T) {
	const text = "package a\n\nfunc f() {\n\tone()\n\ttwo()\n}\n"
	tests := []struct {
		toolCase
		file string // afterwards, where it has changed
	}{
		{
			toolCase{
				name: "one place", params: with("path", "a.go", "old_string", "one()", "new_string", "three()"),
				want: "Replaced the text in a.go.\n--- a.go\n+++ a.go\n@@ -1,6 +1,6 @@\n package a\n \n func f() {\n-\tone()\n+\tthree()\n \ttwo()\n }\n",
			},
			strings.Replace(text, "one", "three", 1),
		},
		{
			toolCase{
				name: "not exactly", params: with("path", "a.go", "old_string", "  one()\n  two()\n", "new_string", "  two()\n"),
				want: "Replaced the text in a.go. It is not exactly as in old_string (found by: whitespace), see what has changed.\n--- a.go\n+++ a.go\n@@ -1,6 +1,5 @@\n package a\n \n func f() {\n-\tone()\n \ttwo()\n }\n",
			},
			strings.Replace(text, "\tone()\n", "", 1),
		},
		{
			toolCase{
				name: "every place", params: with("path", "a.go", "old_string", "()", "new_string", "(x)", "replace_all", true),
				want: "Replaced the text in 3 places of a.go.\n--- a.go\n+++ a.go\n@@ -1,6 +1,6 @@\n package a\n \n-func f() {\n-\tone()\n-\ttwo()\n+func f(x) {\n+\tone(x)\n+\ttwo(x)\n }\n",
			},
			strings.ReplaceAll(text, "()", "(x)"),
		},
		{toolCase{name: "several places", params: with("path", "a.go", "old_string", "()", "new_string", "x"), err: true, want: "Nothing changed: the text is in 3 places, at lines 3, 4, 5. Take in more of the lines around it, or set replace_all."}, ""},
		{toolCase{name: "not there", params: with("path", "a.go", "old_string", "func g() {\n\tx", "new_string", "x"), err: true, want: "Nothing changed: old_string is not in a.go. What is most like it there:\n3|func f() {\n4|\tone()\n"}, ""},
		{toolCase{name: "nothing like it", params: with("path", "a.go", "old_string", "zzzzzzzzzzzzzzzzz", "new_string", "x"), err: true, want: "Nothing changed: old_string is not in a.go."}, ""},
		{toolCase{name: "numbered", params: with("path", "a.go", "old_string", "4|\tone()\n5|\ttwo()\n", "new_string", "x"), err: true, want: "Nothing changed: old_string is not in a.go. It looks like what read_file shows: leave out the numbers and bars before the lines."}, ""},
		{toolCase{name: "done already", params: with("path", "a.go", "old_string", "one() \n  two()", "new_string", "one()\n\ttwo()"), err: true, want: "nothing changed: the file has new_string there already"}, ""},
		{toolCase{name: "empty", params: with("path", "a.go", "old_string", "", "new_string", "x"), err: true, want: `parameter "old_string" is empty: to write a whole file use write_file`}, ""},
		{toolCase{name: "no new text", params: with("path", "a.go", "old_string", "x"), err: true, want: `parameter "new_string" is missing`}, ""},
		{toolCase{name: "the same", params: with("path", "a.go", "old_string", "one", "new_string", "one"), err: true, want: "old_string and new_string are the same"}, ""},
		{toolCase{name: "no path", params: with("old_string", "one", "new_string", "two"), err: true, want: `parameter "path" is missing`}, ""},
		{toolCase{name: "no file", params: with("path", "a.og", "old_string", "one", "new_string", "two"), err: true, want: "DIR/a.og: no such file or directory; there is a.go"}, ""},
		{toolCase{name: "binary", params: with("path", "bin", "old_string", "one", "new_string", "two"), err: true, want: "bin is no text: a binary file, or in an encoding that is not UTF-8 (4 bytes)"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, map[string]string{"a.go": text, "bin": "one\x00"})
			tt.tool = PatchName
			tt.check(t, h)
			want := tt.file
			if want == "" {
				want = text
			}
			if got := h.read(t, "a.go"); got != want {
				t.Errorf("the file is %q, want %q", got, want)
			}
		})
	}
}

// TestLongDiff shows a part of a diff, in whole lines.
func TestLongDiff(t *testing.T) {
	h := newHost(t, map[string]string{"f": lines(3000)})
	got := call(t, h, PatchName, with("path", "f", "old_string", "line", "new_string", "row", "replace_all", true))
	head, note, _ := strings.Cut(got.Content, "[... ")
	if len(got.Content) > maxDiff+200 || !strings.HasSuffix(head, "\n") || note != fmt.Sprintf("%d bytes of the diff left out]", got.Omitted) || got.Omitted == 0 {
		t.Errorf("%d bytes, note %q, omitted %d", len(got.Content), note, got.Omitted)
	}
	if got := h.read(t, "f"); got != strings.ReplaceAll(lines(3000), "line", "row") {
		t.Error("the file is not whole")
	}
}

// TestTooLargeToPatch leaves a file alone that cannot be read whole.
func TestTooLargeToPatch(t *testing.T) {
	h := newHost(t, map[string]string{"f": strings.Repeat("x", sandbox.MaxRead) + "end"})
	got := call(t, h, PatchName, with("path", "f", "old_string", "end", "new_string", "x"))
	if want := "f is too large to patch (16777219 bytes)"; got.Content != want || !got.IsError {
		t.Errorf("got %q, want %q", got.Content, want)
	}
}
