package openai

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor reads JSON in one pass, strictly, without reflection: decoding a
// reply with encoding/json costs more than the HTTP exchange itself.
//
// The first error sticks and ends every loop; methods called after it return
// zero values.
type cursor struct {
	data  []byte
	pos   int
	depth int
	err   error
}

// maxDepth is how deep values may be nested, as in encoding/json.
const maxDepth = 10000

func (c *cursor) fail(want string) {
	if c.err != nil {
		return
	}
	if c.pos >= len(c.data) {
		c.err = fmt.Errorf("ends after %d bytes where %s is expected", len(c.data), want)
		return
	}
	c.err = fmt.Errorf("%q at byte %d where %s is expected", c.data[c.pos], c.pos, want)
}

// peek is the first byte of the next value or delimiter, 0 at the end and
// after an error.
func (c *cursor) peek() byte {
	if c.err != nil {
		return 0
	}
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; b {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return b
		}
	}
	return 0
}

// take consumes the delimiter b, or fails.
func (c *cursor) take(b byte) {
	if c.peek() != b || b == 0 {
		c.fail(strconv.QuoteRune(rune(b)))
		return
	}
	c.pos++
}

// object calls field for each key; field consumes the value. The key shares
// the input's memory, so that switch string(key) allocates nothing.
func (c *cursor) object(field func(key []byte)) {
	c.list('{', '}', func() {
		key := c.rawString()
		c.take(':')
		if c.err != nil {
			return
		}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(unquote(key))
		}
		field(key)
	})
}

// array calls elem for each element; elem consumes it.
func (c *cursor) array(elem func()) { c.list('[', ']', elem) }

func (c *cursor) list(open, end byte, item func()) {
	c.take(open)
	if c.depth++; c.depth > maxDepth {
		c.fail("less nesting")
	}
	if c.peek() == end {
		c.pos++
		c.depth--
		return
	}
	for c.err == nil {
		item()
		if c.peek() != ',' {
			break
		}
		c.pos++
	}
	c.take(end)
	c.depth--
}

// text reads a string.
func (c *cursor) text() string { return unquote(c.rawString()) }

// rawString consumes a string and returns what stands between its quotes.
func (c *cursor) rawString() []byte {
	c.take('"')
	if c.err != nil {
		return nil
	}
	start := c.pos
	for c.pos += plainBytes(c.data[c.pos:]); c.pos < len(c.data); {
		switch b := c.data[c.pos]; {
		case b == '"':
			c.pos++
			return c.data[start : c.pos-1]
		case b == '\\':
			c.escape()
			c.pos += plainBytes(c.data[c.pos:])
		case b < ' ':
			c.fail("a character of a string")
		default:
			c.pos++
		}
		if c.err != nil {
			return nil
		}
	}
	c.fail(`'"'`)
	return nil
}

func (c *cursor) escape() {
	c.pos++
	if c.pos >= len(c.data) {
		c.fail("an escape")
		return
	}
	switch c.data[c.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.pos++
	case 'u':
		c.pos++
		for range 4 {
			if c.pos >= len(c.data) || !isHex(c.data[c.pos]) {
				c.fail("a hex digit")
				return
			}
			c.pos++
		}
	default:
		c.fail("an escape")
	}
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// unquote resolves the escapes of a string that rawString has checked. What is
// not UTF-8 becomes U+FFFD.
func unquote(raw []byte) string {
	next := bytes.IndexByte(raw, '\\')
	if next < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for next >= 0 {
		out = appendValid(out, raw[:next])
		raw = raw[next:]
		n := 2
		if raw[1] == 'u' {
			var r rune
			r, n = unquoteRune(raw)
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, unescape(raw[1]))
		}
		raw = raw[n:]
		next = bytes.IndexByte(raw, '\\')
	}
	return string(appendValid(out, raw))
}

// appendValid appends text, each byte of it that is not UTF-8 as U+FFFD.
func appendValid(dst, text []byte) []byte {
	if utf8.Valid(text) {
		return append(dst, text...)
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		dst = utf8.AppendRune(dst, r)
		text = text[n:]
	}
	return dst
}

func unescape(b byte) byte {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return b
}

// unquoteRune reads \uXXXX, or two of them where they are a surrogate pair,
// and the bytes that it took.
func unquoteRune(raw []byte) (rune, int) {
	r := hexRune(raw[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if pair := utf16.DecodeRune(r, hexRune(raw[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hexRune(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits), 16, 16) // rawString has checked the digits
	return rune(n)
}

// number reads a number and returns its text.
func (c *cursor) number() []byte {
	if b := c.peek(); b != '-' && (b < '0' || b > '9') {
		c.fail("a number")
		return nil
	}
	start := c.pos
	if c.at('-') {
		c.pos++
	}
	if c.at('0') {
		c.pos++
	} else {
		c.digits()
	}
	if c.at('.') {
		c.pos++
		c.digits()
	}
	if c.at('e') || c.at('E') {
		c.pos++
		if c.at('+') || c.at('-') {
			c.pos++
		}
		c.digits()
	}
	return c.data[start:c.pos]
}

func (c *cursor) at(b byte) bool { return c.pos < len(c.data) && c.data[c.pos] == b }

func (c *cursor) digits() {
	start := c.pos
	for c.pos < len(c.data) && '0' <= c.data[c.pos] && c.data[c.pos] <= '9' {
		c.pos++
	}
	if c.pos == start {
		c.fail("a digit")
	}
}

// skip consumes any value.
func (c *cursor) skip() {
	switch c.peek() {
	case '{':
		c.list('{', '}', func() {
			c.rawString()
			c.take(':')
			c.skip()
		})
	case '[':
		c.list('[', ']', c.skip)
	case '"':
		c.rawString()
	case 't':
		c.literal("true")
	case 'f':
		c.literal("false")
	case 'n':
		c.literal("null")
	default:
		c.number()
	}
}

func (c *cursor) literal(word string) {
	if !bytes.HasPrefix(c.data[c.pos:], []byte(word)) {
		c.fail(word)
		return
	}
	c.pos += len(word)
}

// raw consumes any value and returns its text, which shares the input's memory.
func (c *cursor) raw() []byte {
	c.peek()
	start := c.pos
	c.skip()
	return c.data[start:c.pos]
}

// end fails unless only space is left.
func (c *cursor) end() {
	if c.peek(); c.err == nil && c.pos < len(c.data) {
		c.fail("the end")
	}
}
