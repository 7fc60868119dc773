// Package calculator is the tool with which a model computes: exact arithmetic
// over rational numbers, bounded so that no expression can exhaust the machine.
package calculator

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/args"
	"github.com/talaria-run/talaria/env"
)

// Name is the tool's name.
const Name = "calculator"

//go:embed calculator.md
var description string

// params and its schema.
type params struct {
	Expression string `json:"expression"`
}

const schema = `{"type":"object","properties":{"expression":{"type":"string","description":"What to compute, such as (3 + 4.5) * 2^3"}},"required":["expression"],"additionalProperties":false}`

// Tool returns the calculator.
func Tool() env.Tool {
	return env.Tool{
		Name:        Name,
		Description: strings.TrimSpace(description),
		Parameters:  json.RawMessage(schema),
		Call:        calculate,
	}
}

func calculate(_ context.Context, arguments json.RawMessage) (env.ToolResult, error) {
	var p params
	if err := args.Decode(arguments, &p); err != nil {
		return env.ToolResult{Content: err.Error(), IsError: true}, nil //nolint:nilerr // what the model did wrong is text for it
	}
	result, err := Eval(p.Expression)
	if err != nil {
		return env.ToolResult{Content: err.Error(), IsError: true}, nil //nolint:nilerr // likewise
	}
	return env.ToolResult{Content: result}, nil
}
