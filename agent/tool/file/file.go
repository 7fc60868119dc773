// Package file has the tools with which a model works on files in the env's
// sandbox: read_file, write_file, patch and search_files. What they say of a file
// depends on the file alone, never on earlier calls.
package file

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/talaria-run/talaria/agent/tool/args"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// Names of the tools.
const (
	ReadName   = "read_file"
	WriteName  = "write_file"
	PatchName  = "patch"
	SearchName = "search_files"
)

//go:embed read_file.md
var readDescription string

//go:embed write_file.md
var writeDescription string

//go:embed patch.md
var patchDescription string

//go:embed search_files.md
var searchDescription string

// Tools returns the tools of this package. A result is an error where the tool
// did not do what it was asked for; that a search finds nothing is none.
func Tools() []env.Tool {
	return []env.Tool{
		define(ReadName, readDescription, readSchema, read),
		define(WriteName, writeDescription, writeSchema, write),
		define(PatchName, patchDescription, patchSchema, patch),
		define(SearchName, searchDescription, searchSchema, search),
	}
}

// checked are parameters that can be wrong though they have the right types.
type checked[T any] interface {
	*T
	// problem says what is wrong, "" if nothing is.
	problem() string
}

// define makes a tool of a function of its parameters. What do returns as an
// error is text for the model if a file operation found it, and a failure of the
// sandbox otherwise.
func define[T any, P checked[T]](name, description, schema string, do func(context.Context, sandbox.Sandbox, T) (env.ToolResult, error)) env.Tool {
	bind := func(box sandbox.Sandbox) env.ToolCall {
		return func(ctx context.Context, arguments json.RawMessage) (env.ToolResult, error) {
			var p T
			if err := args.Decode(arguments, &p); err != nil {
				return failed(err.Error()), nil
			}
			if problem := P(&p).problem(); problem != "" {
				return failed(problem), nil
			}
			result, err := do(ctx, box, p)
			if found, ok := errors.AsType[*fs.PathError](err); ok {
				return failed(explain(found)), nil
			}
			if err != nil {
				return env.ToolResult{}, fmt.Errorf("tool %s: %w", name, err)
			}
			return result, nil
		}
	}
	return env.Tool{Name: name, Description: strings.TrimSpace(description), Parameters: json.RawMessage(schema), Bind: bind}
}

func failed(text string) env.ToolResult { return env.ToolResult{Content: text, IsError: true} }

// explain is what the model reads of a failed file operation.
func explain(e *fs.PathError) string {
	text := fmt.Sprintf("%s: %v", e.Path, e.Err)
	if errors.Is(e.Err, syscall.EISDIR) {
		text += "; search_files lists the files below it"
	}
	return readable(text)
}

// readable makes text of what a sandbox gives, with U+FFFD for what is not UTF-8
// and for NUL, which many a parser takes for an end.
func readable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// badPath says what is wrong with a path, "" if nothing is.
func badPath(path string) string {
	switch {
	case path == "":
		return `parameter "path" is missing`
	case strings.Contains(path, "\x00"):
		return `parameter "path" holds a NUL character`
	}
	return ""
}
