package query

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/talaria-run/talaria/dataset/store"
)

// The schema is written once, in the row structs of dataset/store: the views
// take names and types from their tags, so that a table has its columns
// whether or not a run has rows of it.

// column is one column of a table, in DuckDB's types.
type column struct {
	name    string
	typ     string // as the views show it
	journal string // as the journal's JSON holds it
	list    bool   // a list that is never null
}

// relation is one recorded table.
type relation struct {
	name    string
	columns []column
}

const (
	timestamp = "TIMESTAMPTZ"
	blob      = "BLOB"
)

// relations are the recorded tables, in the order of [store.Rows].
func relations() []relation {
	rows := reflect.TypeFor[store.Rows]()
	all := make([]relation, rows.NumField())
	for i := range all {
		f := rows.Field(i)
		all[i] = relation{name: firstOf(f.Tag.Get("json")), columns: columnsOf(f.Type.Elem())}
	}
	return all
}

// columnsOf reads a row struct, or one that embeds it. Fields without a Parquet
// column are left out.
func columnsOf(row reflect.Type) []column {
	columns := make([]column, 0, row.NumField())
	for f := range row.Fields() {
		if f.Anonymous {
			columns = append(columns, columnsOf(f.Type)...)
			continue
		}
		tag := f.Tag.Get("parquet")
		name := firstOf(tag)
		if name == "-" || name == "" {
			continue
		}
		c := column{name: name, typ: typeOf(f.Type)}
		c.journal = c.typ
		switch {
		case strings.Contains(tag, "timestamp("):
			c.typ = timestamp // microseconds in the journal
		case c.typ == blob:
			c.journal = "VARCHAR" // base64 in the journal
		case f.Type.Kind() == reflect.Slice:
			c.list = !strings.Contains(tag, "optional")
		}
		columns = append(columns, c)
	}
	return columns
}

func firstOf(tag string) string {
	name, _, _ := strings.Cut(tag, ",")
	return name
}

// typeOf is the DuckDB type of a field.
func typeOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.String:
		return "VARCHAR"
	case reflect.Bool:
		return "BOOLEAN"
	case reflect.Int32:
		return "INTEGER"
	case reflect.Int64:
		return "BIGINT"
	case reflect.Float32:
		return "FLOAT"
	case reflect.Float64:
		return "DOUBLE"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return blob
		}
		return typeOf(t.Elem()) + "[]"
	case reflect.Struct:
		return structOf(columnsOf(t))
	default:
		panic("query: a row has a field of type " + t.String())
	}
}

func structOf(columns []column) string {
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = identifier(c.name) + " " + c.journal
	}
	return "STRUCT(" + strings.Join(fields, ", ") + ")"
}

// identifier quotes a name for SQL.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal quotes a string for SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// literals is a list of strings for SQL.
func literals(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = literal(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// pathLiteral quotes a path for a function that would take *, ? and [ for a
// pattern.
func pathLiteral(path string) string {
	return literal(strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path))
}

func pathList(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = pathLiteral(p)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// fromJournal replaces the column's value as the journal has it, "" if that is
// the value.
func (c column) fromJournal() string {
	field := identifier(c.name)
	switch {
	case c.typ == timestamp:
		return fmt.Sprintf("make_timestamptz(%s) AS %s", field, field)
	case c.typ == blob:
		return fmt.Sprintf("from_base64(%s) AS %s", field, field)
	case c.list:
		return fmt.Sprintf("coalesce(%s, []) AS %s", field, field)
	default:
		return ""
	}
}

// forRow is an expression for column c as the row struct's JSON has it.
func (c column) forRow() string {
	field := identifier(c.name)
	switch c.typ {
	case timestamp:
		return fmt.Sprintf("epoch_us(%s) AS %s", field, field)
	case blob:
		return fmt.Sprintf("to_base64(%s) AS %s", field, field)
	default:
		return field
	}
}
