package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// task makes a task of a row. Its Occurrence is the caller's to set.
func (s *Source) task(row map[string]any) (dataset.Task, error) {
	t, rest, err := s.fromRow(row)
	if err != nil {
		return dataset.Task{}, err
	}
	t.Params, err = encodeParams(rest)
	return t, err
}

// fromRow makes a task of a row. The rest are the columns that are neither
// mapped nor kept.
func (s *Source) fromRow(row map[string]any) (t dataset.Task, rest map[string]any, err error) {
	mapped, err := s.pick(row)
	if err != nil {
		return dataset.Task{}, nil, err
	}
	if err := s.require(row); err != nil {
		return dataset.Task{}, nil, err
	}
	t = dataset.Task{
		Hash: dataset.TaskHash(mapped), Source: s.opts.Source, Dataset: s.opts.Name, Revision: s.revision, Split: s.opts.Split,
		Input: dataset.Text(mapped[Input]), Target: dataset.Text(mapped[Target]), Row: row,
	}
	t.ID = t.Hash
	if id, ok := mapped[ID]; ok {
		t.ID = dataset.Text(id)
	}
	return t, s.sort(&t), nil
}

// pick picks the columns that make a task, by the names that they are mapped
// to. Null is left out, as in the task's hash.
func (s *Source) pick(row map[string]any) (map[string]any, error) {
	m := make(map[string]any, len(s.columns))
	for _, name := range s.names {
		v, ok := dataset.Lookup(row, s.columns[name])
		if err := s.checkColumn(name, v, ok); err != nil {
			if !ok {
				err = missing(row, s.columns[name])
			}
			return nil, err
		}
		if v != nil {
			m[name] = v
		}
	}
	if m[ID] == nil && m[Input] == nil {
		return nil, missing(row, s.columns[Input])
	}
	return m, s.rename(row)
}

func (s *Source) checkColumn(name string, v any, ok bool) error {
	if v == nil && s.opts.Lenient && standard(name) || ok && !standard(name) {
		return nil
	}
	column := s.columns[name]
	if v == nil {
		return fmt.Errorf("the column %q is null; a task needs its %s", column, name)
	}
	if name != ID {
		return nil
	}
	switch v := v.(type) {
	case json.Number:
		return nil
	case string:
		if v != "" {
			return nil
		}
	}
	return fmt.Errorf("the id in column %q is %s; it must be text or a number", column, describe(v))
}

// standard reports whether every task has a column of that name; other names
// are the user's.
func standard(name string) bool { return name == Input || name == Target || name == ID }

func describe(v any) string {
	switch v := v.(type) {
	case bool:
		return "true or false"
	case string:
		if v == "" {
			return "empty"
		}
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return dataset.Text(v)
}

// rename gives columns their further names in the row.
func (s *Source) rename(row map[string]any) error {
	for _, name := range s.names {
		column := s.columns[name]
		if standard(name) || name == column {
			continue
		}
		if _, ok := row[name]; ok {
			return fmt.Errorf("the column %q is to be called %q, but the row has a column of that name", column, name)
		}
		row[name], _ = dataset.Lookup(row, column)
	}
	return nil
}

func (s *Source) require(row map[string]any) error {
	for _, column := range s.opts.Require {
		if _, ok := dataset.Lookup(row, column); !ok {
			return missing(row, column)
		}
	}
	return nil
}

// sort sorts the columns of the row into those that are kept and the rest. A
// further name does not count as a column.
func (s *Source) sort(t *dataset.Task) (rest map[string]any) {
	t.Keep = map[string]any{}
	for _, column := range s.opts.Keep {
		if v, ok := dataset.Lookup(t.Row, column); ok {
			s.found[column] = true
			t.Keep[column] = v
		}
	}
	rest = map[string]any{}
	for column, v := range t.Row {
		switch {
		case slices.Contains(s.opts.Keep, column), s.mapped[column]:
		case s.opts.KeepAll:
			t.Keep[column] = v
		default:
			rest[column] = v
		}
	}
	return rest
}

func encodeParams(params any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(params); err != nil {
		return "", fmt.Errorf("writing the other columns as JSON: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// maxShown bounds the columns that an error lists.
const maxShown = 12

func missing(row map[string]any, column string) error {
	if len(row) == 0 {
		return errors.New("the row is an empty object")
	}
	names := slices.Sorted(maps.Keys(row))
	more := ""
	if len(names) > maxShown {
		names, more = names[:maxShown], ", ..."
	}
	return fmt.Errorf("the row has no column %q; it has %s%s", column, strings.Join(names, ", "), more)
}
