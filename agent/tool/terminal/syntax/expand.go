package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// sub is a parser of a part of the text.
func (p *parser) sub(text string, pos int) *parser {
	return &parser{state: p.state, text: text, pos: pos, depth: p.depth + 1, shell: p.fork(p.shell)}
}

// dollar reads what begins with a dollar sign.
func (p *parser) dollar(b *builder, quoted bool) {
	rest := p.text[p.pos:]
	next := byte(0)
	if len(rest) > 1 {
		next = rest[1]
	}
	switch {
	case strings.HasPrefix(rest, "$((") && p.arithmetic(p.pos+1):
		b.add("0", quoted)
	case next == '(' && p.depth < maxDepth:
		s := p.sub(p.text, p.pos+2)
		p.pos = p.substitute(b, s, quoted)
	case next == '{':
		p.braced(b, quoted)
	case next == '\'' && !quoted:
		p.pos += 2
		b.add(p.ansi(), true)
	case next == '"' && !quoted:
		p.pos += 2
		p.double(b)
	default:
		n := 1
		for n < len(rest) && isName(rest[1:n+1]) {
			n++
		}
		p.pos += n
		p.variable(b, rest[1:n], quoted)
	}
}

// variable adds a variable's value, or its name as it is written where the
// value is not known.
func (p *parser) variable(b *builder, name string, quoted bool) {
	value, known := p.vars[name]
	switch {
	case name == "IFS" && !known:
		b.addValue(" ", quoted)
	case value == Home:
		b.varied = true
		b.add(value, true)
	case known && len(value) <= p.budget:
		p.budget -= len(value)
		b.addValue(value, quoted)
	default:
		b.varied = true
		b.add("$"+name, true)
	}
}

// braced reads ${name} and its kin.
func (p *parser) braced(b *builder, quoted bool) {
	inner, end := p.balanced(p.pos + 2)
	p.pos = end
	n := 0
	for n < len(inner) && isName(inner[:n+1]) {
		n++
	}
	name, rest := inner[:n], inner[n:]
	_, known := p.vars[name]
	fallback, hasFallback := strings.CutPrefix(strings.TrimPrefix(rest, ":"), "-")
	if !hasFallback {
		fallback, hasFallback = strings.CutPrefix(strings.TrimPrefix(rest, ":"), "=")
	}
	switch {
	case rest != "" && strings.ContainsAny(rest, "$`"):
		p.substitutions(rest)
		fallthrough
	case rest != "" && (known || !hasFallback) && name != "IFS" && name != "HOME":
		b.varied = true
		b.add("${"+inner+"}", true)
	case hasFallback && !known && name != "IFS":
		b.addValue(strings.Trim(fallback, `"'`), quoted)
	default:
		p.variable(b, name, quoted)
	}
}

// balanced reads to the brace that closes, and returns where the text goes on.
func (p *parser) balanced(from int) (inner string, end int) {
	depth := 1
	for i := from; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return p.text[from:i], i + 1
			}
		}
	}
	return p.text[from:], len(p.text)
}

// substitute reads the commands of a substitution and adds what they print,
// where that is known. It returns where they end.
func (p *parser) substitute(b *builder, s *parser, quoted bool) int {
	before := len(p.script.Commands)
	s.list(true)
	b.varied = true
	if added := p.script.Commands[before:]; len(added) == 1 {
		if text := strings.TrimRight(printed(added[0]), "\n"); text != "" && len(text) <= p.budget {
			p.budget -= len(text)
			b.addValue(text, quoted)
			return s.pos
		}
	}
	b.add("$(...)", true)
	return s.pos
}

// backtick reads a substitution in its old form.
func (p *parser) backtick(b *builder, quoted bool) {
	var inner strings.Builder
	p.pos++
	for p.pos < len(p.text) && p.text[p.pos] != '`' {
		if c := p.text[p.pos]; c == '\\' && p.pos+1 < len(p.text) && strings.IndexByte("`\\$", p.text[p.pos+1]) >= 0 {
			p.pos++
		}
		inner.WriteByte(p.text[p.pos])
		p.pos++
	}
	p.pos = min(p.pos+1, len(p.text))
	if p.depth < maxDepth {
		p.substitute(b, p.sub(inner.String(), 0), quoted)
	}
}

// substitutions reads the commands that run within a text which is otherwise
// not read: arithmetic, a default value, a here-document.
func (p *parser) substitutions(text string) {
	if p.depth >= maxDepth || !strings.ContainsAny(text, "$`") {
		return
	}
	s, b := p.sub(text, 0), new(builder)
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '\\':
			s.pos = min(s.pos+2, len(s.text))
		case '$':
			s.dollar(b, true)
		case '`':
			s.backtick(b, true)
		default:
			s.pos++
		}
	}
}

// processSubstitution reads <(...) and >(...).
func (p *parser) processSubstitution() {
	if p.depth >= maxDepth {
		p.pos += 2
		return
	}
	s := p.sub(p.text, p.pos+2)
	s.list(true)
	p.pos = s.pos
	p.words = append(p.words, Word{Text: "<(...)", Pattern: "<(...)"})
}

// ansi reads the rest of a text in $'...', with its escapes resolved.
func (p *parser) ansi() string {
	var out strings.Builder
	for p.pos < len(p.text) && p.text[p.pos] != '\'' {
		c := p.text[p.pos]
		p.pos++
		if c != '\\' || p.pos == len(p.text) {
			out.WriteByte(c)
			continue
		}
		p.ansiEscape(&out)
	}
	p.pos = min(p.pos+1, len(p.text))
	return out.String()
}

func (p *parser) ansiEscape(out *strings.Builder) {
	c := p.text[p.pos]
	p.pos++
	simple := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'v': 11}
	switch {
	case simple[c] != 0:
		out.WriteByte(simple[c])
	case c == 'x':
		out.WriteByte(byte(p.digits(16, 2) & 0xff))
	case c == 'u':
		out.WriteRune(p.digits(16, 4))
	case c == 'U':
		out.WriteRune(p.digits(16, 8))
	case '0' <= c && c <= '7':
		p.pos--
		out.WriteByte(byte(p.digits(8, 3) & 0xff))
	default:
		out.WriteByte(c)
	}
}

// digits reads a number of at most n digits; what is too large for a character
// is none.
func (p *parser) digits(base, n int) rune {
	end := p.pos
	for end < len(p.text) && end < p.pos+n {
		if _, err := strconv.ParseInt("0"+p.text[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	v, err := strconv.ParseInt("0"+p.text[p.pos:end], base, 32)
	p.pos = end
	if err != nil {
		return utf8.RuneError
	}
	return rune(v)
}
