package scripted

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// call is a reply that calls a tool with text in its string parameters.
func call(req *model.Request, tool *model.ToolSpec, text string) dataset.Message {
	return dataset.Message{
		FinishReason: model.FinishToolCalls,
		ToolCalls: []dataset.ToolCall{{
			ID: "call_" + strconv.Itoa(turn(req)), Name: tool.Name, Arguments: arguments(tool.Parameters, text),
		}},
	}
}

// parameters is what is read of a tool's JSON schema.
type parameters struct {
	Properties map[string]struct {
		Type any   `json:"type"` // a name or a list of names
		Enum []any `json:"enum"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// arguments fills the required parameters, or the first one where none is
// required: strings with text, others with something of their type. A schema
// that cannot be read gets no arguments.
func arguments(schema json.RawMessage, text string) string {
	var p parameters
	if json.Unmarshal(schema, &p) != nil {
		return "{}"
	}
	names := p.Required
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(p.Properties))
		names = names[:min(len(names), 1)]
	}
	filled := make(map[string]any, len(names))
	for _, name := range names {
		filled[name] = value(p.Properties[name].Type, p.Properties[name].Enum, text)
	}
	out, err := json.Marshal(filled)
	if err != nil {
		return "{}" // an enum value that came from JSON goes back to it: never
	}
	return string(out)
}

func value(kind any, enum []any, text string) any {
	if len(enum) > 0 {
		return enum[0]
	}
	if kinds, ok := kind.([]any); ok && len(kinds) > 0 {
		kind = kinds[0]
	}
	switch kind {
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	case "null":
		return nil
	}
	return text
}
