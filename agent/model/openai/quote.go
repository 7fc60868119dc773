package openai

import (
	"encoding/binary"
	"unicode/utf8"
)

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plainText(s); i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				i += plainText(s[i:])
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscaped(dst, b)
		i++
		start = i
		i += plainText(s[i:])
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendEscaped appends a byte that may not stand in a JSON string as it is.
func appendEscaped(dst []byte, b byte) []byte {
	const hex = "0123456789abcdef"
	switch {
	case b == '"' || b == '\\':
		return append(dst, '\\', b)
	case b == '\n':
		return append(dst, '\\', 'n')
	case b == '\r':
		return append(dst, '\\', 'r')
	case b == '\t':
		return append(dst, '\\', 't')
	case b < ' ':
		return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xf])
	}
	return append(dst, "\uFFFD"...)
}

// Eight bytes are looked at at once: a byte is found by the borrow that it
// makes when something is subtracted from it.
const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// plainText counts leading bytes of s, in steps of eight, that may stand in a
// JSON string as they are and are ASCII.
func plainText(s string) int {
	n := 0
	for ; n+8 <= len(s); n += 8 {
		w := uint64(s[n]) | uint64(s[n+1])<<8 | uint64(s[n+2])<<16 | uint64(s[n+3])<<24 |
			uint64(s[n+4])<<32 | uint64(s[n+5])<<40 | uint64(s[n+6])<<48 | uint64(s[n+7])<<56
		if (w|special(w))&high != 0 {
			break
		}
	}
	return n
}

// plainBytes is plainText for what a JSON string holds: it passes over bytes
// that are not ASCII.
func plainBytes(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if w := binary.LittleEndian.Uint64(b[n:]); special(w)&^w&high != 0 {
			break
		}
	}
	return n
}

// special has the high bit set in each byte of w that is a quote, a backslash
// or a control character, and perhaps in others above such a byte or above
// 0x7f.
func special(w uint64) uint64 {
	quote, backslash := w^('"'*ones), w^('\\'*ones)
	return (w - ' '*ones) | (quote-ones)&^quote | (backslash-ones)&^backslash
}
