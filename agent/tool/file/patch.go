package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/file/edit"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// maxDiff is how much of a diff is shown, in bytes.
const maxDiff = 20_000

type patchParams struct {
	Path string  `json:"path"`
	Old  string  `json:"old_string"`
	New  *string `json:"new_string"`
	All  bool    `json:"replace_all"`
}

const patchSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"The file."},` +
	`"old_string":{"type":"string","description":"The text to replace."},` +
	`"new_string":{"type":"string","description":"What to put in its place; empty to delete it."},` +
	`"replace_all":{"type":"boolean","description":"Replace it wherever it is; default false: it has to be there once."}` +
	`},"required":["path","old_string","new_string"],"additionalProperties":false}`

func (p *patchParams) problem() string {
	switch {
	case p.Old == "":
		return `parameter "old_string" is empty: to write a whole file use write_file`
	case p.New == nil:
		return `parameter "new_string" is missing`
	case p.Old == *p.New:
		return "old_string and new_string are the same"
	}
	return badPath(p.Path)
}

func patch(ctx context.Context, box sandbox.Sandbox, p patchParams) (env.ToolResult, error) {
	file, err := box.ReadFile(ctx, p.Path, 0, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(ctx, box, p.Path, err)
	case err != nil:
		return env.ToolResult{}, err
	case isBinary(file.Data):
		return failed(noText(p.Path, file.Size)), nil
	case file.Size > int64(len(file.Data)):
		return failed(fmt.Sprintf("%s is too large to patch (%d bytes)", p.Path, file.Size)), nil
	}
	text := string(file.Data)
	edits, how, err := edit.Replace(text, p.Old, *p.New, p.All)
	if err != nil {
		return failed(p.notReplaced(err)), nil
	}
	after := edit.Apply(text, edits)
	if after == text {
		return failed("nothing changed: the file has new_string there already"), nil
	}
	if err := box.WriteFile(ctx, p.Path, []byte(after), 0); err != nil {
		return env.ToolResult{}, err
	}
	return p.replaced(how, len(edits), edit.Diff(p.Path, text, edits)), nil
}

// replaced tells what was done.
func (p *patchParams) replaced(how string, n int, diff string) env.ToolResult {
	text := fmt.Sprintf("Replaced the text in %d places of %s.", n, p.Path)
	if n == 1 {
		text = fmt.Sprintf("Replaced the text in %s.", p.Path)
	}
	if how != edit.Exact {
		text += fmt.Sprintf(" It is not exactly as in old_string (found by: %s), see what has changed.", how)
	}
	diff = readable(diff)
	shown := diff
	if len(diff) > maxDiff {
		shown = diff[:strings.LastIndexByte(diff[:maxDiff], '\n')+1]
	}
	result := env.ToolResult{Content: text + "\n" + shown, Omitted: int64(len(diff) - len(shown))}
	if result.Omitted > 0 {
		result.Content += fmt.Sprintf("[... %d bytes of the diff left out]", result.Omitted)
	}
	return result
}

// notReplaced tells what is wrong with the text to replace.
func (p *patchParams) notReplaced(err error) string {
	if _, ok := errors.AsType[*edit.AmbiguousError](err); ok {
		return fmt.Sprintf("Nothing changed: %v. Take in more of the lines around it, or set replace_all.", err)
	}
	text := fmt.Sprintf("Nothing changed: old_string is not in %s.", p.Path)
	if isNumbered(p.Old, true) {
		return text + " It looks like what read_file shows: leave out the numbers and bars before the lines."
	}
	if nearest, ok := errors.AsType[*edit.NotFoundError](err); ok && nearest.Line > 0 {
		text += " What is most like it there:\n"
		var b strings.Builder
		for i, l := range nearest.Similar {
			fmt.Fprintf(&b, "%d|%s\n", nearest.Line+i, readable(l))
		}
		text += b.String()
	}
	return text
}
