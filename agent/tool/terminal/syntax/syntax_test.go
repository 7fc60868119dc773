package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// render is a command on one line: its words between bars, then what belongs to
// it.
func render(c Command) string {
	var b strings.Builder
	for _, w := range c.Words {
		fmt.Fprintf(&b, "|%s", strings.ReplaceAll(w.Text, Home, "HOME"))
	}
	b.WriteString("|")
	for _, r := range c.Redirects {
		fmt.Fprintf(&b, " %s%s", r.Op, r.Target.Text)
	}
	if c.Input != "" {
		fmt.Fprintf(&b, " <%q", c.Input)
	}
	if c.In != "" {
		fmt.Fprintf(&b, " in %s", c.In)
	}
	if c.Closes {
		b.WriteString(" closes")
	}
	if c.After != "" {
		b.WriteString(" " + c.After)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"nothing", "", nil},
		{"blanks and a comment", " \t\n # rm -rf / \n", nil},
		{"words", "ls -l  /tmp", []string{"|ls|-l|/tmp|"}},
		{"operators", "a;b&&c||d|e|&f&g\nh", []string{"|a| ;", "|b| &&", "|c| ||", "|d| |", "|e| |", "|f| &", "|g| ;", "|h|"}},
		{"comment behind a command", "a # b; c\nd#e", []string{"|a| ;", "|d#e|"}},
		{"single quotes", `echo 'a;b  $c' ''`, []string{"|echo|a;b  $c||"}},
		{"double quotes", `echo "a|b \" \$c \n"`, []string{`|echo|a|b " $c \n|`}},
		{"pieces", `r''m "-r"f \/`, []string{"|rm|-rf|/|"}},
		{"escaped operator", `a \; b\ c`, []string{"|a|;|b c|"}},
		{"continued line", "rm \\\n -r\\\nf /", []string{"|rm|-rf|/|"}},
		{"ansi quotes", `$'\x72m' $'\162\'\n' $'\u00e9'`, []string{"|rm|r'\n|é|"}},
		{"unclosed quote", "a; b 'c; d", []string{"|a| ;", "|b|c; d|"}},
		{"unclosed double quote", `a "b; c`, []string{"|a|b; c|"}},
		{"unclosed substitution", "a $(b; c", []string{"|b| ;", "|c|", "|a|$(...)|"}},
		{"home", `rm ~ ~/ ~/x ~bob $HOME "${HOME}/y" '~' "~" a~ \~`, []string{"|rm|HOME|HOME/|HOME/x|HOME|HOME|HOME/y|~|~|a~|~|"}},
		{"single quotes keep a variable", `rm '$HOME'`, []string{"|rm|$HOME|"}},
		{"field separator", `rm${IFS}-rf$IFS/`, []string{"|rm|-rf|/|"}},
		{"known variable", `X=rm Y='-r -f'; $X $Y "$Y"`, []string{"|rm|-r|-f|-r -f|"}},
		{"exported variable", `export D=/; rm $D`, []string{"|export|D=/| ;", "|rm|/|"}},
		{"unknown variable", `rm $X/a "${Y}" $1 $?`, []string{"|rm|$X/a|$Y|$1|$?|"}},
		{"default value", `rm ${X:-/tmp} ${Y-a} "${Z:=b c}"`, []string{"|rm|/tmp|a|b c|"}},
		{"changed value", `rm ${X%.*} ${#X}`, []string{"|rm|${X%.*}|${#X}|"}},
		{"assignments", `A=1 B="2 3" env`, []string{"|env|"}},
		{"array", `A=(x "y z" $(b)); echo $A`, []string{"|b| ;", "|echo|x|y|z|$(...)|"}},
		{"array of a builtin", `declare -a A=(reboot "x y"); b`, []string{"|declare|-a|A=reboot x y | ;", "|b|"}},
		{"substitution", `echo $(date; ls | wc) "$(pwd)"`, []string{"|date| ;", "|ls| |", "|wc| ;", "|pwd| ;", "|echo|$(...)|$(...)|"}},
		{"substitution that is known", `$(echo rm -rf) $(printf '/')`, []string{"|echo|rm|-rf| ;", "|printf|/| ;", "|rm|-rf|/|"}},
		{"substitutions within each other", `a $(b $(c "$(d)"))`, []string{"|d| ;", "|c|$(...)| ;", "|b|$(...)| ;", "|a|$(...)|"}},
		{"backticks", "a `b \\`c\\`` \"`d`\"", []string{"|c|", "|b|$(...)|", "|d|", "|a|$(...)|$(...)|"}},
		{"arithmetic", `echo $((1 + (2*3))); ((i++)); x=$((y<2))`, []string{"|echo|0| ;"}},
		{"arithmetic with a substitution", `echo $((1 + $(rm x)))`, []string{"|rm|x| ;", "|echo|0|"}},
		{"subshells that look like it", `((a) ; b)`, []string{"|a| ;", "| closes", "|b| ;", "| closes"}},
		{"subshell", `(cd /; ls) && b`, []string{"|cd|/| ;", "|ls| ;", "| closes", "|b|"}},
		{"group", `{ a; b; } > f`, []string{"|a| ;", "|b| ;", "| closes", "| >f"}},
		{"redirects", `a >f 2>>g <h &>i 2>&1 >|j`, []string{"|a| >f >>g &>i >&1 >|j"}},
		{"redirect of an unknown name", `a >"$x" >$(b)`, []string{"|b| ;", "|a| >$x >$(...)"}},
		{"number before a redirect", "echo 2>x 3 >y", []string{"|echo|3| >x >y"}},
		{"process substitution", "diff <(a) <(b|c)", []string{"|a| ;", "|b| |", "|c| ;", "|diff|<(...)|<(...)|"}},
		{"here-document", "cat <<EOF | sh && x\nrm $a\nEOF\ny", []string{`|cat| <"rm $a\n" |`, `|sh| <"rm $a\n" &&`, "|x| ;", "|y|"}},
		{"here-document in quotes", "cat <<'E'\n$(rm a)\nE\n", []string{`|cat| <"$(rm a)\n" ;`}},
		{"here-document with a substitution", "cat <<E\n$(rm a) \\$(b)\nE\n", []string{`|cat| <"$(rm a) \\$(b)\n" ;`, "|rm|a| ;"}},
		{"here-document with tabs", "cat <<-E\n\ta\n\tE\nb", []string{`|cat| <"a\n" ;`, "|b|"}},
		{"two here-documents", "a <<X; b <<Y\n1\nX\n2\nY\nc", []string{`|a| <"1\n" ;`, `|b| <"2\n" ;`, "|c|"}},
		{"here-document and a quote over the line's end", "a <<X 'b\nc'\nd\nX\ne", []string{"|a|b\nc| <\"d\\n\" ;", "|e|"}},
		{"here-document without end", "cat <<E\na\nb", []string{`|cat| <"a\nb\n" ;`}},
		{"here-string", `sh <<< "rm a"`, []string{`|sh| <"rm a"`}},
		{"echo into a pipe", `echo -e 'a\nb' c | sh`, []string{`|echo|-e|a\nb|c| |`, `|sh| <"a\nb c"`}},
		{"if", "if a; then b; elif c; then d; else e; fi", []string{"|a| ;", "|b| ;", "|c| ;", "|d| ;", "|e| ;", "| closes"}},
		{"loop", "for f in / x; do rm $f; done | cat", []string{"|rm|/|x| ;", "| closes", "|cat|"}},
		{"while", "while ! read l; do a; done < f", []string{"|read|l| ;", "|a| ;", "| closes"}},
		{"case", "case $x in a|reboot) b;; (halt) c ;; *) d\nesac; e", []string{"|b| ;", "|c| ;", "|d| ;", "| closes", "|e|"}},
		{"case over lines", "do case x in\n  a) b\n  ;;\n  c)\n  ;;\nesac\ndone", []string{"|b| ;", "| closes", "| closes"}},
		{"test", `[[ -f a && ( reboot < b ) || $c =~ (d|e) ]] && f`, []string{"|[[|-f|a|reboot|b|$c|=~|d|e|]]| &&", "|f|"}},
		{"brackets as an argument", "echo [[ ; a", []string{"|echo|[[| ;", "|a|"}},
		{"function", "f() { a | f & }; g", []string{"|a| in f |", "|f| in f &", "| closes", "|g|"}},
		{"function with a subshell", "f () ( a )", []string{"|a| in f ;", "| closes"}},
		{"function by keyword", "function f { a; }\nf", []string{"|a| in f ;", "| closes", "|f|"}},
		{"odd function", ":(){ :|:& };:", []string{"|:| in : |", "|:| in : &", "| closes", "|:|"}},
		{"timed", "time -p a; time b", []string{"|a| ;", "|b|"}},
		{"braces", "rm -rf /{bin,usr/{lib,share}} {a} {,b}c x{1..3} '{d,e}'", []string{"|rm|-rf|/bin|/usr/lib|/usr/share|{a}|c|bc|x{1..3}|{d,e}|"}},
		{"words by braces", "{rm,-rf,/}", []string{"|rm|-rf|/|"}},
		{"bytes that are no text", "a \xff\xfe", []string{"|a|\xff\xfe|"}},
		{"unicode", "echo ｒｍ é", []string{"|echo|ｒｍ|é|"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Parse(tt.text).Commands {
				got = append(got, render(c))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("commands of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// TestShells tells a directory that a subshell changes from the shell's own.
func TestShells(t *testing.T) {
	tests := []struct {
		text    string
		shells  []int
		parents []int
	}{
		{"a; b", []int{0, 0}, []int{0}},
		{"a; (b; (c); d); e", []int{0, 1, 2, 1, 1, 0, 0}, []int{0, 0, 1}},
		{"{ a; }; b", []int{0, 0, 0}, []int{0}},
		{"a $(b; $(c)) d", []int{1, 2, 1, 0}, []int{0, 0, 1}},
		{"f() (a); b", []int{1, 0, 0}, []int{0, 0}},
		{"a <(b)", []int{1, 0}, []int{0, 0}},
		{"a) b", []int{0, 0}, []int{0}},
	}
	for _, tt := range tests {
		s := Parse(tt.text)
		var got []int
		for _, c := range s.Commands {
			got = append(got, c.Shell)
		}
		if !cmp.Equal(tt.shells, got) || !cmp.Equal(tt.parents, s.Parents) {
			t.Errorf("%s: shells %v of %v, want %v of %v", tt.text, got, s.Parents, tt.shells, tt.parents)
		}
	}
}

func TestPattern(t *testing.T) {
	tests := []struct{ text, want string }{
		{"/*", "/*"},
		{`'/*'`, `/\*`},
		{`"/"*`, `/*`},
		{`\[a]`, `\[a]`},
		{`[a]?`, `[a]?`},
		{`'\'`, `\\`},
	}
	for _, tt := range tests {
		if got := Parse(tt.text).Commands[0].Words[0].Pattern; got != tt.want {
			t.Errorf("pattern of %s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestUnwrap(t *testing.T) {
	tests := []struct{ text, want string }{
		{"rm a", "rm a"},
		{"sudo rm a", "rm a"},
		{"sudo -u root -E -- rm a", "rm a"},
		{"env -i A=1 B=2 rm a", "rm a"},
		{"nohup nice -n 5 ionice -c2 timeout -k 5 10 /bin/rm a", "/bin/rm a"},
		{"timeout 5s bash -c x", "bash -c x"},
		{"xargs -0 -n 1 -I{} rm {}", "rm {}"},
		{"command rm a", "rm a"},
		{"command -v rm", ""},
		{"/usr/bin/env python3 x", "python3 x"},
		{"exec -a b rm", "rm"},
		{"sudo", ""},
		{"timeout 5", ""},
		{"busybox rm a", "rm a"},
		{"", ""},
	}
	for _, tt := range tests {
		var words []Word
		for _, c := range Parse(tt.text).Commands {
			words = c.Words
		}
		if got := joined(Unwrap(words)); got != tt.want {
			t.Errorf("Unwrap(%s): got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestName(t *testing.T) {
	tests := []struct{ word, want string }{
		{"rm", "rm"},
		{"/bin/rm", "rm"},
		{"/usr/sbin/reboot", "reboot"},
		{"/usr/local/bin/rm", "rm"},
		{"./reboot", "./reboot"},
		{"/workspace/bin/reboot", "/workspace/bin/reboot"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := (Word{Text: tt.word}).Name(); got != tt.want {
			t.Errorf("Name of %q: got %q, want %q", tt.word, got, tt.want)
		}
	}
}

// FuzzParse wants an end to every text, bounded by its length, and the same for
// the same text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a; b", `"$(a "b")`, "`a", "case x in a) b;; esac", "a <<E\nb\nE\n", "{a,b}{c,d}", "X=aa;X=$X$X;X=$X$X;echo $X", "((((", "${${${a}}}", "$'\\x", "a>", "<(", "[[ a", ":(){ :|:& };:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := Parse(text)
		size := 0
		for _, c := range s.Commands {
			for _, w := range c.Words {
				size += len(w.Text)
				if strings.Contains(w.Text, "\n") && w.Plain {
					t.Errorf("a plain word with a line's end: %q", w.Text)
				}
			}
		}
		if limit := 2*maxExpand + 64*len(text); size > limit {
			t.Errorf("%d bytes of words from %d", size, len(text))
		}
		if diff := cmp.Diff(s, Parse(text)); diff != "" {
			t.Errorf("not the same again:\n%s", diff)
		}
	})
}
