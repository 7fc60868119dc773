package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	tests := []struct {
		name  string
		in    string
		width int
		want  []string
	}{
		{"fits", "a b", 3, []string{"a b"}},
		{"breaks at a blank", "aaa bbb ccc", 7, []string{"aaa bbb", "ccc"}},
		{"breaks before a word that does not fit", "aaa bbbb", 7, []string{"aaa", "bbbb"}},
		{"a word that is too long", "abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"line ends stay", "a\n\nb\n", 5, []string{"a", "", "b", ""}},
		{"indentation stays", "    if x then y", 9, []string{"    if x", "then y"}},
		{"tabs", "\tx", 9, []string{"    x"}},
		{"wide characters", "日本語日本", 4, []string{"日本", "語日", "本"}},
		{"too narrow for a wide character", "日本", 1, []string{"日", "本"}},
		{"empty", "", 4, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Wrap(tt.in, tt.width)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("the quick brown fox\n  jumps", 7)
	f.Add("日本語 a\u0301 👩‍🚀", 2)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if len(s) > 1000 {
			return
		}
		s = Safe(s)
		width = max(width%100, 1)
		got := strings.Join(Wrap(s, width), "")
		keep := strings.NewReplacer(" ", "", "\n", "", "\t", "")
		if diff := cmp.Diff(keep.Replace(s), keep.Replace(got)); diff != "" {
			t.Errorf("Wrap lost text (-want +got):\n%s", diff)
		}
	})
}
