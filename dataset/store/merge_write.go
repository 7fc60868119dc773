package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Bounds of a merged part, in what is on disk: about what a run's own part
// holds, so that whoever reads a part at a time needs no more memory.
const (
	mergedPartRows  = 10_000   // attempts
	mergedPartBytes = 16 << 20 // text shrinks to a quarter
)

// copyBlobs copies the long parts of messages, each once.
func (m *merger) copyBlobs(ctx context.Context) error {
	to := newBlobs(m.fsys, m.dir)
	for _, in := range m.inputs {
		names, err := in.blobs()
		if err != nil {
			return err
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if to.known[name] {
				continue
			}
			if err := m.copyBlob(in, to, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) copyBlob(in *mergeInput, to *blobs, name string) error {
	path := filepath.Join(in.dir, blobDir, name)
	content, err := readFile(in.fsys, path)
	if err != nil {
		return fmt.Errorf("reading blob %s: %w", path, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != name {
		return &DamageError{Path: path, Err: errMalformed, Advice: "restore it from a copy of the run; nothing was changed"}
	}
	if err := to.write(name, content); err != nil {
		return fmt.Errorf("writing blob %s: %w", name, err)
	}
	return nil
}

// mergePart is the part that a merge is writing.
type mergePart struct {
	tables   []table
	attempts int64
	bytes    int64
}

// writeParts writes the rows of all inputs, in their order, some parts of theirs
// to one part.
func (m *merger) writeParts(ctx context.Context) error {
	types, err := m.keptTypes()
	if err != nil {
		return err
	}
	w := newPartWriter(m.fsys, m.dir, m.run, types, 0)
	w.codec = newCheckedCodec(zstd.SpeedDefault) // it is written once and read often
	var open mergePart
	number := 0
	for i, in := range m.inputs {
		m.log.Info("merging", slog.String("run", in.dir))
		err := in.pieces(func(p piece) error {
			if open.tables != nil && (open.attempts+p.attempts > mergedPartRows || open.bytes+p.bytes > mergedPartBytes) {
				if err := m.close(w, number, &open); err != nil {
					return err
				}
				number++
			}
			if open.tables == nil {
				open.tables = w.spot(number).tables()
			}
			open.attempts += p.attempts
			open.bytes += p.bytes
			return p.rows(func(rows *Rows) error { return m.add(ctx, i, rows, &open) })
		})
		if err != nil {
			discard(open.tables)
			return err
		}
	}
	return m.close(w, number, &open)
}

// close commits the open part.
func (m *merger) close(w *partWriter, number int, open *mergePart) error {
	tables := open.tables
	*open = mergePart{}
	files, err := finishAll(tables)
	if err != nil {
		discard(tables)
		return err
	}
	rows := int64(0)
	for _, f := range files {
		rows += f.Rows
	}
	if rows == 0 {
		return nil
	}
	p, err := w.commit(number, files)
	if err != nil {
		discard(tables)
		return err
	}
	m.result.Attempts += p.Rows(tAttempts)
	return nil
}

// add writes rows of an input as rows of the merged run.
func (m *merger) add(ctx context.Context, input int, rows *Rows, open *mergePart) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.adopt(input, rows)
	for _, t := range open.tables {
		if err := t.add(rows); err != nil {
			return err
		}
	}
	return nil
}
