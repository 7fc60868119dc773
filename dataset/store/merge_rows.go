package store

import (
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// piece is some rows of an input that lie together: all of an attempt are in
// one.
type piece struct {
	attempts int64
	bytes    int64
	rows     func(yield func(*Rows) error) error
}

// pieces calls yield for the parts, the journal segments and the attempts that
// a crash cut off, in the order of recording.
func (in *mergeInput) pieces(yield func(piece) error) error {
	for _, p := range in.parts {
		size := int64(0)
		for _, f := range p.Files {
			size += f.Bytes
		}
		rows := func(yield func(*Rows) error) error { return in.partRows(p, yield) }
		if err := yield(piece{attempts: p.Rows(tAttempts), bytes: size, rows: rows}); err != nil {
			return err
		}
	}
	seen := map[uint64]bool{}
	for _, n := range in.segments {
		if err := yield(piece{bytes: mergedPartBytes / 2, rows: func(yield func(*Rows) error) error {
			return in.segmentRows(n, seen, yield)
		}}); err != nil {
			return err
		}
	}
	if len(in.orphans) == 0 {
		return nil
	}
	return yield(piece{attempts: int64(len(in.orphans)), rows: func(yield func(*Rows) error) error {
		for _, rows := range in.orphans {
			if err := yield(rows); err != nil {
				return err
			}
		}
		return nil
	}})
}

// partRows reads a part, one table after the other.
func (in *mergeInput) partRows(p Part, yield func(*Rows) error) error {
	for _, f := range p.Files {
		if err := in.fileRows(f, yield); err != nil {
			return err
		}
	}
	return nil
}

func (in *mergeInput) fileRows(f PartFile, yield func(*Rows) error) error {
	path := filepath.Join(in.dir, filepath.FromSlash(f.Name))
	switch f.Table {
	case tAttempts:
		return eachBatch(in, path, f, yield, func(rows []AttemptRow) *Rows { return &Rows{Attempts: rows} })
	case tTasks:
		return eachTask(in.fsys, path, f.Rows, func(row TaskRow) error { return yield(&Rows{Tasks: []TaskRow{row}}) })
	case tMessages:
		return eachBatch(in, path, f, yield, func(rows []MessageRow) *Rows { return &Rows{Messages: rows} })
	case tToolCalls:
		return eachBatch(in, path, f, yield, func(rows []ToolCallRow) *Rows { return &Rows{ToolCalls: rows} })
	case tSpans:
		return eachBatch(in, path, f, yield, func(rows []SpanRow) *Rows { return &Rows{Spans: rows} })
	case tRewards:
		return eachBatch(in, path, f, yield, func(rows []RewardRow) *Rows { return &Rows{Rewards: rows} })
	case tSequences:
		return eachBatch(in, path, f, yield, func(rows []SequenceRow) *Rows { return &Rows{Sequences: rows} })
	default:
		return &UnknownTableError{Path: path}
	}
}

// UnknownTableError is a table that only a later release knows.
type UnknownTableError struct{ Path string }

func (e *UnknownTableError) Error() string {
	return e.Path + " is of a table that this release does not know: use a newer release"
}

func eachBatch[T any](in *mergeInput, path string, f PartFile, yield func(*Rows) error, as func([]T) *Rows) error {
	return eachBatchOf(in.fsys, path, f.Rows, func(rows []T) error { return yield(as(rows)) })
}

func (in *mergeInput) segmentRows(number int, seen map[uint64]bool, yield func(*Rows) error) error {
	return eachLineOf(in, number, seen, func(kind recordKind, l *line) error {
		if !kind.hasRows() {
			return nil
		}
		normalise(&l.Rows)
		return yield(&l.Rows)
	})
}

// adopt makes rows of an input rows of the merged run and takes out those that
// it has already.
func (m *merger) adopt(input int, rows *Rows) {
	// here tells whether a row of an attempt stays, and gives it its number.
	here := func(run *string, episode string, attempt *int32) bool {
		at, _ := m.plan.place(input, episode, *attempt)
		*run, *attempt = m.run.RunID, at.attempt
		return at.fate == kept
	}
	rows.Attempts = retain(rows.Attempts, func(r *AttemptRow) bool { return here(&r.RunID, r.EpisodeID, &r.Attempt) })
	rows.Messages = retain(rows.Messages, func(r *MessageRow) bool { return here(&r.RunID, r.EpisodeID, &r.Attempt) })
	rows.ToolCalls = retain(rows.ToolCalls, func(r *ToolCallRow) bool { return here(&r.RunID, r.EpisodeID, &r.Attempt) })
	rows.Spans = retain(rows.Spans, func(r *SpanRow) bool { return here(&r.RunID, r.EpisodeID, &r.Attempt) })
	rows.Sequences = retain(rows.Sequences, func(r *SequenceRow) bool { return here(&r.RunID, r.EpisodeID, &r.Attempt) })
	rows.Rewards = retain(rows.Rewards, func(r *RewardRow) bool {
		at, shared := m.plan.place(input, r.EpisodeID, r.Attempt)
		r.RunID, r.Attempt = m.run.RunID, at.attempt
		return !shared || m.plan.isNews(r, at)
	})
	rows.Tasks = retain(rows.Tasks, func(r *TaskRow) bool {
		r.RunID = m.run.RunID
		key := taskKey(r.TaskID, int(r.Occurrence))
		known := m.tasks[key]
		m.tasks[key] = true
		return !known
	})
}

// retain is rows without those that keep refuses. keep may change a row.
func retain[T any](rows []T, keep func(*T) bool) []T {
	n := 0
	for i := range rows {
		if keep(&rows[i]) {
			if n < i {
				rows[n] = rows[i]
			}
			n++
		}
	}
	return rows[:n]
}

// keptTypes are the types of the kept columns, so that all merged parts have the
// same: those that the columns have in the inputs, or the least that holds them.
func (m *merger) keptTypes() (*KeptTypes, error) {
	types := &KeptTypes{columns: metaColumns{types: map[string]metaType{}, big: map[string]bool{}}}
	for _, in := range m.inputs {
		for _, p := range in.parts {
			for _, f := range p.Files {
				if f.Table != tTasks {
					continue
				}
				if err := types.addFile(in.fsys, filepath.Join(in.dir, filepath.FromSlash(f.Name))); err != nil {
					return nil, err
				}
			}
		}
		err := eachSegmentLine(in, func(_ recordKind, l *taskLine) error {
			rows := Rows{Tasks: l.Tasks}
			normalise(&rows)
			for i := range rows.Tasks {
				types.columns.add(rows.Tasks[i].Meta)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return types, nil
}

// addFile takes in the types of a file of the tasks table.
func (k *KeptTypes) addFile(fsys FS, path string) error {
	f, err := fsys.OpenFile(path, toRead)
	if err != nil {
		return err
	}
	defer closeRead(f)
	p, err := openParquet(f)
	if err != nil {
		return damagedPart(path, err)
	}
	for _, field := range p.Schema().Fields() {
		if name, kept := strings.CutPrefix(field.Name(), metaPrefix); kept && field.Leaf() {
			k.columns.types[name] = k.columns.types[name].join(metaTypeIn(field), !k.columns.big[name])
		}
	}
	return nil
}

// metaTypeIn is the type of a kept column, as metaType.node has made it.
func metaTypeIn(column parquet.Node) metaType {
	switch column.Type().Kind() {
	case parquet.Boolean:
		return metaBool
	case parquet.Int64:
		return metaInt
	case parquet.Double:
		return metaDouble
	default:
		return metaString
	}
}

// taskLine is the tasks of a journal line.
type taskLine struct {
	Tasks []TaskRow `json:"tasks"`
}
