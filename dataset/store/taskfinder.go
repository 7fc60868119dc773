package store

import "slices"

// taskFinder finds the rows of tasks, which came with the first attempt at
// each: often in the part of an attempt or in the one before it, sometimes far
// away.
type taskFinder struct {
	view    *View
	parts   map[[16]byte]int32    // the first part with the task's row
	journal map[[16]byte]*TaskRow // of tasks that are in no part
	recent  []taskRows            // the latest last
}

// taskRows are the tasks of one part.
type taskRows struct {
	part int32
	rows map[[16]byte]*TaskRow
}

// maxRecentParts is of how many parts the tasks stay in memory.
const maxRecentParts = 2

// taskHead is the key of a task's row.
type taskHead struct {
	TaskID     string `parquet:"task_id"`
	Occurrence int32  `parquet:"occurrence"`
}

// find notes where each task is.
func (f *taskFinder) find() error {
	f.parts, f.journal = map[[16]byte]int32{}, map[[16]byte]*TaskRow{}
	for i, p := range f.view.Parts {
		err := eachRow(f.view.fsys, f.view.Dir, p, tTasks, func(t *taskHead) error {
			key := taskKey(t.TaskID, int(t.Occurrence))
			if _, found := f.parts[key]; !found {
				f.parts[key] = int32(i) //nolint:gosec // a run has fewer parts
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return eachLine(f.view, func(l *line) error {
		for i := range l.Tasks {
			row := l.Tasks[i]
			key := taskKey(row.TaskID, int(row.Occurrence))
			if _, found := f.parts[key]; !found && f.journal[key] == nil {
				f.journal[key] = &row
			}
		}
		return nil
	})
}

// of are the tasks of attempts, nil where there is no row.
func (f *taskFinder) of(attempts []AttemptRow) ([]*TaskRow, error) {
	tasks := make([]*TaskRow, len(attempts))
	keys := make([][16]byte, len(attempts))
	var parts []int32
	for i := range attempts {
		keys[i] = taskKey(attempts[i].TaskID, int(attempts[i].Occurrence))
		part, found := f.parts[keys[i]]
		if !found {
			tasks[i] = f.journal[keys[i]]
			continue
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	for _, part := range parts {
		rows, err := f.rows(part)
		if err != nil {
			return nil, err
		}
		for i, key := range keys {
			if row := rows[key]; row != nil && tasks[i] == nil {
				tasks[i] = row
			}
		}
	}
	return tasks, nil
}

// rows are the tasks of a part.
func (f *taskFinder) rows(part int32) (map[[16]byte]*TaskRow, error) {
	for _, t := range f.recent {
		if t.part == part {
			return t.rows, nil
		}
	}
	t := taskRows{part: part, rows: map[[16]byte]*TaskRow{}}
	err := eachRow(f.view.fsys, f.view.Dir, f.view.Parts[part], tTasks, func(row *TaskRow) error {
		kept := *row
		t.rows[taskKey(row.TaskID, int(row.Occurrence))] = &kept
		return nil
	})
	if len(f.recent) == maxRecentParts {
		f.recent = slices.Delete(f.recent, 0, 1)
	}
	f.recent = append(f.recent, t)
	return t.rows, err
}
