package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// Limits of read_file.
const (
	defaultLines = 500
	maxLines     = 2000
	maxLine      = 2000     // characters of a line
	maxText      = 95_000   // characters of a result
	maxScan      = 64 << 20 // bytes of a file
	chunk        = 1 << 20  // bytes read at once
)

type readParams struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}

const readSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"The file."},` +
	`"offset":{"type":"integer","description":"The first line to read, from 1, which is the default."},` +
	`"limit":{"type":"integer","description":"How many lines to read, at most 2000; default 500."}` +
	`},"required":["path"],"additionalProperties":false}`

func (p *readParams) problem() string {
	return cmp.Or(badPath(p.Path), outOf("offset", p.Offset, 1, math.MaxInt32), outOf("limit", p.Limit, 1, maxLines))
}

// read shows lines of a file. It goes through all of it, to count them.
func read(ctx context.Context, box sandbox.Sandbox, p readParams) (env.ToolResult, error) {
	offset := or(p.Offset, 1)
	w := window{first: offset, last: offset + or(p.Limit, defaultLines) - 1, line: 1}
	for file, err := range chunks(ctx, box, p.Path) {
		if errors.Is(err, fs.ErrNotExist) {
			return missing(ctx, box, p.Path, err)
		}
		if err != nil {
			return env.ToolResult{}, err
		}
		if w.scanned == 0 && isBinary(file.Data) {
			return failed(noText(p.Path, file.Size)), nil
		}
		w.take(file.Data)
		if w.unfinished = w.scanned >= maxScan; w.unfinished {
			break
		}
	}
	return w.result(), nil
}

// chunks yields a file piece by piece.
func chunks(ctx context.Context, box sandbox.Sandbox, name string) iter.Seq2[sandbox.File, error] {
	return func(yield func(sandbox.File, error) bool) {
		for offset := int64(0); ; {
			file, err := box.ReadFile(ctx, name, offset, chunk)
			if !yield(file, err) || err != nil || len(file.Data) < chunk {
				return
			}
			offset += chunk
		}
	}
}

// isBinary tells by its beginning whether a file is no text: NUL stands in none,
// and much that is no UTF-8 in few.
func isBinary(data []byte) bool {
	data = data[:min(len(data), 8000)]
	odd := 0
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == 0:
			return true
		case r == utf8.RuneError && size == 1 && utf8.FullRune(rest), r < ' ' && !strings.ContainsRune("\t\n\r\f\b\x1b", r):
			odd++
		}
		rest = rest[size:]
	}
	return 10*odd > 3*len(data)
}

func noText(name string, size int64) string {
	return fmt.Sprintf("%s is no text: a binary file, or in an encoding that is not UTF-8 (%d bytes)", name, size)
}

// outOf says that a number is out of its bounds, "" if it is not.
func outOf(name string, n *int, least, most int) string {
	if n == nil || *n >= least && *n <= most {
		return ""
	}
	return fmt.Sprintf("parameter %q is %d: it has to be from %d to %d", name, *n, least, most)
}

func or(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}
