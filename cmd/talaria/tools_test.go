package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/agent/tool"
	"github.com/talaria-run/talaria/eval/table"
)

func TestTools(t *testing.T) {
	for _, format := range []table.Format{table.Table, table.JSON} {
		var out strings.Builder
		if err := runTools(t.Context(), toolsOptions{Format: format}, &stdio{out: &out}); err != nil {
			t.Fatal(err)
		}
		golden(t, "tools."+string(format), out.String())
	}
}

// TestToolsAsJSON wants the whole of what models read.
func TestToolsAsJSON(t *testing.T) {
	out, _ := mustExit(t, 0, "tools", "--format", "json")
	var listed []struct {
		Tool, Toolset, Description string
		Schema                     json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &listed); err != nil {
		t.Fatal(err)
	}
	builtin := tool.Builtin()
	if len(listed) != len(builtin.Tools) {
		t.Errorf("%d tools, want %d", len(listed), len(builtin.Tools))
	}
	for _, l := range listed {
		known := builtin.Tools[l.Tool]
		if l.Description != known.Description || string(l.Schema) != string(known.Parameters) {
			t.Errorf("%s: %+v", l.Tool, l)
		}
		if _, ok := builtin.Sets[l.Toolset]; !ok {
			t.Errorf("%s: there is no toolset %q", l.Tool, l.Toolset)
		}
	}
}
