// Package table prints rows on a stream: as an aligned table for people, as
// JSON, JSON lines or CSV for programs.
//
// [Write] is the whole of it; [OneLine] and [Safe] make text from a model or a
// tool harmless for a terminal.
package table

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// Format names a way to print rows.
type Format string

// The formats. Parquet is no text: who runs SQL writes it.
const (
	Table   Format = "table"
	JSON    Format = "json"
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// ParseFormat returns the format of that name if it is one of allowed.
func ParseFormat(name string, allowed ...Format) (Format, error) {
	if f := Format(name); slices.Contains(allowed, f) {
		return f, nil
	}
	names := make([]string, len(allowed))
	for i, f := range allowed {
		names[i] = string(f)
	}
	return "", fmt.Errorf("unknown format %q: choose one of %s", name, strings.Join(names, ", "))
}

// Column heads a column. A Number is aligned to the right.
type Column struct {
	Name   string
	Number bool
}

// Rows yields rows, each with a value per column, until the first error. A
// value is nil, a bool, an integer, a float, a string, or a [json.RawMessage]
// for what is JSON already (numbers of any size, lists, structs). A row is
// valid until the next one.
type Rows = iter.Seq2[[]any, error]

// Write prints all rows and returns the first error of rows or w. Nothing is
// printed of a table until its last row is there; the other formats stream.
func Write(w io.Writer, format Format, columns []Column, rows Rows) error {
	out := bufio.NewWriter(w)
	var err error
	switch format {
	case Table:
		err = writeTable(out, columns, rows)
	case JSON:
		err = writeJSON(out, columns, rows)
	case JSONL:
		err = writeJSONL(out, columns, rows)
	case CSV:
		err = writeCSV(out, columns, rows)
	default:
		return fmt.Errorf("rows cannot be printed as %q", format)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// All yields the rows of a slice.
func All(rows [][]any) Rows {
	return func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
