package store

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// taskTable is the tasks table, whose columns are known only with the last row
// of the part.
type taskTable struct {
	spot partSpot
	rows []TaskRow
	meta metaColumns
	file *partFile
}

func (t *taskTable) add(rows *Rows) error {
	for _, row := range rows.Tasks {
		t.rows = append(t.rows, row)
		t.meta.add(row.Meta)
	}
	return nil
}

func (t *taskTable) finish() (PartFile, error) {
	if len(t.rows) == 0 {
		return PartFile{}, nil
	}
	f, err := t.spot.create(tTasks)
	if err != nil {
		return PartFile{}, err
	}
	t.file = f
	schema := tasksSchema(&t.meta)
	w := parquet.NewGenericWriter[any](f, t.spot.options(schema, tTasks)...)
	if err := t.write(w); err != nil {
		return PartFile{}, fmt.Errorf("writing %s: %w", f.path, err)
	}
	f.rows = int64(len(t.rows))
	return f.finish()
}

func (t *taskTable) write(w *parquet.GenericWriter[any]) error {
	names := t.meta.names()
	group := 0
	for i := range t.rows {
		row := t.row(&t.rows[i], names)
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
		group += len(t.rows[i].Input) + len(t.rows[i].Params) + fixedBytes
		if group >= bytesPerGroup {
			group = 0
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// row is a TaskRow as values, in the order of its columns.
func (t *taskTable) row(r *TaskRow, names []string) parquet.Row {
	const fixed = 10
	row := append(make(parquet.Row, 0, fixed+len(names)),
		text(r.RunID), text(r.TaskID), text(r.TaskHash), parquet.Int32Value(r.Occurrence), text(r.Dataset),
		optText(r.DatasetRevision), optText(r.Split), text(r.Input), text(r.Target), text(r.Params))
	for _, name := range names {
		row = append(row, present(t.meta.types[name].value(r.Meta[name])))
	}
	for i := range row {
		row[i] = row[i].Level(0, row[i].DefinitionLevel(), i)
	}
	return row
}

func text(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }

func optText(s *string) parquet.Value {
	if s == nil {
		return parquet.NullValue()
	}
	return present(text(*s))
}

// present marks the value of an optional column as there, unless it is null.
func present(v parquet.Value) parquet.Value {
	if v.IsNull() {
		return v
	}
	return v.Level(0, 1, 0)
}

func (t *taskTable) discard() {
	t.rows = nil
	if t.file != nil {
		t.file.discard()
	}
}
