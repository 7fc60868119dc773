package syntax

import (
	"slices"
	"strings"
)

// cell is one byte of a word.
type cell struct {
	c      byte
	quoted bool
}

// builder collects the fields that a word of the text expands to.
type builder struct {
	done   [][]cell
	cur    []cell
	any    bool // cur is a field, even if it is empty
	varied bool // something was quoted or expanded
	first  bool // it may be an assignment
	whole  bool // blanks in variables do not split it
	inner  bool // it is a value of an array, and no array itself
}

func (b *builder) add(s string, quoted bool) {
	b.any = true
	b.varied = b.varied || quoted
	for i := range len(s) {
		b.cur = append(b.cur, cell{s[i], quoted})
	}
}

// split ends a field.
func (b *builder) split() {
	if b.any {
		b.done = append(b.done, b.cur)
	}
	b.cur, b.any = nil, false
}

// addValue adds what a variable or a substitution stands for.
func (b *builder) addValue(s string, quoted bool) {
	b.varied = true
	if quoted || b.whole || b.first && b.sign() > 0 {
		b.add(s, quoted)
		return
	}
	for i := range len(s) {
		if c := s[i]; c == ' ' || c == '\t' || c == '\n' {
			b.split()
			continue
		}
		b.add(s[i:i+1], false)
	}
}

// maxName is how long the name of a variable may be.
const maxName = 256

// sign is where the sign of name=value is, where it and the name are not quoted;
// -1 if this is none.
func (b *builder) sign() int {
	if len(b.done) > 0 {
		return -1
	}
	for i, at := range b.cur[:min(len(b.cur), maxName)] {
		switch {
		case at.quoted:
			return -1
		case at.c == '=' && isName(strings.TrimSuffix(text(b.cur[:i]), "+")):
			return i
		case at.c == '=':
			return -1
		}
	}
	return -1
}

// assignment is the name and the value of an assignment, if it is one.
func (b *builder) assignment() (name, value string, ok bool) {
	i := b.sign()
	if i < 0 {
		return "", "", false
	}
	return strings.TrimSuffix(text(b.cur[:i]), "+"), text(tilde(b.cur[i+1:])), true
}

func text(cells []cell) string {
	out := make([]byte, len(cells))
	for i, at := range cells {
		out[i] = at.c
	}
	return string(out)
}

// tilde expands the home directory at the beginning.
func tilde(cells []cell) []cell {
	if len(cells) == 0 || cells[0] != (cell{'~', false}) {
		return cells
	}
	end := 1
	for end < len(cells) && cells[end].c != '/' {
		if c := cells[end]; c.quoted || !isName("_"+string(c.c)) && c.c != '-' && c.c != '.' {
			return cells
		}
		end++
	}
	home := make([]cell, 0, len(Home)+len(cells)-end)
	for i := range len(Home) {
		home = append(home, cell{Home[i], true})
	}
	return append(home, cells[end:]...)
}

// word makes a Word of a field.
func word(cells []cell, plain bool) Word {
	cells = tilde(cells)
	w := Word{Text: text(cells), Plain: plain}
	var pattern strings.Builder
	for _, at := range cells {
		if at.quoted && strings.IndexByte(`*?[\`, at.c) >= 0 {
			pattern.WriteByte('\\')
		}
		pattern.WriteByte(at.c)
	}
	w.Pattern = pattern.String()
	return w
}

// word reads a word of a command, or an assignment before it.
func (p *parser) word() {
	start := p.pos
	b := p.build(&builder{first: p.mayAssign()})
	if b.first {
		if name, value, ok := b.assignment(); ok {
			p.bind(name, value)
			return
		}
	}
	fields := p.expand(b)
	if len(fields) == 1 && fields[0].Plain {
		p.note(fields[0].Text)
	}
	if p.pattern && p.isEsac(fields) {
		p.pattern = false
		p.words = nil
	}
	p.words = append(p.words, fields...)
	if p.pos == start { // nothing that could be a word
		p.pos++
	}
}

// note follows the states that plain words open and close.
func (p *parser) note(word string) {
	switch {
	case word == "[[" && p.atCommand():
		p.test = true
	case word == "]]":
		p.test = false
	case word == "in" && p.takeCase():
		p.cases++
		p.pattern = true
	}
}

// takeCase tells whether the words are "case WORD", and if so ends what stands
// before them.
func (p *parser) takeCase() bool {
	i := slices.IndexFunc(p.words, func(w Word) bool { return !isKeyword(w) })
	if i < 0 || !p.words[i].Plain || p.words[i].Text != "case" || len(p.words) < i+2 {
		return false
	}
	p.words = p.words[:i]
	p.end(";")
	return true
}

func (p *parser) isEsac(fields []Word) bool {
	return len(fields) == 1 && fields[0].Plain && fields[0].Text == "esac" && len(p.words) == 0
}

// atCommand tells whether the next word is a program.
func (p *parser) atCommand() bool {
	for _, w := range p.words {
		if !isKeyword(w) {
			return false
		}
	}
	return true
}

func (p *parser) mayAssign() bool { return p.atCommand() && !p.test && !p.pattern }

func (p *parser) expand(b *builder) []Word {
	b.split()
	words := make([]Word, 0, len(b.done))
	for _, field := range b.done {
		plain := !b.varied
		expanded := p.braces(field)
		for _, cells := range expanded {
			words = append(words, word(cells, plain && len(expanded) == 1))
		}
	}
	return words
}

// build reads a word up to what ends it.
func (p *parser) build(b *builder) *builder {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; c {
		case ' ', '\t', '\r', '\n', ';', '&', '|', ')', '<', '>':
			return b
		case '(':
			if b.inner || len(b.cur) == 0 || b.sign() != len(b.cur)-1 {
				return b
			}
			p.array(b)
		case '\\':
			p.backslash(b)
		case '\'':
			p.pos++
			b.add(p.until('\''), true)
		case '"':
			p.pos++
			p.double(b)
		case '$':
			p.dollar(b, false)
		case '`':
			p.backtick(b, false)
		default:
			p.pos++
			b.add(p.text[p.pos-1:p.pos], false)
		}
	}
	return b
}

func (p *parser) backslash(b *builder) {
	p.pos++
	if p.pos == len(p.text) {
		return
	}
	if c := p.text[p.pos]; c != '\n' {
		b.add(p.text[p.pos:p.pos+1], true)
	}
	p.pos++
}

// until reads to a byte, which is gone over, or to the end.
func (p *parser) until(end byte) string {
	rest := p.text[p.pos:]
	n := strings.IndexByte(rest, end)
	if n < 0 {
		p.pos = len(p.text)
		return rest
	}
	p.pos += n + 1
	return rest[:n]
}

// array reads the values of an array, which become one text.
func (p *parser) array(b *builder) {
	p.pos++
	for p.pos < len(p.text) && p.text[p.pos] != ')' {
		start := p.pos
		for _, w := range p.expand(p.build(&builder{inner: true})) {
			b.add(w.Text+" ", true)
		}
		if p.pos == start {
			p.pos++
		}
	}
	p.pos = min(p.pos+1, len(p.text))
}

// double reads the rest of a double-quoted text.
func (p *parser) double(b *builder) {
	b.add("", true)
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return
		case c == '\\' && p.pos+1 < len(p.text) && strings.IndexByte("$`\"\\\n", p.text[p.pos+1]) >= 0:
			p.backslash(b)
		case c == '$':
			p.dollar(b, true)
		case c == '`':
			p.backtick(b, true)
		default:
			p.pos++
			b.add(p.text[p.pos-1:p.pos], true)
		}
	}
}

// braces expands {a,b} in a field.
func (p *parser) braces(field []cell) [][]cell {
	done, todo := [][]cell(nil), [][]cell{field}
	for len(todo) > 0 {
		cells := todo[0]
		todo = todo[1:]
		p.budget -= len(cells) * opening(cells)
		var more [][]cell
		if p.budget > 0 {
			more = alternatives(cells)
		}
		if len(more) == 0 || len(done)+len(todo)+len(more) > maxFields {
			done = append(done, cells)
			continue
		}
		todo = append(more, todo...)
	}
	return done
}

// opening counts the braces that open.
func opening(cells []cell) int {
	n := 0
	for _, at := range cells {
		if at == (cell{'{', false}) {
			n++
		}
	}
	return n
}

// alternatives expands the first braces of a field that have a comma.
func alternatives(cells []cell) [][]cell {
	for open, at := range cells {
		if at != (cell{'{', false}) {
			continue
		}
		if cuts := commas(cells, open); len(cuts) > 2 {
			out := make([][]cell, 0, len(cuts)-1)
			end := cuts[len(cuts)-1]
			for i := range len(cuts) - 1 {
				out = append(out, slices.Concat(cells[:open], cells[cuts[i]+1:cuts[i+1]], cells[end+1:]))
			}
			return out
		}
	}
	return nil
}

// commas are the places of an opening brace, of its own commas and of what
// closes it; nil if nothing does.
func commas(cells []cell, open int) []int {
	cuts := []int{open}
	depth := 0
	for i := open; i < len(cells); i++ {
		switch cells[i] {
		case cell{'{', false}:
			depth++
		case cell{'}', false}:
			if depth--; depth == 0 {
				return append(cuts, i)
			}
		case cell{',', false}:
			if depth == 1 {
				cuts = append(cuts, i)
			}
		}
	}
	return nil
}
