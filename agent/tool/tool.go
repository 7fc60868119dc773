// Package tool knows the built-in tools and the toolsets that group them.
// [Resolve] turns the names of toolsets, as a config gives them, into tools.
//
// Each tool is a package below this one; agent/tool/args reads the arguments
// of calls.
package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/tool/answer"
	"github.com/talaria-run/talaria/agent/tool/calculator"
	"github.com/talaria-run/talaria/agent/tool/file"
	"github.com/talaria-run/talaria/agent/tool/terminal"
	"github.com/talaria-run/talaria/env"
)

// Set is a named group of tools, with everything of the sets that it includes.
type Set struct {
	Description string
	Tools       []string
	Includes    []string
}

// Registry holds tools and toolsets by name.
type Registry struct {
	Tools map[string]env.Tool
	Sets  map[string]Set
}

// Builtin returns a registry of the tools of this module.
func Builtin() Registry {
	r := Registry{
		Tools: map[string]env.Tool{},
		Sets: map[string]Set{
			"answer":   {Description: "Submit the final answer.", Tools: []string{answer.Name}},
			"math":     {Description: "Compute exactly.", Tools: []string{calculator.Name}},
			"terminal": {Description: "Run commands in the task's sandbox.", Tools: []string{terminal.Name}},
			"file": {
				Description: "Read, write, change and search files in the task's sandbox.",
				Tools:       []string{file.ReadName, file.WriteName, file.PatchName, file.SearchName},
			},
		},
	}
	for _, t := range append(file.Tools(), answer.Tool(), calculator.Tool(), terminal.Tool()) {
		r.Tools[t.Name] = t
	}
	return r
}

// Resolve resolves toolsets of [Builtin].
func Resolve(toolsets []string) ([]env.Tool, error) { return Builtin().Resolve(toolsets) }

// Resolve returns the union of the tools of the sets and of all that they
// include, sorted by name, so that prompts begin alike. Sets may include each
// other in a circle. An unknown name is an error that names the known ones.
func (r Registry) Resolve(toolsets []string) ([]env.Tool, error) {
	u := union{registry: r, visited: map[string]bool{}, tools: map[string]env.Tool{}}
	for _, name := range toolsets {
		if err := u.add(name); err != nil {
			return nil, err
		}
	}
	tools := make([]env.Tool, 0, len(u.tools))
	for _, name := range slices.Sorted(maps.Keys(u.tools)) {
		tools = append(tools, u.tools[name])
	}
	return tools, nil
}

// SetsOf names the sets that have a tool themselves, not by including others;
// sorted.
func (r Registry) SetsOf(tool string) []string {
	var sets []string
	for _, name := range slices.Sorted(maps.Keys(r.Sets)) {
		if slices.Contains(r.Sets[name].Tools, tool) {
			sets = append(sets, name)
		}
	}
	return sets
}

// union collects the tools of sets.
type union struct {
	registry Registry
	visited  map[string]bool
	tools    map[string]env.Tool
}

func (u *union) add(name string) error {
	if u.visited[name] {
		return nil
	}
	u.visited[name] = true
	set, ok := u.registry.Sets[name]
	if !ok {
		return fmt.Errorf("unknown toolset %q (known: %s)", name, names(u.registry.Sets))
	}
	for _, t := range set.Tools {
		tool, ok := u.registry.Tools[t]
		if !ok {
			return fmt.Errorf("toolset %q: unknown tool %q (known: %s)", name, t, names(u.registry.Tools))
		}
		u.tools[t] = tool
	}
	for _, include := range set.Includes {
		if err := u.add(include); err != nil {
			return fmt.Errorf("toolset %q: %w", name, err)
		}
	}
	return nil
}

func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
