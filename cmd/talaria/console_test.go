package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// screen is what a terminal shows after out: it obeys the few codes that the
// console writes.
func screen(t *testing.T, out string) []string {
	t.Helper()
	lines := []string{""}
	at := 0
	for len(out) > 0 {
		var up int
		switch {
		case strings.HasPrefix(out, "\n"):
			at++
			if at == len(lines) {
				lines = append(lines, "")
			}
			out = out[1:]
		case strings.HasPrefix(out, "\x1b["):
			if _, err := fmt.Sscanf(out, "\x1b[%dA", &up); err != nil {
				t.Fatalf("unknown code in %q", out)
			}
			out = strings.TrimPrefix(out, fmt.Sprintf("\x1b[%dA\r\x1b[J", up))
			at -= up
			lines = append(lines[:at], "")
		default:
			lines[at] += out[:1]
			out = out[1:]
		}
	}
	return lines[:len(lines)-1] // the last one is where the cursor stands
}

func TestConsole(t *testing.T) {
	var out strings.Builder
	c := &console{w: &out}
	steps := []struct {
		name string
		do   func()
		want []string
	}{
		{"plain writer", func() { c.printf("first log\n") }, []string{"first log"}},
		{"display", func() { c.show([]string{"1 done", "2 tokens"}, 80) }, []string{"first log", "1 done", "2 tokens"}},
		{"log above", func() { c.printf("second log\n") }, []string{"first log", "second log", "1 done", "2 tokens"}},
		{"redrawn, shorter", func() { c.show([]string{"3 done"}, 80) }, []string{"first log", "second log", "3 done"}},
		{"released", func() { c.release(); c.printf("result\n") }, []string{"first log", "second log", "3 done", "result"}},
	}
	for _, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, screen(t, out.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// A terminal that has become narrower has wrapped the lines of the display: all
// of their rows are erased.
func TestConsoleOnNarrowerTerminal(t *testing.T) {
	var out strings.Builder
	c := &console{w: &out}
	c.show([]string{"\x1b[32m0123456789\x1b[0m", "01234", ""}, 80)
	out.Reset()
	c.show([]string{"x"}, 5)
	if want := "\x1b[4A\r\x1b[Jx\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
