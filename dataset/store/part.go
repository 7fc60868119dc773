package store

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// partWriter writes parts and commits them. It belongs to one goroutine.
type partWriter struct {
	fsys     FS
	dir      string
	metadata map[string]string
	codec    *checkedCodec
	kept     *KeptTypes
	size     int64 // of the manifest
}

func newPartWriter(fsys FS, dir string, run Run, kept *KeptTypes, manifestSize int64) *partWriter {
	return &partWriter{
		fsys: fsys, dir: dir, metadata: fileMetadata(run), kept: kept, size: manifestSize,
		codec: newCheckedCodec(zstd.SpeedFastest), // a merge compresses better, once
	}
}

func (w *partWriter) spot(number int) partSpot {
	return partSpot{
		fsys: w.fsys, dir: w.dir, number: number, kept: w.kept,
		options: func(schema *parquet.Schema, table string) []parquet.WriterOption {
			return writerOptions(schema, table, w.codec, w.metadata)
		},
	}
}

// batch is the rows of one part, in memory.
type batch struct {
	number int // of the part: that of the last segment that holds its rows
	rows   []*Rows
	count  int // attempts
	bytes  int
}

func (b *batch) add(r *record) {
	b.rows = append(b.rows, r.rows)
	b.count += max(len(r.rows.Attempts), 1)
	b.bytes += r.bytes
}

// write writes a batch as a part and commits it. After an error nothing is
// committed and it may be called again.
func (w *partWriter) write(b *batch) (Part, error) {
	tables := w.spot(b.number).tables()
	var files []PartFile
	for _, t := range tables {
		file, err := writeTable(t, b)
		if err != nil {
			discard(tables)
			return Part{}, err
		}
		files = append(files, file)
	}
	return w.commit(b.number, files)
}

// writeTable writes one table at a time, so that the buffers of only one are
// in memory.
func writeTable(t table, b *batch) (PartFile, error) {
	for _, rows := range b.rows {
		if err := t.add(rows); err != nil {
			return PartFile{}, err
		}
	}
	return t.finish()
}

func discard(tables []table) {
	for _, t := range tables {
		t.discard()
	}
}

// commit gives finished files their names and appends the manifest line.
func (w *partWriter) commit(number int, files []PartFile) (Part, error) {
	p := Part{Part: number, Segment: number, CommittedAt: time.Now().UTC(), Files: []PartFile{}}
	for _, f := range files {
		if f.Name == "" {
			continue // a table without rows
		}
		if err := w.publish(f); err != nil {
			return p, err
		}
		p.Files = append(p.Files, f)
	}
	size, err := appendPart(w.fsys, w.dir, w.size, p)
	if err != nil {
		return p, err
	}
	w.size = size
	return p, nil
}

func (w *partWriter) publish(f PartFile) error {
	path := filepath.Join(w.dir, filepath.FromSlash(f.Name))
	if err := w.fsys.Rename(unfinishedPath(w.dir, f.Name), path); err != nil {
		return fmt.Errorf("naming a part: %w", err)
	}
	if err := w.fsys.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("syncing the folder of %s: %w", path, err)
	}
	return nil
}

// finishAll finishes tables that were filled side by side.
func finishAll(tables []table) ([]PartFile, error) {
	files := make([]PartFile, 0, len(tables))
	for _, t := range tables {
		file, err := t.finish()
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
