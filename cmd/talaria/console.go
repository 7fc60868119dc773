package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/talaria-run/talaria/eval/table"
)

// console is a terminal, or whatever stderr is, that logs and a live display
// share: what is written appears above the display. The zero display is empty,
// and then console is a plain writer. It is safe for concurrent use.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	shown []string // the display, below which the cursor stands
	width int      // of the terminal, as last told; 0: as wide as it takes
}

// Write writes p, whole lines, above the display.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shown) == 0 {
		return c.w.Write(p)
	}
	var b bytes.Buffer
	c.erase(&b)
	b.Write(p)
	drawLines(&b, c.shown)
	if _, err := c.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printf writes whole lines above the display. A line that nobody can read
// ends nothing, so errors are dropped.
func (c *console) printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

// show puts lines in place of the display on a terminal of so many columns.
func (c *console) show(lines []string, width int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.width = width
	var b bytes.Buffer
	c.erase(&b)
	drawLines(&b, lines)
	c.shown = lines
	_, _ = c.w.Write(b.Bytes()) // as in printf
}

// erase moves the cursor to the display's start and clears all below.
func (c *console) erase(b *bytes.Buffer) {
	if len(c.shown) > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r\x1b[J", c.rows())
	}
}

// rows is how many rows the display takes: a terminal that has become narrower
// has wrapped its lines.
func (c *console) rows() int {
	n := 0
	for _, line := range c.shown {
		n++
		if columns := table.Width(line); c.width > 0 && columns > c.width {
			n += (columns - 1) / c.width
		}
	}
	return n
}

func drawLines(b *bytes.Buffer, lines []string) {
	if len(lines) > 0 {
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
}

// release leaves the display where it is; what is written next goes below it.
func (c *console) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = nil
}
