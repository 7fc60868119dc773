package score

import (
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxNumber bounds the digits that are worth comparing.
const maxNumber = 1000

// Currency signs, the percent sign and the backslash that LaTeX puts before
// them are written around numbers and do not change them.
const decoration = `$€£¥₹%\`

var (
	separatedNumber = regexp.MustCompile(`^\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?$`)
	plainNumber     = regexp.MustCompile(`^(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?$|^\d+/0*[1-9]\d*$`)
)

// ParseNumber reads a text that is a number and nothing else, exactly. It
// accepts a sign, thousands separators (commas in places where they make
// sense, and blanks that do not break), a currency or percent sign, a dot or
// comma after it, a decimal exponent of up to three digits, and a fraction of
// two whole numbers. A percent sign does not divide by 100.
func ParseNumber(text string) (*big.Rat, bool) {
	if len(text) > maxNumber {
		return nil, false
	}
	s := plainSigns(strings.TrimSpace(text))
	s = strings.TrimRight(s, decoration+"., ")
	negative, s := sign(s)
	if separatedNumber.MatchString(s) {
		s = strings.ReplaceAll(s, ",", "")
	}
	if !plainNumber.MatchString(s) {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(s)
	if ok && negative {
		r.Neg(r)
	}
	return r, ok
}

// plainSigns replaces a typographic minus and takes out blanks that do not
// break. Making a replacer is dear, and few numbers need one.
func plainSigns(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s
	}
	return strings.NewReplacer("\u2212", "-", "\u00a0", "", "\u2009", "", "\u202f", "").Replace(s)
}

// sign takes one sign and the decoration from the front: -$5 and $-5 are the
// same.
func sign(s string) (negative bool, rest string) {
	s = strings.TrimLeft(s, decoration+" ")
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[0] == '-', strings.TrimLeft(s[1:], decoration+" ")
	}
	return false, s
}
