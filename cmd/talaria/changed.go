package main

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// noteChanges compares the dataset with what the run that is gone on with read.
// It says which recorded tasks are not what they were, and keeps the earlier
// fingerprint with the run: their episodes stand, and a person has to know that
// they were played on other content.
func (s *session) noteChanges(st *store.Store, record *store.Run) error {
	files, err := s.sources.fingerprints()
	if err != nil {
		return fmt.Errorf("hashing the dataset: %w", err)
	}
	same := slices.Equal(files, record.Datasets)
	if same && s.cfg.ConfigHash() == record.ConfigHash {
		return nil // and so are its columns
	}
	changed, missing, err := s.changedTasks(st)
	if err != nil {
		return fmt.Errorf("comparing the dataset with the recorded tasks: %w", err)
	}
	if !same {
		record.EarlierDatasets = append(slices.Clone(record.EarlierDatasets), store.DatasetChange{
			Until: time.Now().UTC(), Datasets: record.Datasets, ChangedTasks: changed, MissingTasks: missing,
		})
	}
	if changed > 0 {
		s.std.log.Warn("recorded tasks have other content now: their episodes stand and are not run again; "+
			"start a new run to play them as they are", slog.Int("tasks", changed))
	} else if !same {
		s.std.log.Info("the dataset is another one than before; no recorded task has other content",
			slog.Int("missing_tasks", missing))
	}
	return nil
}

// changedTasks counts the recorded tasks that have other content now, and those
// that are not there. 32 bytes are held for each recorded task.
func (s *session) changedTasks(st *store.Store) (changed, missing int, err error) {
	recorded := map[[16]byte][16]byte{}
	err = st.RecordedTasks(func(id string, occurrence int, hash string) error {
		recorded[taskKey(dataset.Task{ID: id, Occurrence: occurrence})] = shortHash(hash)
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	for t, err := range s.sources.tasks() {
		if err != nil {
			return 0, 0, err
		}
		key := taskKey(t)
		was, known := recorded[key]
		if known && was != shortHash(t.Hash) {
			changed++
		}
		delete(recorded, key)
	}
	return changed, len(recorded), nil
}

func taskKey(t dataset.Task) [16]byte { return shortHash(dataset.ID("task_key", t.Key())) }

// shortHash packs an id of 32 hex digits.
func shortHash(id string) (packed [16]byte) {
	if len(id) == hex.EncodedLen(len(packed)) {
		_, _ = hex.Decode(packed[:], []byte(id)) // ids are ours
	}
	return packed
}
