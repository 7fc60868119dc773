package store

import "maps"

// KeptTypes are the types of the kept columns of a run, as all its tasks have
// them: the least type that holds every value of a column, text where values
// differ in kind. With them every part, of every shard, has the same columns.
// The zero value is empty. One goroutine adds; a [Store] only reads it.
type KeptTypes struct{ columns metaColumns }

// Add takes in the kept columns of a task, see [dataset.Task].
func (k *KeptTypes) Add(keep map[string]any) {
	var c cleaner
	meta := make(map[string]any, len(keep))
	for name, v := range keep {
		meta[c.text(name)] = c.metaValue(v)
	}
	k.columns.add(meta)
}

// begin is where the columns of a part begin.
func (k *KeptTypes) begin() metaColumns {
	if k == nil {
		return metaColumns{}
	}
	return metaColumns{types: maps.Clone(k.columns.types), big: maps.Clone(k.columns.big)}
}

// recordedTask is who a recorded task is.
type recordedTask struct {
	TaskID     string `parquet:"task_id"`
	TaskHash   string `parquet:"task_hash"`
	Occurrence int32  `parquet:"occurrence"`
}

// RecordedTasks hands on who each task is whose row was recorded before this
// invocation, and the hash of its content, oldest first. A task may come more
// than once. It is called before anything is written.
func (s *Store) RecordedTasks(yield func(id string, occurrence int, hash string) error) error {
	man, err := readManifest(s.fsys, s.dir)
	if err != nil {
		return err
	}
	for _, p := range man.parts {
		err := eachRow(s.fsys, s.dir, p, tTasks, func(t *recordedTask) error {
			return yield(t.TaskID, int(t.Occurrence), t.TaskHash)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
