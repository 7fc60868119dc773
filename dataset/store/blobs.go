package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
)

// maxInlinePart is the longest part of a message that stays in its row.
const maxInlinePart = 64 << 10

// blobRef stands in a row for a part that lies in blobs/<sha256>.
type blobRef struct {
	Type   string `json:"type"` // blobType
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

const blobType = "blob"

// blobs keeps long parts of messages, each once, under the hash of its
// content. It is safe for concurrent use.
type blobs struct {
	fsys FS
	dir  string

	mu    sync.Mutex
	known map[string]bool // those that are durable
}

func newBlobs(fsys FS, runDir string) *blobs {
	return &blobs{fsys: fsys, dir: filepath.Join(runDir, blobDir), known: map[string]bool{}}
}

// moveAll replaces the long parts in rows by references, once they are durable.
func (b *blobs) moveAll(rows *Rows) error {
	for i := range rows.Messages {
		m := &rows.Messages[i]
		if len(deref(m.Parts)) <= maxInlinePart {
			continue
		}
		parts, err := b.move(*m.Parts)
		if err != nil {
			return err
		}
		m.Parts = &parts
	}
	return nil
}

func (b *blobs) move(parts string) (string, error) {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(parts), &list); err != nil {
		return b.put([]byte(parts)) // not a list: one part
	}
	for i, part := range list {
		if len(part) <= maxInlinePart {
			continue
		}
		ref, err := b.put(part)
		if err != nil {
			return "", err
		}
		list[i] = json.RawMessage(ref)
	}
	out, err := compactJSON(list)
	return string(out), err
}

// put makes a part durable and returns the reference to it.
func (b *blobs) put(part []byte) (string, error) {
	sum := sha256.Sum256(part)
	name := hex.EncodeToString(sum[:])
	if err := b.write(name, part); err != nil {
		return "", fmt.Errorf("writing blob %s: %w", name, err)
	}
	ref, err := json.Marshal(blobRef{Type: blobType, SHA256: name, Bytes: len(part)})
	return string(ref), err
}

func (b *blobs) write(name string, content []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[name] {
		return nil
	}
	path := filepath.Join(b.dir, name)
	f, err := b.fsys.OpenFile(path, toRead)
	if err == nil {
		closeRead(f)
		err = b.fsys.SyncDir(b.dir) // an earlier process may not have come that far
	} else {
		err = replaceFile(b.fsys, path, content)
	}
	b.known[name] = err == nil
	return err
}

// restore puts the parts back that references stand for.
func (b *blobs) restore(parts string) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(parts), &list); err != nil {
		return b.resolve(json.RawMessage(parts))
	}
	for i := range list {
		part, err := b.resolve(list[i])
		if err != nil {
			return nil, err
		}
		list[i] = part
	}
	return compactJSON(list)
}

// compactJSON is JSON without the escapes that only HTML needs.
func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// refIn is the reference that a part is, if it is one.
func refIn(part json.RawMessage) (ref blobRef, ok bool) {
	const longest = 256
	if len(part) > longest {
		return ref, false
	}
	err := json.Unmarshal(part, &ref)
	return ref, err == nil && ref.Type == blobType && len(ref.SHA256) == 2*sha256.Size
}

func (b *blobs) resolve(part json.RawMessage) (json.RawMessage, error) {
	ref, ok := refIn(part)
	if !ok {
		return part, nil
	}
	path := filepath.Join(b.dir, filepath.Base(ref.SHA256))
	content, err := readFile(b.fsys, path)
	if err == nil && fmt.Sprintf("%x", sha256.Sum256(content)) != ref.SHA256 {
		err = errMalformed
	}
	if err != nil {
		return nil, &DamageError{Path: path, Err: err, Advice: "restore it from a copy of the run"}
	}
	return content, nil
}
