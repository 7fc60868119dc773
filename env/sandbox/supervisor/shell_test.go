package supervisor

import (
	"bytes"
	"testing"
)

func TestParseState(t *testing.T) {
	for _, c := range []struct {
		name, left, text, dir string
		ok                    bool
	}{
		{"whole", "export A='1'\n\x00/work\x00", "export A='1'\n", "/work", true},
		{"no variables", "\x00/\x00", "", "/", true},
		{"odd directory", "\x00/a\nb c\x00", "", "/a\nb c", true},
		{"empty", "", "", "", false},
		{"cut off in the variables", "export A='1", "", "", false},
		{"cut off before the directory", "export A='1'\n\x00", "", "", false},
		{"cut off in the directory", "export A='1'\n\x00/wo", "", "", false},
		{"relative directory", "\x00work\x00", "", "", false},
		{"too much", "\x00/work\x00/more\x00", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, dir, ok := parseState([]byte(c.left))
			if string(text) != c.text || dir != c.dir || ok != c.ok {
				t.Errorf("got %q, %q, %v; want %q, %q, %v", text, dir, ok, c.text, c.dir, c.ok)
			}
		})
	}
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte("export A='1'\n\x00/work\x00"))
	f.Add([]byte("\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, left []byte) {
		text, dir, ok := parseState(left)
		if !ok {
			return
		}
		whole := append(append(bytes.Clone(text), 0), dir...)
		if !bytes.Equal(append(whole, 0), left) {
			t.Errorf("%q and %q do not make %q", text, dir, left)
		}
	})
}

func TestIsVariable(t *testing.T) {
	for name, want := range map[string]bool{
		"A": true, "_": true, "a_1": true, "Zz9": true, "": false, "1A": false, "A-B": false, "A.B": false, "BASH_FUNC_f%%": false, "é": false, "A B": false, "@": false, "[": false,
	} {
		if got := isVariable(name); got != want {
			t.Errorf("isVariable(%q) is %v", name, got)
		}
	}
}
