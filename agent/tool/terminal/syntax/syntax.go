// Package syntax reads shell text as far as to know which commands it would
// start: [Parse] resolves quotes, escapes, substitutions, here-documents and the
// variables that the text itself sets, and runs nothing.
//
// It is no shell. Text that a shell would refuse is read up to its end all the
// same, and what only a running shell could know stays as it is written.
package syntax

import (
	"cmp"
	"strings"
)

// Home stands in words for the home directory, whose name is not known here.
// Nothing else begins so: a command cannot hold a NUL.
const Home = "/\x00home"

// Script is the commands of a text in the order in which they stand, those of a
// substitution before the command that it is a part of.
type Script struct {
	Commands []Command
	// Parents tell of each shell which one it was made by; of the first, itself.
	Parents []int
}

// Command is one simple command.
type Command struct {
	Words     []Word // the first is the program; assignments are left out
	Redirects []Redirect
	// Input is what the text itself feeds the command: a here-document, or what
	// echo, printf or cat would print into the pipe before it.
	Input string
	After string // the operator behind it: ; & && || | or, at the end, nothing
	In    string // the function in whose body it stands
	// Shell numbers the shells of the text: 0 is its own, subshells and
	// substitutions have others.
	Shell int
	// Closes marks the end of a compound command, such as fi, which may have
	// redirects and is no command itself.
	Closes bool
}

// Word is one word after expansion.
type Word struct {
	Text    string
	Pattern string // the same as a pattern of path.Match: what was quoted is escaped
	Plain   bool   // nothing in it was quoted or expanded
}

// Redirect sends output to a file.
type Redirect struct {
	Op     string
	Target Word
}

// Bounds of what one text can make us do.
const (
	maxDepth      = 40      // substitutions within each other
	maxExpand     = 1 << 20 // bytes that variables and braces add
	maxValue      = 4096    // bytes of a variable that is remembered
	maxFields     = 256     // words that the braces of one word make
	maxArithmetic = 256     // bytes of (( ))
)

// Parse reads a text.
func Parse(text string) Script {
	s := &state{
		script: Script{Parents: []int{0}},
		vars:   map[string]string{"HOME": Home},
		budget: maxExpand,
	}
	(&parser{state: s, text: text}).list(false)
	s.feed()
	return s.script
}

// feed gives commands what the one before their pipe prints.
func (s *state) feed() {
	list := s.script.Commands
	for i := range max(0, len(list)-1) {
		if list[i].After == "|" && list[i+1].Input == "" {
			list[i+1].Input = printed(list[i])
		}
	}
}

// state is what the parsers of a text and of its parts share.
type state struct {
	script Script
	vars   map[string]string
	budget int
}

// parser reads one text, or the part of it that a substitution is.
type parser struct {
	*state

	text  string
	pos   int
	depth int
	shell int

	// The command being read.
	words     []Word
	redirects []Redirect
	input     string

	pending  []heredoc
	groups   []group // open braces and parentheses
	function string  // defined just now; its body comes next
	cases    int     // open case commands
	pattern  bool    // within the patterns of one
	test     bool    // within [[ ]]
}

// group is an open brace or parenthesis.
type group struct {
	function string // whose body it is in
	outer    int    // the shell around it
}

// enter opens a group, in a shell of its own or not.
func (p *parser) enter(subshell bool) {
	p.groups = append(p.groups, group{cmp.Or(p.function, p.inFunction()), p.shell})
	p.function = ""
	if subshell {
		p.shell = p.fork(p.shell)
	}
}

// leave closes a group, if one is open.
func (p *parser) leave() {
	if n := len(p.groups); n > 0 {
		p.shell = p.groups[n-1].outer
		p.groups = p.groups[:n-1]
	}
	p.closes()
}

func (p *parser) closes() {
	p.script.Commands = append(p.script.Commands, Command{Closes: true, In: p.inFunction(), Shell: p.shell})
}

// fork numbers a new shell.
func (s *state) fork(from int) int {
	s.script.Parents = append(s.script.Parents, from)
	return len(s.script.Parents) - 1
}

// list reads commands up to the end, or to the parenthesis that closes the
// substitution that they are.
func (p *parser) list(inside bool) {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			p.pos++
		case strings.HasPrefix(p.text[p.pos:], "\\\n"):
			p.pos += 2
		case c == '\n':
			p.pos++
			p.test = false
			if p.pattern {
				p.words = nil
			}
			p.end(";")
			p.heredocs()
		case c == '#':
			p.comment()
		case c == ')' && p.closing(inside):
			return
		case c == ')':
		case c == '(':
			p.open()
		case c == ';' || c == '&' || c == '|':
			p.operator()
		case p.atRedirect():
			p.redirect()
		default:
			p.word()
		}
	}
	p.end("")
}

func (p *parser) comment() {
	if n := strings.IndexByte(p.text[p.pos:], '\n'); n >= 0 {
		p.pos += n
		return
	}
	p.pos = len(p.text)
}

// closing takes a closing parenthesis and reports whether it ends the
// substitution.
func (p *parser) closing(inside bool) bool {
	p.pos++
	switch {
	case p.test:
		return false
	case p.pattern:
		p.pattern, p.words = false, nil
		return false
	}
	p.end(";")
	if len(p.groups) == 0 {
		return inside
	}
	p.leave()
	return false
}

// open takes an opening parenthesis: of a function, of arithmetic, or of a
// subshell.
func (p *parser) open() {
	rest := p.text[p.pos+1:]
	switch after, isEmpty := strings.CutPrefix(strings.TrimLeft(rest, " \t"), ")"); {
	case p.test || p.pattern:
		p.pos++
	case isEmpty && len(p.words) > 0:
		p.function = p.words[len(p.words)-1].Text
		p.words = nil
		p.pos = len(p.text) - len(after)
	case strings.HasPrefix(rest, "(") && p.arithmetic(p.pos):
	default:
		p.pos++
		p.end(";")
		p.enter(true)
	}
}

// arithmetic goes over (( )) at i, whose parentheses close at once: otherwise
// it is two subshells.
func (p *parser) arithmetic(i int) bool {
	depth := 0
	for j := i; j < min(len(p.text), i+maxArithmetic); j++ {
		switch p.text[j] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 1 && strings.HasPrefix(p.text[j:], "))") && j > i {
			p.substitutions(p.text[i+2 : j])
			p.pos = j + 2
			return true
		}
		if depth == 0 {
			return false
		}
	}
	return false
}

// operator takes what ends a command.
func (p *parser) operator() {
	rest := p.text[p.pos:]
	op := rest[:1]
	for _, long := range []string{";;&", ";;", ";&", "&&", "||", "|&"} {
		if strings.HasPrefix(rest, long) {
			op = long
			break
		}
	}
	if strings.HasPrefix(rest, "&>") && !p.test {
		p.redirect()
		return
	}
	p.pos += len(op)
	switch {
	case p.test, p.pattern:
	case strings.HasPrefix(op, ";") && len(op) > 1:
		p.end(";")
		p.pattern = p.cases > 0
	case op == "|&":
		p.end("|")
	default:
		p.end(op)
	}
}

// end ends the command being read.
func (p *parser) end(op string) {
	words, c := p.words, Command{Redirects: p.redirects, Input: p.input, After: op}
	p.words, p.redirects, p.input = nil, nil, ""
	c.Words = p.keywords(words)
	c.In, c.Shell = p.inFunction(), p.shell
	if len(c.Words) > 0 || len(c.Redirects) > 0 || c.Input != "" {
		p.bindExports(c.Words)
		p.script.Commands = append(p.script.Commands, c)
	}
	p.own()
}

func (p *parser) inFunction() string {
	if len(p.groups) == 0 {
		return ""
	}
	return p.groups[len(p.groups)-1].function
}
