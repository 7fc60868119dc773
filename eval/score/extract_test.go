package score

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExtract(t *testing.T) {
	const none = "\x00" // nothing is found
	tests := []struct {
		name string
		spec string
		text string
		want string
	}{
		{"whole", "", "  a b\n", "a b"},
		{"whole of nothing", "", " \n", none},

		{"hashes", "####", "2+2=4\n#### 4", "4"},
		{"last hashes", "####", "#### 3\nno:\n#### 4", "4"},
		{"hashes and talk", "####", "#### 4 apples\nI hope this helps!", "4 apples"},
		{"hashes, answer below", "####", "####\n 4\r\nbye", "4"},
		{"hashes at the end", "####", "so ####", none},
		{"no hashes", "####", "4", none},
		{"more hashes", "####", "##### 4", "4"},

		{"box", "boxed", `so \boxed{42}.`, "42"},
		{"last box", "boxed", `\boxed{1} or \boxed{2}`, "2"},
		{"nested box", "boxed", `$\boxed{\frac{1}{2}}$`, `\frac{1}{2}`},
		{"box in a box", "boxed", `\boxed{\boxed{7}}`, "7"},
		{"escaped braces", "boxed", `\boxed{\{1, 2\}}`, `\{1, 2\}`},
		{"lone escaped brace", "boxed", `\boxed{\left\{1\right.}`, `\left\{1\right.`},
		{"box with a blank", "boxed", `\boxed {5}`, "5"},
		{"box cut off", "boxed", `\boxed{1} then \boxed{\frac{1}{2}`, none},
		{"empty box", "boxed", `\boxed{}`, none},
		{"no box", "boxed", "42", none},

		{"number", "last_number", "there are 3 cats and 12 dogs.", "12"},
		{"decimal", "last_number", "about 3.75%", "3.75"},
		{"sentence end", "last_number", "It is 18.", "18"},
		{"thousands", "last_number", "costs $1,234,567.89 now", "1,234,567.89"},
		{"list", "last_number", "1,2,3", "3"},
		{"negative", "last_number", "the result is -7", "-7"},
		{"negative money", "last_number", "lost -$7", "-$7"},
		{"minus sign", "last_number", "is \u22127", "\u22127"},
		{"subtraction", "last_number", "10-3", "3"},
		{"date", "last_number", "on 2024-01-05", "05"},
		{"after a bracket", "last_number", "(10)-3", "3"},
		{"range of a word", "last_number", "COVID-19", "19"},
		{"exponent", "last_number", "6.02e23", "6.02e23"},
		{"leading dot", "last_number", "p = .05", ".05"},
		{"no number", "last_number", "none", none},

		{"only a letter", "letter", " (b). ", "B"},
		{"bold letter", "letter", "**C**", "C"},
		{"stated", "letter", "A is wrong. The answer is (B).", "B"},
		{"stated last", "letter", "Answer: A. No, wait. Answer: D", "D"},
		{"stated in a box", "letter", `the answer is \boxed{C}`, "C"},
		{"stated option", "letter", "The answer is option D because X is not it", "D"},
		{"standalone", "letter", "I choose B", "B"},
		{"article", "letter", "Choose C. A train is late.", "C"},
		{"pronoun", "letter", "D, I think", "D"},
		{"contraction", "letter", "D. I'm sure", "D"},
		{"subject", "letter", "Option A is right", "A"},
		{"prefix of a word", "letter", "E or X-rays", "E"},
		{"no letter", "letter", "None of them", none},
		{"within words", "letter", "ABC and iPhone", none},

		{"group", `/A: *(-?[\d,.]+)/`, "A: 1,234", "1,234"},
		{"first match", `/A: *(-?[\d,.]+)/`, "A: 1\nA: 2", "1"},
		{"no group", `/\d+/`, "a 12 b 3", "12"},
		{"group not to count", `/(?:x|y)\d/`, "y7", "y7"},
		{"group that is absent", `/a(b)?/`, "a", none},
		{"first of two groups", `/(\d)(\d)/`, "12", "1"},
		{"slashes within", `/(\d+/\d+)/`, "3/4", "3/4"},
		{"no match", `/A: *(-?[\d,.]+)/`, "B: 1", none},
		{"blank match", `/:( *)/`, ":  ", none},
		{"flags", `/(?i)answer: (\w+)/`, "ANSWER: yes", "yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := ParseExtractor(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			got, found := e.Find(tt.text)
			if !found {
				got = none
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseExtractorRefuses(t *testing.T) {
	tests := []struct {
		name string
		spec string
		want string // substring
	}{
		{"unknown", "last_word", `unknown extractor "last_word"`},
		{"open regex", "/a", "unknown extractor"},
		{"only a slash", "/", "unknown extractor"},
		{"empty regex", "//", "unknown extractor"},
		{"broken regex", "/(a/", "missing closing )"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseExtractor(tt.spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// FuzzExtract checks that what is found stands in the text, trimmed.
func FuzzExtract(f *testing.F) {
	for _, text := range []string{"#### 4", `\boxed{\frac{1}{2}}`, `\boxed{\`, "-$1,234.5", "the answer is (b)", "A: 1", "\xff-\xe2\x88\x927", "1e9 ####\n\n"} {
		f.Add(text)
	}
	specs := []string{"", "####", "boxed", "last_number", "letter", `/A: *(-?[\d,.]+)/`, `/(x)?y/`}
	extractors := make([]Extractor, len(specs))
	for i, spec := range specs {
		e, err := ParseExtractor(spec)
		if err != nil {
			f.Fatal(err)
		}
		extractors[i] = e
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range extractors {
			got, found := e.Find(text)
			switch {
			case found == (got == ""):
				t.Errorf("%s finds %q, %v in %q", e, got, found, text)
			case got != strings.TrimSpace(got):
				t.Errorf("%s finds blanks around %q in %q", e, got, text)
			case !strings.Contains(text, got) && !strings.Contains(text, strings.ToLower(got)):
				t.Errorf("%s finds %q, which is not in %q", e, got, text)
			case utf8.ValidString(text) && !utf8.ValidString(got):
				t.Errorf("%s cuts a character of %q: %q", e, text, got)
			}
		}
	})
}

// FuzzLastNumber checks that looking at the end of a text finds what looking
// at all of it finds.
func FuzzLastNumber(f *testing.F) {
	for _, seed := range []string{
		"", "none", "3 cats, 12 dogs.", "1,234,567.89x", "1,2345", "1234,567", "6.02e23 or 1e5000", "e5e6e7", "12e3é", "..5.", "7 — ", "+1-2,3.4e-5_", "1,234e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want string
		if all := numberInText.FindAllStringIndex(text, -1); all != nil {
			last := all[len(all)-1]
			want = text[signStart(text, last[0]):last[1]]
		}
		got, found := lastNumber(text)
		if got != want || found != (want != "") {
			t.Errorf("in %q: got %q, %v, want %q", text, got, found, want)
		}
	})
}
