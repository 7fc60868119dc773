package score

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Extractor finds an answer in a text. The zero Extractor takes the whole
// text.
type Extractor struct {
	spec string
	find func(text string) (string, bool)
	re   *regexp.Regexp // of a /regex/
}

// ParseExtractor reads how an answer is to be found:
//
//	""             the whole text
//	####           what follows the last ####, to the end of its line
//	boxed          what the last \boxed{...} holds
//	last_number    the last number
//	letter         the choice that is made: a letter from A to Z
//	/regex/        group 1 of the first match, or the match if it has no group
func ParseExtractor(spec string) (Extractor, error) {
	switch spec {
	case "":
		return Extractor{}, nil
	case "####":
		return Extractor{spec: spec, find: afterHashes}, nil
	case "boxed":
		return Extractor{spec: spec, find: boxed}, nil
	case "last_number":
		return Extractor{spec: spec, find: lastNumber}, nil
	case "letter":
		return Extractor{spec: spec, find: letter}, nil
	}
	inner, ok := strings.CutPrefix(spec, "/")
	inner, closed := strings.CutSuffix(inner, "/")
	if !ok || !closed || inner == "" {
		return Extractor{}, fmt.Errorf("unknown extractor %q (known: ####, boxed, last_number, letter, or a /regex/)", spec)
	}
	re, err := regexp.Compile(inner)
	if err != nil {
		return Extractor{}, err
	}
	return Extractor{spec: spec, find: firstMatch(re), re: re}, nil
}

// Find returns the answer in text without blanks around it. It finds nothing
// where that is empty.
func (e Extractor) Find(text string) (answer string, found bool) {
	if e.find != nil {
		if text, found = e.find(text); !found {
			return "", false
		}
	}
	answer = strings.TrimSpace(text)
	return answer, answer != ""
}

func (e Extractor) String() string {
	if e.spec == "" {
		return "the whole text"
	}
	return e.spec
}

func firstMatch(re *regexp.Regexp) func(string) (string, bool) {
	group := min(1, re.NumSubexp())
	return func(text string) (string, bool) {
		m := re.FindStringSubmatchIndex(text)
		if m == nil || m[2*group] < 0 {
			return "", false
		}
		return text[m[2*group]:m[2*group+1]], true
	}
}

const hashes = "####"

// afterHashes takes the line, because models go on talking in the next one.
func afterHashes(text string) (string, bool) {
	i := strings.LastIndex(text, hashes)
	if i < 0 {
		return "", false
	}
	line, _, _ := strings.Cut(strings.TrimLeft(text[i+len(hashes):], " \t\r\n"), "\n")
	return line, true
}

var boxStart = regexp.MustCompile(`\\boxed\s*\{`)

// boxed finds nothing where the last box is not closed: the text was cut off.
func boxed(text string) (string, bool) {
	starts := boxStart.FindAllStringIndex(text, -1)
	if starts == nil {
		return "", false
	}
	text = text[starts[len(starts)-1][1]:]
	depth := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\': // an escaped brace is text
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[:i], true
			}
		}
	}
	return "", false
}

var numberInText = regexp.MustCompile(`(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}\b)?`)

// lastNumber looks only at the last stretch of what numbers are made of: no
// number reaches beyond it, and the expression takes its time over long text.
func lastNumber(text string) (string, bool) {
	end := strings.LastIndexAny(text, "0123456789") + 1
	if end == 0 {
		return "", false
	}
	start := len(strings.TrimRight(text[:end], "0123456789,.eE+-"))
	all := numberInText.FindAllStringIndex(text[start:min(end+1, len(text))], -1) // one byte on, for what \b looks at
	last := all[len(all)-1]
	return text[signStart(text, start+last[0]) : start+last[1]], true
}

// signStart is where the number that begins at start really begins: before its
// sign, if that is none of a subtraction or a date.
func signStart(text string, start int) int {
	before := strings.TrimRight(text[:start], `$€£¥₹\`)
	r, size := utf8.DecodeLastRuneInString(before)
	if r != '-' && r != '+' && r != '\u2212' {
		return start
	}
	before = before[:len(before)-size]
	if r, _ := utf8.DecodeLastRuneInString(before); unicode.IsLetter(r) || unicode.IsDigit(r) || r == ')' {
		return start
	}
	return len(before)
}

var (
	stated     = regexp.MustCompile(`(?i:\banswer)(?i:\s+is)?(?i:\s+(?:option|choice))?[\s:=]*(?:\\boxed)?[(\[{*"'\s]*([A-Z])\b`)
	standalone = regexp.MustCompile(`\b[A-Z]\b`)
)

// letter takes a text that is only a letter, else the letter that is last
// called the answer, else the last letter that stands alone and is no word.
func letter(text string) (string, bool) {
	if only := strings.Trim(text, "()[]{}*.:,\"' \t\r\n"); len(only) == 1 && isLetter(only[0]) {
		return strings.ToUpper(only), true
	}
	if all := stated.FindAllStringSubmatch(text, -1); all != nil {
		return all[len(all)-1][1], true
	}
	all := standalone.FindAllStringIndex(text, -1)
	for _, at := range slices.Backward(all) {
		if start, end := at[0], at[1]; !isWord(text[start], text[end:]) {
			return text[start:end], true
		}
	}
	return "", false
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// isWord tells whether a capital is the article, the pronoun or a part of a
// word, by what follows it.
func isWord(c byte, rest string) bool {
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "'") || strings.HasPrefix(rest, "’") {
		return true
	}
	lower := len(rest) > 1 && rest[0] == ' ' && 'a' <= rest[1] && rest[1] <= 'z'
	return (c == 'A' || c == 'I') && lower && !strings.HasPrefix(rest, " is ")
}
