package answer

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env"
)

func TestSubmit(t *testing.T) {
	tests := []struct {
		name string
		args string
		want env.ToolResult
	}{
		{"answer", `{"answer":" 42 "}`, env.ToolResult{Content: "The answer is submitted.", Done: true, Answer: new(" 42 ")}},
		{"empty answer", `{"answer":""}`, env.ToolResult{Content: "The answer is submitted.", Done: true, Answer: new("")}},
		{"missing", `{}`, env.ToolResult{Content: `parameter "answer" is missing`, IsError: true}},
		{"null", `{"answer":null}`, env.ToolResult{Content: `parameter "answer" is missing`, IsError: true}},
		{"number", `{"answer":42}`, env.ToolResult{Content: `parameter "answer" has to be of type string, not number`, IsError: true}},
		{"surplus", `{"answer":"42","why":"x"}`, env.ToolResult{Content: `unknown field "why"`, IsError: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Tool().Call(t.Context(), json.RawMessage(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemaIsOfTheParams(t *testing.T) {
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if err := json.Unmarshal(Tool().Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	text, err := json.Marshal(params{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if schema.Properties[name] == nil {
			t.Errorf("the schema lacks %q", name)
		}
	}
	if got, want := len(schema.Properties), len(fields); got != want {
		t.Errorf("properties: got %d, want %d", got, want)
	}
}
