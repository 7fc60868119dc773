package query

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Select runs a SELECT and scans its rows into structs by their json names.
// A column that T has no field for is an error; question marks in the
// statement stand for args.
func Select[T any](ctx context.Context, db *DB, statement string, args ...any) ([]T, error) {
	var all []T
	err := db.jsonRows(ctx, statement, args, func(row json.RawMessage) error {
		var v T
		dec := json.NewDecoder(strings.NewReader(string(row)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("scanning a row into %T: %w", v, err)
		}
		all = append(all, v)
		return nil
	})
	return all, err
}

// Recorded reads the rows of a recorded table, or of a view that has its
// columns, into T: the row struct of dataset/store, or a struct that embeds it.
// Times come as microseconds. clause follows the FROM; question marks in it
// stand for args.
func Recorded[T any](ctx context.Context, db *DB, relation, clause string, args ...any) ([]T, error) {
	columns := columnsOf(reflect.TypeFor[T]())
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = c.forRow()
	}
	statement := fmt.Sprintf("SELECT %s FROM %s %s", strings.Join(fields, ", "), identifier(relation), clause)
	return Select[T](ctx, db, statement, args...)
}
