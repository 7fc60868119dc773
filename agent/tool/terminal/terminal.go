// Package terminal is the tool with which a model runs commands in the env's
// sandbox.
package terminal

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-run/talaria/agent/tool/args"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// Name is the tool's name.
const Name = "terminal"

// BlockedHardline is who refused a command that is never run, whatever the
// config says: see [env.ToolResult].
const BlockedHardline = "hardline"

const (
	// MaxTimeout is the longest that a model may let a command run, in seconds.
	MaxTimeout = 600
	// maxCommand is how long a command may be, in bytes: what is longer is the
	// content of a file.
	maxCommand = 128 << 10
	// maxOutput is how much of the output is kept, in bytes: two fifths of it
	// from the beginning.
	maxOutput = 50_000
)

//go:embed terminal.md
var description string

// params and its schema.
type params struct {
	Command string `json:"command"`
	Timeout *int   `json:"timeout"`
	Workdir string `json:"workdir"`
}

const schema = `{"type":"object","properties":{` +
	`"command":{"type":"string","description":"What the shell is to run."},` +
	`"timeout":{"type":"integer","description":"Seconds after which the command is stopped, at most 600."},` +
	`"workdir":{"type":"string","description":"The directory to change to before the command, if it is not the current one."}` +
	`},"required":["command"],"additionalProperties":false}`

// Tool returns the terminal. A command that exits with another code than 0 is no
// error of the tool: many do so to tell something. An error is what did not run
// to its end: a call with unusable arguments, a command that was refused, one
// that ran out of time.
func Tool() env.Tool {
	return env.Tool{
		Name:        Name,
		Description: strings.TrimSpace(description),
		Parameters:  json.RawMessage(schema),
		Bind: func(box sandbox.Sandbox) env.ToolCall {
			return func(ctx context.Context, arguments json.RawMessage) (env.ToolResult, error) {
				return run(ctx, box, arguments)
			}
		},
	}
}

func run(ctx context.Context, box sandbox.Sandbox, arguments json.RawMessage) (env.ToolResult, error) {
	var p params
	if err := args.Decode(arguments, &p); err != nil {
		return env.ToolResult{Content: err.Error(), IsError: true}, nil //nolint:nilerr // what the model did wrong is text for it
	}
	if problem := p.problem(); problem != "" {
		return env.ToolResult{Content: problem, IsError: true}, nil
	}
	if why := refusal(p.Command, p.Workdir); why != "" {
		return refused(why), nil
	}
	cmd := sandbox.Command{Script: p.Command, Cwd: p.Workdir, MaxOutput: maxOutput}
	if p.Timeout != nil {
		cmd.Timeout = time.Duration(*p.Timeout) * time.Second
	}
	result, err := box.Exec(ctx, cmd)
	if err != nil {
		return env.ToolResult{}, fmt.Errorf("tool %s: %w", Name, err)
	}
	return report(p.Command, result), nil
}

// problem says what is wrong with the arguments, "" if nothing is.
func (p *params) problem() string {
	switch {
	case strings.TrimSpace(p.Command) == "":
		return `parameter "command" is missing`
	case len(p.Command) > maxCommand:
		return fmt.Sprintf("the command has %d bytes, at most %d are allowed: write long content to a file first", len(p.Command), maxCommand)
	case strings.Contains(p.Command, "\x00") || strings.Contains(p.Workdir, "\x00"):
		return "a command cannot hold a NUL character"
	case p.Timeout != nil && (*p.Timeout < 1 || *p.Timeout > MaxTimeout):
		return fmt.Sprintf(`parameter "timeout" is %d: it has to be from 1 to %d seconds`, *p.Timeout, MaxTimeout)
	}
	return ""
}

func refused(why string) env.ToolResult {
	return env.ToolResult{
		Content: "Refused: " + why + ". This is never run. If it is not what you meant, write the command so that it names only what it is for.",
		IsError: true, BlockedBy: BlockedHardline,
	}
}
