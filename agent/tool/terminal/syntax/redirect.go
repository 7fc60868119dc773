package syntax

import "strings"

// heredoc is a here-document whose text comes after the line.
type heredoc struct {
	end    string
	tabs   bool // are stripped
	quoted bool // nothing in it is expanded
	owner  int  // index of its command, once that is read
}

// noOwner is the owner of a here-document until its command has ended.
const noOwner = -1

// atRedirect tells whether a redirect comes next, perhaps with the number of a
// file before it.
func (p *parser) atRedirect() bool {
	if p.test {
		return false
	}
	rest := strings.TrimLeft(p.text[p.pos:], "0123456789")
	return strings.HasPrefix(rest, "<") || strings.HasPrefix(rest, ">")
}

// redirect takes a redirect with its target.
func (p *parser) redirect() {
	for '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	rest := p.text[p.pos:]
	if strings.HasPrefix(rest, "<(") || strings.HasPrefix(rest, ">(") {
		p.processSubstitution()
		return
	}
	op := rest[:1]
	for _, long := range []string{"<<<", "<<-", "&>>", "<<", "<>", "<&", ">>", ">|", ">&", "&>"} {
		if strings.HasPrefix(rest, long) {
			op = long
			break
		}
	}
	p.pos += len(op)
	target, ok := p.target()
	switch {
	case !ok:
	case op == "<<<":
		p.input = target.Text
	case op == "<<" || op == "<<-":
		p.pending = append(p.pending, heredoc{end: target.Text, tabs: op == "<<-", quoted: !target.Plain, owner: noOwner})
	case strings.Contains(op, ">"):
		p.redirects = append(p.redirects, Redirect{Op: op, Target: target})
	}
}

// target reads the word after a redirect.
func (p *parser) target() (Word, bool) {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t') {
		p.pos++
	}
	fields := p.expand(p.build(&builder{whole: true}))
	if len(fields) == 0 {
		return Word{}, false
	}
	return fields[0], true
}

// own makes the last command the owner of the here-documents that have none.
func (p *parser) own() {
	for i := range p.pending {
		if p.pending[i].owner == noOwner {
			p.pending[i].owner = len(p.script.Commands) - 1
		}
	}
}

// heredocs reads the documents that the line before has announced.
func (p *parser) heredocs() {
	pending := p.pending
	p.pending = nil
	for _, h := range pending {
		text := p.document(h)
		if !h.quoted {
			p.substitutions(text)
		}
		if h.owner >= 0 {
			p.script.Commands[h.owner].Input = text
		}
	}
}

// document reads one here-document, at most to the end of the text.
func (p *parser) document(h heredoc) string {
	var text strings.Builder
	for p.pos < len(p.text) {
		line, rest, _ := strings.Cut(p.text[p.pos:], "\n")
		p.pos = len(p.text) - len(rest)
		if h.tabs {
			line = strings.TrimLeft(line, "\t")
		}
		if line == h.end {
			break
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}
