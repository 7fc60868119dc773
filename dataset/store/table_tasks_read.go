package store

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// eachTask calls yield for each row of a file of the tasks table, with its kept
// columns: those are not in the type of the row.
func eachTask(fsys FS, path string, want int64, yield func(TaskRow) error) error {
	f, err := fsys.OpenFile(path, toRead)
	if err != nil {
		return err
	}
	defer closeRead(f)
	p, err := openParquet(f)
	if err == nil && p.NumRows() != want {
		err = fmt.Errorf("%w: it has %d rows and the manifest says %d", errMalformed, p.NumRows(), want)
	}
	if err == nil {
		err = readTasks(p, yield)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

func readTasks(p *parquet.File, yield func(TaskRow) error) (err error) {
	defer recovered(&err)
	columns := p.Schema().Columns()
	for _, group := range p.RowGroups() {
		if err := readTaskGroup(group, columns, yield); err != nil {
			return err
		}
	}
	return nil
}

func readTaskGroup(group parquet.RowGroup, columns [][]string, yield func(TaskRow) error) (err error) {
	rows := group.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	buf := make([]parquet.Row, readRows)
	for {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			if err := yield(taskOf(row, columns)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// taskOf is a row of values, whose columns are flat, as a TaskRow.
func taskOf(row parquet.Row, columns [][]string) TaskRow {
	var t TaskRow
	for _, v := range row {
		if at := v.Column(); at >= 0 && at < len(columns) && !v.IsNull() {
			t.set(columns[at][0], v)
		}
	}
	return t
}

func (t *TaskRow) set(column string, v parquet.Value) {
	switch column {
	case "run_id":
		t.RunID = string(v.ByteArray())
	case "task_id":
		t.TaskID = string(v.ByteArray())
	case "task_hash":
		t.TaskHash = string(v.ByteArray())
	case "occurrence":
		t.Occurrence = v.Int32()
	case "dataset":
		t.Dataset = string(v.ByteArray())
	case "dataset_revision":
		text := string(v.ByteArray())
		t.DatasetRevision = &text
	case "split":
		text := string(v.ByteArray())
		t.Split = &text
	case "input":
		t.Input = string(v.ByteArray())
	case "target":
		t.Target = string(v.ByteArray())
	case "params":
		t.Params = string(v.ByteArray())
	default:
		t.keep(column, v)
	}
}

// keep sets a column that was kept from the dataset, as metaType.node has typed
// it.
func (t *TaskRow) keep(column string, v parquet.Value) {
	name, kept := strings.CutPrefix(column, metaPrefix)
	if !kept {
		return
	}
	if t.Meta == nil {
		t.Meta = map[string]any{}
	}
	switch v.Kind() {
	case parquet.Boolean:
		t.Meta[name] = v.Boolean()
	case parquet.Int64:
		t.Meta[name] = v.Int64()
	case parquet.Double:
		t.Meta[name] = metaFloat(v.Double())
	default:
		t.Meta[name] = string(v.ByteArray())
	}
}
