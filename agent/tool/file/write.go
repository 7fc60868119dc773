package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

type writeParams struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

const writeSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"The file."},` +
	`"content":{"type":"string","description":"All that is to be in it."}` +
	`},"required":["path","content"],"additionalProperties":false}`

func (p *writeParams) problem() string {
	if p.Content == nil {
		return `parameter "content" is missing`
	}
	return badPath(p.Path)
}

func write(ctx context.Context, box sandbox.Sandbox, p writeParams) (env.ToolResult, error) {
	const look = 4096
	before, err := box.ReadFile(ctx, p.Path, 0, look)
	isThere := err == nil
	if _, found := errors.AsType[*fs.PathError](err); !isThere && !found {
		return env.ToolResult{}, err
	}
	if isNumbered(*p.Content, isThere && !startsNumbered(string(before.Data))) {
		return failed("the content looks like what read_file shows: leave out the numbers and bars before the lines. If they are meant, write the file with another tool"), nil
	}
	if err := box.WriteFile(ctx, p.Path, []byte(*p.Content), 0); err != nil {
		return env.ToolResult{}, err
	}
	text := fmt.Sprintf("Wrote %d bytes to %s, a new file.", len(*p.Content), p.Path)
	if isThere {
		text = fmt.Sprintf("Wrote %d bytes to %s, in place of %d.", len(*p.Content), p.Path, before.Size)
	}
	return env.ToolResult{Content: text}, nil
}

// isNumbered tells whether a text is lines as read_file shows them: each with its
// number, from one on to the next, and a bar. Tables of data look like this
// too. Over a text without numbers, it is taken for what was read of that; else
// only if it has what tables do not: lines that are empty or indented, or the
// note at the end.
func isNumbered(text string, overText bool) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	sure := overText
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "[lines ") && strings.HasSuffix(last, "]") {
		sure = true
		lines = lines[:len(lines)-1]
	}
	if len(lines) < 2 {
		return false
	}
	first := 0
	for i, l := range lines {
		number, rest, ok := strings.Cut(l, "|")
		n, err := strconv.Atoi(number)
		if i == 0 {
			first = n
		}
		if !ok || err != nil || n != first+i {
			return false
		}
		sure = sure || strings.TrimLeft(rest, " \t") != rest || rest == ""
	}
	return sure
}

// startsNumbered tells whether the first line of a text has a number and a bar.
func startsNumbered(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	number, _, ok := strings.Cut(line, "|")
	_, err := strconv.Atoi(number)
	return ok && err == nil
}
