package dataset

import (
	"math"
	"strings"
	"unicode/utf8"
)

// ValidText is s as valid UTF-8: each run of invalid bytes becomes U+FFFD.
// Parquet readers refuse a text column with anything else in it.
func ValidText(s string) string {
	if utf8.ValidString(s) { // far faster than a look at each rune
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Finite is v, or nil where v is NaN or infinite: such a value is not known.
func Finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}
