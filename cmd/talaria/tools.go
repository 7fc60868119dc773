package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/agent/tool"
	"github.com/talaria-run/talaria/eval/table"
)

type toolsOptions struct{ Format table.Format }

func newToolsCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "tools",
		Usage:     "Lists the tools that a config can give to an agent, with their toolsets and parameters.",
		UsageText: "talaria tools",
		Description: "A config names toolsets under agent.toolsets. With --format json each tool comes with the\n" +
			"description and the schema that models read.",
		Flags: []cli.Flag{choiceFlag("format", "print as `FORMAT`", "table", "json")},
		Action: func(c *cli.Context) error {
			return runTools(c.Context, toolsOptions{Format: table.Format(c.String("format"))}, std)
		},
	}
}

func runTools(_ context.Context, opts toolsOptions, std *stdio) error {
	builtin := tool.Builtin()
	columns := []table.Column{{Name: "tool"}, {Name: "toolset"}, {Name: "parameters"}, {Name: "description"}}
	if opts.Format == table.JSON {
		columns[2].Name = "schema"
	}
	var rows [][]any
	for _, name := range slices.Sorted(maps.Keys(builtin.Tools)) {
		t := builtin.Tools[name]
		row := []any{t.Name, strings.Join(builtin.SetsOf(t.Name), ", "), any(t.Parameters), t.Description}
		if opts.Format != table.JSON {
			names, err := parameterNames(t.Parameters)
			if err != nil {
				return fmt.Errorf("reading the schema of %s: %w", t.Name, err)
			}
			row[2] = names
			row[3], _, _ = strings.Cut(t.Description, ". ")
		}
		rows = append(rows, row)
	}
	return table.Write(std.out, opts.Format, columns, table.All(rows))
}

// parameterNames lists the parameters of a schema, those that can be left out in
// brackets and behind the others.
func parameterNames(schema json.RawMessage) (string, error) {
	var s struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return "", err
	}
	names := s.Required
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) {
			names = append(names, "["+name+"]")
		}
	}
	return strings.Join(names, " "), nil
}
