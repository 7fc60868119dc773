package source

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type numbered struct {
	Number int
	Text   string
}

func readLines(r io.Reader) ([]numbered, error) {
	l := &lines{r: bufio.NewReaderSize(r, 16)}
	var all []numbered
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("line %d: %w", l.number, err)
		}
		all = append(all, numbered{l.number, string(line)})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct {
		name, text string
		want       []numbered
	}{
		{"nothing", "", nil},
		{"blank", "\n\r\n \t\n  ", nil},
		{"no end of line", "a\nb", []numbered{{1, "a"}, {2, "b"}}},
		{"carriage returns", "a\r\n\r\nb\r\n", []numbered{{1, "a"}, {3, "b"}}},
		{"byte order mark", "\xef\xbb\xbfa\n\xef\xbb\xbfb\n", []numbered{{1, "a"}, {2, "\xef\xbb\xbfb"}}},
		{"longer than the buffer", long + "\n" + long + "y", []numbered{{1, long}, {2, long + "y"}}},
		{"as long as the buffer", long[:15] + "\n" + long[:16] + "\nz\n", []numbered{{1, long[:15]}, {2, long[:16]}, {3, "z"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := readLines(strings.NewReader(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines differ (-want +got):\n%s", diff)
			}
		})
	}
}

// endless is a line without end, of n bytes.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	for i := range p[:n] {
		p[i] = ' '
	}
	e.n -= n
	return n, nil
}

func TestLongLine(t *testing.T) {
	text := io.MultiReader(strings.NewReader(`{"a":1}`+"\n{"), &endless{maxLine}, strings.NewReader("}\n"+`{"b":1}`+"\n"))
	l := &lines{r: bufio.NewReader(text)}
	if line, err := l.next(); err != nil || string(line) != `{"a":1}` {
		t.Fatalf("first line %q, %v", line, err)
	}
	if _, err := l.next(); !errors.Is(err, errLongLine) || l.number != 2 {
		t.Fatalf("line %d: %v, want errLongLine in line 2", l.number, err)
	}
	if line, err := l.next(); err != nil || string(line) != `{"b":1}` || l.number != 3 {
		t.Fatalf("line %d: %q, %v", l.number, line, err)
	}
	if _, err := l.next(); !errors.Is(err, io.EOF) {
		t.Fatalf("error = %v, want io.EOF", err)
	}
}

func TestBrokenReader(t *testing.T) {
	broken := errors.New("broken")
	for text, want := range map[string]string{"a\nb": "line 2: broken", "a\n": "line 2: broken", "": "line 1: broken"} {
		_, err := readLines(io.MultiReader(strings.NewReader(text), &failing{broken}))
		if err == nil || err.Error() != want {
			t.Errorf("after %q: error = %v, want %s", text, err, want)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }
