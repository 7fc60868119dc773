// Package answer is the tool with which a model ends an episode: submit_answer.
package answer

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/args"
	"github.com/talaria-run/talaria/env"
)

// Name is the tool's name.
const Name = "submit_answer"

//go:embed submit_answer.md
var description string

// params and its schema.
type params struct {
	Answer *string `json:"answer"`
}

const schema = `{"type":"object","properties":{"answer":{"type":"string","description":"The final answer."}},"required":["answer"],"additionalProperties":false}`

// Tool returns submit_answer: a call ends the episode with its answer.
func Tool() env.Tool {
	return env.Tool{
		Name:        Name,
		Description: strings.TrimSpace(description),
		Parameters:  json.RawMessage(schema),
		Call:        submit,
	}
}

func submit(_ context.Context, arguments json.RawMessage) (env.ToolResult, error) {
	var p params
	if err := args.Decode(arguments, &p); err != nil {
		return env.ToolResult{Content: err.Error(), IsError: true}, nil //nolint:nilerr // what the model did wrong is text for it
	}
	if p.Answer == nil {
		return env.ToolResult{Content: `parameter "answer" is missing`, IsError: true}, nil
	}
	return env.ToolResult{Content: "The answer is submitted.", Done: true, Answer: p.Answer}, nil
}
