package query

import (
	"strings"
	"unicode"
)

// Split cuts SQL into its statements at semicolons outside of strings, quoted
// names, dollar quotes and comments. Statements come without their semicolon;
// what holds only blanks and comments is none. rest is what follows the last
// semicolon: an interactive prompt goes on reading while it is not empty.
func Split(sql string) (statements []string, rest string) {
	start, blank := 0, true
	for i := 0; i < len(sql); {
		n, counts := token(sql[i:])
		if sql[i] == ';' {
			if !blank {
				statements = append(statements, strings.TrimSpace(sql[start:i]))
			}
			start, blank, counts = i+1, true, false
		}
		blank = blank && !counts
		i += n
	}
	if blank {
		return statements, ""
	}
	return statements, strings.TrimSpace(sql[start:])
}

// token is the length of the token that s begins with, and whether it is more
// than a blank or a comment. What is not closed goes on to the end of s.
func token(s string) (n int, counts bool) {
	switch {
	case unicode.IsSpace(rune(s[0])):
		return 1, false
	case strings.HasPrefix(s, "--"):
		return upTo(s, 2, "\n"), false
	case strings.HasPrefix(s, "/*"):
		return upTo(s, 2, "*/"), false
	case s[0] == '\'', s[0] == '"':
		return upTo(s, 1, s[:1]), true
	case s[0] == '$':
		return dollarQuote(s), true
	case isWord(s[0]):
		return word(s), true
	default:
		return 1, true
	}
}

// upTo is the length of s up to and with the first mark at or after from.
func upTo(s string, from int, mark string) int {
	if i := strings.Index(s[from:], mark); i >= 0 {
		return from + i + len(mark)
	}
	return len(s)
}

// dollarQuote is the length of $tag$...$tag$, or 1 for a lone dollar.
func dollarQuote(s string) int {
	n := 1
	for n < len(s) && isWord(s[n]) {
		n++
	}
	if n == len(s) || s[n] != '$' {
		return 1
	}
	return upTo(s, n+1, s[:n+1])
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// word is the length of a name or number, or of a string e'...' in which a
// backslash escapes a quote.
func word(s string) int {
	n := 1
	for n < len(s) && isWord(s[n]) {
		n++
	}
	if !strings.EqualFold(s[:n], "e") || n == len(s) || s[n] != '\'' {
		return n
	}
	for n++; n < len(s); n++ {
		switch s[n] {
		case '\\':
			n++
		case '\'':
			return n + 1
		}
	}
	return len(s)
}

// OneLine is SQL on one line: comments go, and blanks outside of strings and
// quoted names become one.
func OneLine(sql string) string {
	var b strings.Builder
	blank := false
	for len(sql) > 0 {
		n, counts := token(sql)
		if counts && blank && b.Len() > 0 {
			b.WriteByte(' ')
		}
		blank = !counts
		if counts {
			b.WriteString(sql[:n])
		}
		sql = sql[n:]
	}
	return b.String()
}
