//go:build !cgo

package query

import (
	"context"
	"encoding/json"
	"io"

	"github.com/talaria-run/talaria/eval/table"
)

// DB answers SQL over runs. In this build there is none: [Open] fails.
type DB struct{}

// Open returns [ErrNotBuiltIn].
func Open(context.Context, []Input, Options) (*DB, error) { return nil, ErrNotBuiltIn }

// Refresh returns [ErrNotBuiltIn].
func (*DB) Refresh(context.Context, []Input) error { return ErrNotBuiltIn }

// TempDir is nowhere.
func (*DB) TempDir() string { return "" }

// Close does nothing.
func (*DB) Close() error { return nil }

// Result is the rows of a statement.
type Result struct{ Columns []Column }

// Rows yields nothing.
func (*Result) Rows(func([]any, error) bool) {}

// Close does nothing.
func (*Result) Close() error { return nil }

// Query returns [ErrNotBuiltIn].
func (*DB) Query(context.Context, string) (*Result, error) { return nil, ErrNotBuiltIn }

// Print returns [ErrNotBuiltIn].
func (*DB) Print(context.Context, io.Writer, table.Format, string) error { return ErrNotBuiltIn }

func (*DB) jsonRows(context.Context, string, []any, func(json.RawMessage) error) error {
	return ErrNotBuiltIn
}
