package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"
)

// Part is a line of the manifest: Parquet files that were committed together.
type Part struct {
	Part int `json:"part"`
	// Segment is the last journal segment whose rows are in this part or an
	// earlier one: every segment up to it is done with.
	Segment     int        `json:"segment"`
	CommittedAt time.Time  `json:"committed_at"`
	Files       []PartFile `json:"files"`
}

// PartFile is one Parquet file of a part.
type PartFile struct {
	Table  string `json:"table"`
	Name   string `json:"name"` // within the run directory, with slashes
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Rows is how many rows of a table the part holds.
func (p Part) Rows(table string) int64 {
	for _, f := range p.Files {
		if f.Table == table {
			return f.Rows
		}
	}
	return 0
}

// A manifest line is a JSON object whose last member is the checksum of what
// stands before it.
const (
	sumMember  = `,"crc32c":"`
	sumEnd     = `"}`
	sumDigits  = 8
	lineTail   = len(sumMember) + sumDigits + len(sumEnd)
	noSegments = -1 // the watermark of a run without parts
)

func encodePart(p Part) ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest line: %w", err)
	}
	b = b[:len(b)-1] // the brace comes after the checksum
	sum := crc32.Checksum(b, castagnoli())
	return fmt.Appendf(b, "%s%08x%s\n", sumMember, sum, sumEnd), nil
}

func decodePart(line []byte) (Part, error) {
	var p Part
	if len(line) <= lineTail {
		return p, errors.New("too short")
	}
	head, tail := line[:len(line)-lineTail], line[len(line)-lineTail:]
	digits, ok := bytes.CutPrefix(tail, []byte(sumMember))
	if !ok {
		return p, errors.New("no checksum")
	}
	want, err := strconv.ParseUint(string(digits[:sumDigits]), 16, 32)
	if err != nil || uint64(crc32.Checksum(head, castagnoli())) != want {
		return p, errors.New("wrong checksum")
	}
	if err := json.Unmarshal(line, &p); err != nil {
		return p, err
	}
	return p, nil
}

// manifest is what manifest.jsonl holds.
type manifest struct {
	parts []Part
	size  int64 // of the good lines
	torn  bool  // a bad line follows them
}

// watermark is the last segment that is committed.
func (m *manifest) watermark() int {
	if len(m.parts) == 0 {
		return noSegments
	}
	return m.parts[len(m.parts)-1].Segment
}

func readManifest(fsys FS, dir string) (manifest, error) {
	path := filepath.Join(dir, manifestFile)
	b, err := readFile(fsys, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return manifest{}, fmt.Errorf("reading %s: %w", path, err)
	}
	m, parseErr := parseManifest(b)
	if err := errors.Join(err, parseErr); err != nil {
		return m, &DamageError{Path: path, Err: err, Advice: "restore it from a copy of the run; nothing was changed"}
	}
	return m, nil
}

// parseManifest reads the lines of a manifest. Only the last one may be bad:
// that is what a crash leaves.
func parseManifest(b []byte) (manifest, error) {
	var m manifest
	for number := 1; len(b) > 0; number++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		p, err := decodePart(line)
		if err == nil && p.Segment <= m.watermark() {
			return m, fmt.Errorf("line %d: its segment %d comes again", number, p.Segment)
		}
		switch {
		case err == nil && whole:
			m.parts = append(m.parts, p)
			m.size += int64(len(line) + 1)
		case len(rest) > 0:
			return m, fmt.Errorf("line %d: %w", number, err)
		default:
			m.torn = true
		}
		b = rest
	}
	return m, nil
}

// appendPart commits a part. size is the length of the good lines so far; what
// is behind them, left by a failed try, is cut first.
func appendPart(fsys FS, dir string, size int64, p Part) (newSize int64, err error) {
	b, err := encodePart(p)
	if err != nil {
		return size, err
	}
	if err := cutManifest(fsys, dir, size); err != nil {
		return size, err
	}
	f, err := fsys.OpenFile(filepath.Join(dir, manifestFile), toAppend)
	if err != nil {
		return size, fmt.Errorf("opening the manifest: %w", err)
	}
	err = writeAll(f, b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return size, fmt.Errorf("appending to the manifest: %w", err)
	}
	return size + int64(len(b)), nil
}

// cutManifest removes what follows the good lines, if anything does.
func cutManifest(fsys FS, dir string, size int64) error {
	f, err := fsys.OpenFile(filepath.Join(dir, manifestFile), toCut)
	if err != nil {
		return fmt.Errorf("opening the manifest: %w", err)
	}
	have, err := f.Size()
	if err == nil && have > size {
		err = f.Truncate(size)
		if err == nil {
			err = f.Sync()
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cutting the manifest's torn last line: %w", err)
	}
	return nil
}
