package edit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goFile = `package main

func a() int {
	x := 1
	return x
}

func b() int {
	y := 2
	return y
}
`

func TestReplace(t *testing.T) {
	type outcome struct {
		Text string
		How  string // or the error
	}
	missing := func(s string) outcome { return outcome{s, "the text is not there"} }
	tests := []struct {
		name           string
		text, old, new string
		all            bool
		want           outcome
	}{
		// Exact.
		{"one word", "a b c", "b", "x", false, outcome{"a x c", Exact}},
		{"all of it", "a", "a", "", false, outcome{"", Exact}},
		{"at the end", "a\nb", "b", "c\n", false, outcome{"a\nc\n", Exact}},
		{"several lines", goFile, "\tx := 1\n\treturn x\n", "\treturn 1\n", false, outcome{strings.Replace(goFile, "\tx := 1\n\treturn x\n", "\treturn 1\n", 1), Exact}},
		{"nothing else changes", "a  \r\nb\t\xff\x00c", "b", "x", false, outcome{"a  \r\nx\t\xff\x00c", Exact}},
		{"exact comes first", "foo  bar\nfoo bar\n", "foo bar", "x", false, outcome{"foo  bar\nx\n", Exact}},
		{"what stands for a pattern", "a.c abc $1", "a.c", "$1\\1", false, outcome{"$1\\1 abc $1", Exact}},
		{"unicode", "grüße 世界", "世界", "Welt", false, outcome{"grüße Welt", Exact}},
		{"twice", "a\nb\na\n", "a", "x", false, outcome{"a\nb\na\n", "the text is in 2 places, at lines 1, 3"}},
		{"twice on a line", "aa b aa", "aa", "x", false, outcome{"aa b aa", "the text is in 2 places, at lines 1"}},
		{"overlapping", "aaa", "aa", "x", false, outcome{"aaa", "the text is in 2 places, at lines 1"}},
		{"many times", strings.Repeat("a\n", 9), "a", "x", false, outcome{strings.Repeat("a\n", 9), "the text is in 9 places, at lines 1, 2, 3, 4, 5, ..."}},
		{"all of many", "a\nb\na\n", "a", "aa", true, outcome{"aa\nb\naa\n", Exact}},
		{"all of one", "a\nb\n", "a", "x", true, outcome{"x\nb\n", Exact}},
		{"all that overlap", "aaaaa", "aa", "x", true, outcome{"xxa", Exact}},
		{"to nothing", "a b c", " b", "", false, outcome{"a c", Exact}},
		{"not there", "abc", "x", "y", false, missing("abc")},
		{"not there at all", "", "x", "y", false, missing("")},
		{"not in part", "abc\n", "abc\nd", "y", false, missing("abc\n")},
		{"other case", "Abc", "abc", "y", false, missing("Abc")},
		{"all of none", "abc", "x", "y", true, missing("abc")},

		// Line ends.
		{"CRLF", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", false, outcome{"x\r\ny\r\nc\r\n", Exact}},
		{"CRLF, a new line", "a\r\nb\r\n", "a", "x\ny", false, outcome{"x\r\ny\r\nb\r\n", Exact}},
		{"CRLF that is meant", "a\r\nb\r\n", "a\r\nb", "x\r\n", false, outcome{"x\r\n\r\n", Exact}},
		{"LF that is meant to be CRLF", "a\nb\n", "a\r\nb\r\n", "x\r\n", false, outcome{"x\r\n", LineTrimmed}},
		{"both kinds", "a\r\nb\nc\n", "a\nb\n", "x\n", false, outcome{"x\nc\n", LineTrimmed}},

		// Blanks at the ends of lines.
		{"blanks in the text", "a  \nb\t\nc\n", "a\nb\n", "x\n", false, outcome{"x\nc\n", LineTrimmed}},
		{"blanks in the piece", "a\nb\n", "a  \nb ", "x", false, outcome{"x\n", LineTrimmed}},
		{"blanks at the end of the last line stay", "a \nb \n", "a\nb", "x", false, outcome{"x \n", LineTrimmed}},
		{"blanks, twice", "a \nb\na\t\nb\n", "a\nb", "x", false, outcome{"a \nb\na\t\nb\n", "the text is in 2 places, at lines 1, 3"}},
		{"blanks, all", "a \nb\na\t\nb\n", "a\nb", "x", true, outcome{"x\nx\n", LineTrimmed}},

		// Runs of blanks.
		{"two spaces for one", "if  (x)  {\n}\n", "if (x) {", "if (y) {", false, outcome{"if (y) {\n}\n", Whitespace}},
		{"tab for spaces", "\tx = 1\n\ty = 2\n", "    x = 1\n    y = 2\n", "    z = 3\n", false, outcome{"\tz = 3\n", Whitespace}},
		{"aligned", "a    = 1\nbbbb = 2\n", "a = 1\nbbbb = 2", "a = 3\nb = 4", false, outcome{"a = 3\nb = 4\n", Whitespace}},
		{"within a line", "for i  in range(3): pass", "i in range(3)", "j in x", false, outcome{"for j in x: pass", Whitespace}},
		{"no blank is no run", "ab", "a b", "x", false, missing("ab")},

		// Indentation.
		{"none in the piece", "class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1\n", "def f(self):\n    return 2\n", false, outcome{"class A:\n    def f(self):\n        return 2\n", Whitespace}},
		{"too much in the piece", "def f():\n    return 1\n", "        def f():\n            return 1", "        def f():\n            x = 2\n            return x", false, outcome{"def f():\n    x = 2\n    return x\n", Indentation}},
		{"deeper lines keep their distance", "  if a:\n    b\n", "if a:\n  b\n", "if a:\n  if c:\n    d\n", false, outcome{"  if a:\n    if c:\n      d\n", Whitespace}},
		{"tabs for none", "\tx := 1\n\treturn x\n", "x := 1\nreturn x\n", "return 1\n", false, outcome{"\treturn 1\n", Indentation}},
		{"only whole lines", "    xa\n    b\n", "a\nb\n", "y", false, missing("    xa\n    b\n")},
		{"blank lines between", "  a\n\n  b\n", "a\n\nb\n", "a\n\nc\n", false, outcome{"  a\n\n  c\n", Indentation}},
		{"indentation, twice", "  a\n  b\nx\n    a\n    b\n", "a\nb\n", "c\n", false, outcome{"  a\n  b\nx\n    a\n    b\n", "the text is in 2 places, at lines 1, 4"}},

		// Escapes.
		{"escaped line ends", "a\nb\n", `a\nb`, `x\ny`, false, outcome{"x\ny\n", Escape}},
		{"escaped quotes", `print("a")`, `print(\"a\")`, `print(\"b\")`, false, outcome{`print("b")`, Escape}},
		{"escapes that are meant", `s = "a\n"`, `"a\n"`, `"b\n"`, false, outcome{`s = "b\n"`, Exact}},
		{"escaped escapes", `s = "a\n"`, `"a\\n"`, `"b\\n"`, false, outcome{`s = "b\n"`, Escape}},

		// Boundaries.
		{"empty lines around", "a b c", "\n b \n\n", "\n x \n", false, outcome{"a x c", Boundary}},
		{"the text's end lacks a line's end", "a\nb", "b\n", "c\n", false, outcome{"a\nc\n", Indentation}},
		{"not within a word", "max y", "\nx\n", "z", false, missing("max y")},

		// Unicode.
		{"quotes", "say “hi” — it’s", `say "hi" - it's`, "x", false, outcome{"x", Unicode}},
		{"quotes in the piece", `say "hi"`, "say “hi”", "x", false, outcome{"x", Unicode}},
		{"spaces", "a\u00a0b", "a b", "x", false, outcome{"x", Unicode}},
		{"invisible characters", "a\u200bb", "ab", "x", false, outcome{"x", Unicode}},
		{"dots", "wait… now", "wait... now", "x", false, outcome{"x", Unicode}},
		{"a part of what stands for a character", "…", ".", "x", false, outcome{"…", "the text is in 3 places, at lines 1"}},

		// First and last line.
		{"other lines between", goFile, "func a() int {\n\tx := 100\n\treturn x\n}", "func a() int { return 1 }", false, outcome{strings.Replace(goFile, "func a() int {\n\tx := 1\n\treturn x\n}", "func a() int { return 1 }", 1), BlockAnchor}},
		{"too different between", "begin\nabc\nend\n", "begin\nxyz\nend\n", "y", false, missing("begin\nabc\nend\n")},
		{"anchors, twice", "a {\n  b = 1;\n}\na {\n  b = 2;\n}\n", "a {\n  b = 3;\n}", "x", true, outcome{"a {\n  b = 1;\n}\na {\n  b = 2;\n}\n", "the text is in 2 places, at lines 1, 4"}},
		{"anchors need lines between", "begin\nend\n", "begin \n end?", "y", false, missing("begin\nend\n")},

		// Mostly the same.
		{"first line a little off", "def compute(a, b):\n    c = a + b\n    return c\n", "def compute(a,b):\n    c = a + b\n    return c\n", "pass\n", false, outcome{"pass\n", Context}},
		{"last line off", "one line here\ntwo lines here\nthree lines here\n", "one line here\ntwo lines here\nfour rabbits\n", "x", false, missing("one line here\ntwo lines here\nthree lines here\n")},
		{"two lines are too few", "alpha beta\ngamma delta\n", "alpha beta\ngamma delt\n", "x", false, missing("alpha beta\ngamma delta\n")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			edits, how, err := Replace(tt.text, tt.old, tt.new, tt.all)
			got := outcome{Apply(tt.text, edits), how}
			if err != nil {
				got.How = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	tests := []struct {
		name string
		old  string
		want NotFoundError
	}{
		{"like a line", "func b() integer {\n\tx\n\ty\n", NotFoundError{Line: 8, Similar: []string{"func b() int {", "\ty := 2", "\treturn y"}}},
		{"like the last line", "\n\n\t return yy\nmore\n", NotFoundError{Line: 10, Similar: []string{"\treturn y", "}"}}},
		{"like nothing", "completely different text", NotFoundError{}},
		{"blank", " \n\t\n\n\n\n", NotFoundError{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Replace(goFile, tt.old, "x", false)
			got, ok := errors.AsType[*NotFoundError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	tests := []struct {
		name           string
		text, old, new string
		want           string
	}{
		{"in the middle", numbers(1, 9), "5\n", "five\nfünf\n", "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+fünf\n 6\n 7\n 8\n"},
		{"part of a line", "abc\n", "b", "x", "@@ -1,1 +1,1 @@\n-abc\n+axc\n"},
		{"several hunks", numbers(1, 10) + "1\n" + numbers(12, 30) + "1\n", "1\n", "x\n", "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -8,7 +8,7 @@\n 8\n 9\n 10\n-1\n+x\n 12\n 13\n 14\n@@ -18,7 +18,7 @@\n 18\n 19\n 20\n-21\n+2x\n 22\n 23\n 24\n@@ -28,4 +28,4 @@\n 28\n 29\n 30\n-1\n+x\n"},
		{"near each other", "a\nb\nc\na\n", "a\n", "", "@@ -1,4 +1,2 @@\n-a\n b\n c\n-a\n"},
		{"first line", "a\nb\n", "a\n", "", "@@ -1,2 +1,1 @@\n-a\n b\n"},
		{"everything", "a\n", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		{"joined lines", "a\nb\nc\n", "\nb", "", "@@ -1,3 +1,2 @@\n a\n-b\n c\n"},
		{"no line's end", "a\nb", "b", "c", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		{"a line's end more", "a\nb", "b", "b\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"nothing", "a\n", "a", "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			edits, _, err := Replace(tt.text, tt.old, tt.new, true)
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want != "" {
				want = "--- f\n+++ f\n" + want
			}
			got := Diff("f", tt.text, edits)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("diff (-want +got):\n%s", diff)
			}
			if patched := patch(t, tt.text, got); patched != Apply(tt.text, edits) {
				t.Errorf("patched: %q", patched)
			}
		})
	}
}

// patch applies a unified diff as the program of that name does.
func patch(t *testing.T, text, diff string) string {
	t.Helper()
	const none = "\\ No newline at end of file\n"
	var out strings.Builder
	from, at := split(text), 0
	diff = strings.ReplaceAll(diff, "\n"+none, "\\\n") // marks the line before
	for i, l := range strings.SplitAfter(diff, "\n") {
		if i < 2 || l == "" {
			continue
		}
		body := l[1:]
		if cut, ok := strings.CutSuffix(body, "\\\n"); ok {
			body = cut
		}
		switch l[0] {
		case '@':
			var begin, n int
			if _, err := fmt.Sscanf(l, "@@ -%d,%d", &begin, &n); err != nil {
				t.Fatal(err)
			}
			begin = max(0, begin-min(n, 1))
			out.WriteString(strings.Join(from[at:begin], ""))
			at = begin
		case '+':
			out.WriteString(body)
		case ' ', '-':
			if from[at] != body {
				t.Fatalf("line %d of the diff is %q, of the text %q", i, body, from[at])
			}
			if l[0] == ' ' {
				out.WriteString(body)
			}
			at++
		}
	}
	return out.String() + strings.Join(from[at:], "")
}

// FuzzReplace wants that an exact replacement changes nothing else, that every
// edit lies in the text, and that the diff tells the truth.
func FuzzReplace(f *testing.F) {
	f.Add("a b c", "b", "x", false)
	f.Add(goFile, "x := 1\nreturn x", "return 1", false)
	f.Add("a\r\nb\r\n", "a\nb", "c", true)
	f.Add("a “b”\n", `"b"`, "c", false)
	f.Add("a\nb\nc\nd", "a\nx\nc\n", "", true)
	f.Add("aaaa", "aa", "a\n", true)
	f.Fuzz(func(t *testing.T, text, old, replacement string, all bool) {
		if old == "" {
			return
		}
		edits, how, err := Replace(text, old, replacement, all)
		sound(t, text, edits)
		if (err == nil) == (len(edits) == 0) || (err == nil) != slices.ContainsFunc(matchers(), func(m matcher) bool { return m.name == how }) || !all && len(edits) > 1 {
			t.Fatalf("%d edits, %q, error %v", len(edits), how, err)
		}
		after := Apply(text, edits)
		if n := len(exact(text, old)); n > 0 && !endsInCRLF(text) {
			want := strings.ReplaceAll(text, old, replacement)
			if n > 1 && !all {
				want = text
			}
			if after != want {
				t.Errorf("%q with %q for %q is %q, want %q", text, replacement, old, after, want)
			}
		}
		if strings.Contains(text+replacement, "\\") { // patch uses it as a mark
			return
		}
		if diff := Diff("f", text, edits); patch(t, text, diff) != after {
			t.Errorf("the diff of %s and %s:\n%s", strconv.Quote(text), strconv.Quote(after), diff)
		}
	})
}

// sound checks that edits lie in the text, one after another.
func sound(t *testing.T, text string, edits []Edit) {
	t.Helper()
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End <= e.Start || e.End > len(text) {
			t.Fatalf("edits %+v of %d bytes", edits, len(text))
		}
		at = e.End
	}
}
