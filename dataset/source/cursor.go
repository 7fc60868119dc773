package source

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// cursor reads the values of a text that is known to be JSON, which leaves it
// little to check. Each row is read twice, and the tokens of encoding/json take
// several times as long.
type cursor struct {
	text []byte
	pos  int
}

// next is the first byte of the next value or delimiter.
func (c *cursor) next() byte {
	for isSpace(c.text[c.pos]) {
		c.pos++
	}
	return c.text[c.pos]
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func (c *cursor) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the row is nested more than %d levels deep", maxDepth)
	}
	switch c.next() {
	case '{':
		return c.object(depth)
	case '[':
		return c.list(depth)
	case '"':
		return c.str()
	case 't':
		c.pos += len("true")
		return true, nil
	case 'f':
		c.pos += len("false")
		return false, nil
	case 'n':
		c.pos += len("null")
		return nil, nil
	}
	return c.number(), nil
}

func (c *cursor) object(depth int) (any, error) {
	m := map[string]any{}
	for c.pos++; c.next() != '}'; c.comma() {
		name, err := c.str()
		if err != nil {
			return nil, err
		}
		if _, ok := m[name]; ok {
			return nil, fmt.Errorf("the key %q is there twice in one object", name)
		}
		c.next()
		c.pos++ // the colon
		if m[name], err = c.value(depth + 1); err != nil {
			return nil, err
		}
	}
	c.pos++
	return m, nil
}

func (c *cursor) list(depth int) (any, error) {
	l := []any{}
	for c.pos++; c.next() != ']'; c.comma() {
		v, err := c.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	c.pos++
	return l, nil
}

// comma goes over the comma behind a member, if it is not the last.
func (c *cursor) comma() {
	if c.next() == ',' {
		c.pos++
	}
}

// str reads a string; one with escapes is left to encoding/json.
func (c *cursor) str() (string, error) {
	start := c.pos
	end := start + 1 + bytes.IndexByte(c.text[start+1:], '"')
	if bytes.IndexByte(c.text[start:end], '\\') < 0 {
		c.pos = end + 1
		return string(c.text[start+1 : end]), nil
	}
	for c.pos++; c.text[c.pos] != '"'; c.pos++ {
		if c.text[c.pos] == '\\' {
			c.pos++
		}
	}
	c.pos++
	var s string
	if err := json.Unmarshal(c.text[start:c.pos], &s); err != nil {
		return "", fmt.Errorf("not JSON: %w", err)
	}
	return s, nil
}

// number keeps a number as it is written.
func (c *cursor) number() json.Number {
	start := c.pos
	for c.pos < len(c.text) && bytes.IndexByte([]byte("+-.0123456789Ee"), c.text[c.pos]) >= 0 {
		c.pos++
	}
	return json.Number(c.text[start:c.pos])
}
