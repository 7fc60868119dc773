package score

import (
	"math/big"
	"strings"
	"testing"
)

func TestParseNumber(t *testing.T) {
	const none = ""
	tests := []struct {
		name string
		text string
		want string // as a fraction in lowest terms, none if it is no number
	}{
		{"integer", "18", "18"},
		{"blanks", " 18\n", "18"},
		{"full stop", "18.", "18"},
		{"comma after it", "18,", "18"},
		{"decimal", "18.50", "37/2"},
		{"leading dot", ".5", "1/2"},
		{"leading zeros", "007", "7"},
		{"negative", "-3", "-3"},
		{"plus", "+3", "3"},
		{"minus sign", "\u22123", "-3"},
		{"thousands", "1,234,567", "1234567"},
		{"thousands with decimals", "-1,234.5", "-2469/2"},
		{"Indian groups", "12,34,567", "1234567"},
		{"blanks as separators", "1\u202f234\u00a0567", "1234567"},
		{"currency", "$18", "18"},
		{"currency after it", "18 €", "18"},
		{"negative currency", "-$5", "-5"},
		{"currency before the sign", "$-5", "-5"},
		{"LaTeX currency", `\$1,000`, "1000"},
		{"percent", "50%", "50"},
		{"LaTeX percent", `50\%`, "50"},
		{"exponent", "1.5e3", "1500"},
		{"negative exponent", "5E-1", "1/2"},
		{"greatest exponent", "1e999", "1" + strings.Repeat("0", 999)},
		{"fraction", "3/4", "3/4"},
		{"negative fraction", "-6/8", "-3/4"},
		{"beyond float64", "9007199254740993", "9007199254740993"},
		{"one tenth", "0.1", "1/10"},

		{"nothing", "", none},
		{"words", "eighteen", none},
		{"unit", "18 apples", none},
		{"two numbers", "1 2", none},
		{"decimal comma", "1,5", none},
		{"short group", "1,23", none},
		{"long group", "1,2345", none},
		{"comma first", ",123", none},
		{"two dots", "1.2.3", none},
		{"two signs", "--3", none},
		{"only a sign", "-", none},
		{"only a currency", "$", none},
		{"only a dot", ".", none},
		{"by zero", "1/0", none},
		{"fraction of decimals", "1.5/2", none},
		{"hexadecimal", "0x10", none},
		{"underscore", "1_000", none},
		{"infinite", "inf", none},
		{"not a number", "NaN", none},
		{"exponent bomb", "1e1000", none},
		{"digits bomb", strings.Repeat("9", 1001), none},
		{"other digits", "٣", none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := none
			if r, ok := ParseNumber(tt.text); ok {
				got = r.RatString()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzParseNumber checks that a number is read back from its own digits.
func FuzzParseNumber(f *testing.F) {
	for _, text := range []string{"18.", "-$1,234.50", "3/4", "1e999", "50\\%", "\u22123", "1,23,456", "$-.5e-3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := ParseNumber(text)
		if !ok {
			return
		}
		if !r.IsInt() || len(r.Num().String()) > maxNumber {
			return
		}
		again, ok := ParseNumber(r.Num().String())
		if !ok || again.Cmp(new(big.Rat).Set(r)) != 0 {
			t.Errorf("ParseNumber(%q) = %s, which is read as %v", text, r, again)
		}
	})
}
