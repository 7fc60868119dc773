package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/talaria-run/talaria/dataset"
)

// Where is a condition on rows, in the language of expr-lang.org. Names are
// columns, a nested one by a dotted path. It is read-only.
type Where struct {
	text    string
	program *vm.Program
	names   []string // the columns that it asks for, sorted
	whole   bool     // it asks for $env, all columns
}

// maxWhere bounds a condition, in bytes.
const maxWhere = 16 << 10

// ParseWhere parses a condition. The error says what is wrong and at which
// column of the text.
func ParseWhere(text string) (*Where, error) {
	if len(text) > maxWhere {
		return nil, fmt.Errorf("the condition is longer than %d KiB", maxWhere>>10)
	}
	used := &columnsUsed{}
	// What depends on the time of the run would select other tasks at resume.
	program, err := expr.Compile(text, expr.AllowUndefinedVariables(), expr.DisableBuiltin(now), expr.Patch(used))
	if err != nil {
		return nil, whereError(err, true)
	}
	if len(used.calls) > 0 {
		return nil, fmt.Errorf("there is no function %s", used.calls[0])
	}
	if t := program.Node().Type(); t != nil && t.Kind() != reflect.Bool && t.Kind() != reflect.Interface {
		return nil, fmt.Errorf("the condition is neither true nor false, but %s", t)
	}
	w := &Where{text: text, program: program, whole: slices.Contains(used.names, wholeRow)}
	for _, name := range used.names {
		if name != wholeRow && !slices.Contains(used.own, name) {
			w.names = append(w.names, name)
		}
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	return w, nil
}

// Names that the language knows.
const (
	wholeRow = "$env" // all columns
	now      = "now"  // the function
)

// columnsUsed collects the names of a condition: of columns, of its own
// variables, and of functions that there are not.
type columnsUsed struct{ names, own, calls []string }

// Visit implements [ast.Visitor].
func (c *columnsUsed) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		c.names = append(c.names, n.Value)
		// A column may be called like a function, such as split.
		if _, function := builtin.Index[n.Value]; function && n.Value != now {
			ast.Patch(node, &ast.MemberNode{Node: &ast.IdentifierNode{Value: wholeRow}, Property: &ast.StringNode{Value: n.Value}})
		}
	case *ast.VariableDeclaratorNode:
		c.own = append(c.own, n.Name)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			c.calls = append(c.calls, callee.Value)
		}
	}
}

// whereError is an error of the library on one line.
func whereError(err error, placed bool) error {
	at, ok := errors.AsType[*exprfile.Error](err)
	switch {
	case !ok:
		return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	case placed:
		return fmt.Errorf("%s at character %d", at.Message, at.Column+1)
	}
	return errors.New(at.Message)
}

// holds tells whether the condition is true of a row. columns are the further
// names of its columns, seen is told of the columns that are there.
func (w *Where) holds(row map[string]any, columns map[string]string, seen map[string]bool) (bool, error) {
	env := make(map[string]any, len(w.names))
	if w.whole {
		for name, v := range row {
			env[name] = native(v)
		}
	}
	for _, name := range w.names {
		column := name
		if mapped, ok := columns[name]; ok {
			column = mapped
		}
		if v, ok := dataset.Lookup(row, column); ok {
			env[name], seen[whereKey(name)] = native(v), true
		}
	}
	result, err := expr.Run(w.program, env)
	if err != nil {
		return false, fmt.Errorf("tasks.where: %w; ?? gives null a value, int() and float() make text a number", whereError(err, false))
	}
	holds, ok := result.(bool)
	if !ok {
		return false, fmt.Errorf("tasks.where: the condition is neither true nor false, but %v", result)
	}
	return holds, nil
}

// whereKey tells a name of a condition from a column that is to be kept.
func whereKey(name string) string { return "where\x00" + name }

// native is a value with its numbers as int or float64.
func native(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return int(i)
		}
		f, _ := v.Float64() // as near as it comes
		return f
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = native(e)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, e := range v {
			object[key] = native(e)
		}
		return object
	}
	return v
}
