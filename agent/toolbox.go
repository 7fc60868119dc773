package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// toolbox is the tools of an episode. It is read-only, and shared by all
// episodes whose env has no tools of its own.
type toolbox struct {
	tools  []env.Tool // sorted by name, so that prompts begin alike
	byName map[string]env.Tool
	specs  []model.ToolSpec
	names  string // for the model
}

func newToolbox(tools []env.Tool) (*toolbox, error) {
	b := &toolbox{tools: slices.Clone(tools), byName: make(map[string]env.Tool, len(tools))}
	slices.SortFunc(b.tools, func(x, y env.Tool) int { return strings.Compare(x.Name, y.Name) })
	names := make([]string, 0, len(tools))
	for _, t := range b.tools {
		if err := b.check(t); err != nil {
			return nil, err
		}
		b.byName[t.Name] = t
		b.specs = append(b.specs, model.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		names = append(names, t.Name)
	}
	b.names = strings.Join(names, ", ")
	return b, nil
}

func (b *toolbox) check(t env.Tool) error {
	switch {
	case t.Name == "":
		return fmt.Errorf("a tool has no name: %q", t.Description)
	case b.byName[t.Name].Name != "":
		return fmt.Errorf("two tools are named %q", t.Name)
	case (t.Call == nil) == (t.Bind == nil):
		return fmt.Errorf("tool %q needs one of Call and Bind", t.Name)
	case !json.Valid(t.Parameters):
		return fmt.Errorf("tool %q: its parameters are not JSON", t.Name)
	}
	return nil
}

// needsSandbox reports whether a tool has to be bound.
func (b *toolbox) needsSandbox() bool {
	return slices.ContainsFunc(b.tools, func(t env.Tool) bool { return t.Bind != nil })
}

// bind is a copy whose tools act in box.
func (b *toolbox) bind(box sandbox.Sandbox) *toolbox {
	bound := *b
	bound.byName = maps.Clone(b.byName)
	for name, t := range bound.byName {
		if t.Bind != nil {
			t.Call = t.Bind(box)
			bound.byName[name] = t
		}
	}
	return &bound
}

// with adds tools to a copy.
func (b *toolbox) with(more []env.Tool) (*toolbox, error) {
	return newToolbox(slices.Concat(b.tools, more))
}

func (b *toolbox) unknown(call dataset.ToolCall) bool {
	_, ok := b.byName[call.Name]
	return !ok
}

// The size of a result, in characters: what is longer keeps its head and tail.
const (
	maxResult  = 100_000
	resultHead = 60_000
	resultTail = 39_900 // the rest is for the note between them
)

// cutResult cuts a tool's result to maxResult characters and tells how many
// bytes of it are missing.
func cutResult(s string) (kept string, missing int64) {
	if len(s) <= maxResult {
		return s, 0
	}
	runes := utf8.RuneCountInString(s)
	if runes <= maxResult {
		return s, 0
	}
	head, tail := runeIndex(s, resultHead), runeIndex(s, runes-resultTail)
	note := fmt.Sprintf("\n[... %d characters left out ...]\n", runes-resultHead-resultTail)
	return s[:head] + note + s[tail:], int64(tail - head)
}

// runeIndex is the byte index of the n-th character.
func runeIndex(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
