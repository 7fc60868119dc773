package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// memFS is a file layer in memory that knows what a power failure would leave:
// of each file what was synced, of each directory the entries as of its last
// sync. before is asked ahead of every operation that changes something and may
// make it fail or be the last.
type memFS struct {
	mu      sync.Mutex
	root    *memNode
	ops     int
	before  func(op memOp) fault
	stopped bool
	locked  map[string]bool
	syncs   map[string]int // file syncs by the folder of the file
	log     []string       // of operations, for failures of tests
}

type memOp struct {
	n    int // from 0
	kind string
	name string
}

// fault is what happens to an operation.
type fault struct {
	err  error // it fails with this
	stop bool  // the process dies here
	half bool  // a write has written half before that
}

var errStopped = errors.New("the process is dead")

// memNode is a file or, if entries is not nil, a directory.
type memNode struct {
	data, synced []byte
	lost         bool // a sync failed: what is unsynced stays so

	entries, syncedEntries map[string]*memNode
}

func newMemDir() *memNode {
	return &memNode{entries: map[string]*memNode{}, syncedEntries: map[string]*memNode{}}
}

func newMemFS() *memFS {
	return &memFS{root: newMemDir(), locked: map[string]bool{}, syncs: map[string]int{}}
}

// step counts an operation and lets the test interfere. The caller holds mu.
func (m *memFS) step(kind, name string) fault {
	if m.stopped {
		return fault{err: errStopped}
	}
	op := memOp{n: m.ops, kind: kind, name: name}
	m.ops++
	m.log = append(m.log, fmt.Sprintf("%d %s %s", op.n, kind, name))
	if m.before == nil {
		return fault{}
	}
	f := m.before(op)
	if f.stop {
		m.stopped = true
		f.err = errStopped
	}
	return f
}

func (m *memFS) find(name string) (*memNode, error) {
	n := m.root
	for part := range strings.SplitSeq(strings.Trim(filepath.ToSlash(name), "/"), "/") {
		if part == "" || part == "." {
			continue
		}
		if n.entries == nil || n.entries[part] == nil {
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		n = n.entries[part]
	}
	return n, nil
}

func (m *memFS) parent(name string) (*memNode, string, error) {
	d, err := m.find(filepath.Dir(name))
	if err == nil && d.entries == nil {
		err = fmt.Errorf("%s: not a directory", filepath.Dir(name))
	}
	return d, filepath.Base(name), err
}

func (m *memFS) OpenFile(name string, flag int) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return nil, errStopped
	}
	dir, base, err := m.parent(name)
	if err != nil {
		return nil, err
	}
	n := dir.entries[base]
	if n == nil && flag&os.O_CREATE == 0 {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if n == nil || flag&os.O_TRUNC != 0 {
		if f := m.step("create", name); f.err != nil {
			return nil, f.err
		}
	}
	if n == nil {
		n = &memNode{}
		dir.entries[base] = n
	} else if flag&os.O_TRUNC != 0 {
		n.data, n.lost = nil, false
	}
	return &memFile{fs: m, node: n, name: name}, nil
}

func (m *memFS) change(kind, name string, apply func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.step(kind, name); f.err != nil {
		return f.err
	}
	return apply()
}

func (m *memFS) Rename(from, to string) error {
	return m.change("rename", to, func() error {
		src, a, err := m.parent(from)
		if err != nil {
			return err
		}
		dst, b, err := m.parent(to)
		if err != nil {
			return err
		}
		if src.entries[a] == nil {
			return fmt.Errorf("%s: %w", from, fs.ErrNotExist)
		}
		dst.entries[b] = src.entries[a]
		delete(src.entries, a)
		return nil
	})
}

func (m *memFS) Remove(name string) error {
	return m.change("remove", name, func() error {
		dir, base, err := m.parent(name)
		if err == nil && dir.entries[base] == nil {
			err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		if err == nil {
			delete(dir.entries, base)
		}
		return err
	})
}

func (m *memFS) Mkdir(name string) error {
	return m.change("mkdir", name, func() error {
		dir, base, err := m.parent(name)
		if err == nil && dir.entries[base] != nil {
			err = fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
		if err == nil {
			dir.entries[base] = newMemDir()
		}
		return err
	})
}

func (m *memFS) SyncDir(name string) error {
	return m.change("syncdir", name, func() error {
		dir, err := m.find(name)
		if err == nil {
			dir.syncedEntries = maps.Clone(dir.entries)
		}
		return err
	})
}

func (m *memFS) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return nil, errStopped
	}
	dir, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(dir.entries)), nil
}

func (m *memFS) Lock(name, owner string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[name] {
		return nil, fmt.Errorf("%w (%s)", ErrLocked, owner)
	}
	m.locked[name] = true
	return memLock{m, name}, nil
}

func (m *memFS) Locked(name string) (owner string, held bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return "somebody", m.locked[name], nil
}

type memLock struct {
	fs   *memFS
	name string
}

func (l memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locked, l.name)
	return nil
}

type memFile struct {
	fs   *memFS
	node *memNode
	name string
}

func (f *memFile) Write(b []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	fault := f.fs.step("write", f.name)
	if fault.err != nil {
		n := 0
		if fault.half {
			n = len(b) / 2
		}
		f.node.data = append(f.node.data, b[:n]...)
		return n, fault.err
	}
	f.node.data = append(f.node.data, b...)
	return len(b), nil
}

// Sync as Linux has it: after a failed one, what was not synced is forgotten
// by the next, which succeeds.
func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if fault := f.fs.step("sync", f.name); fault.err != nil {
		f.node.lost = true
		return fault.err
	}
	f.fs.syncs[filepath.Base(filepath.Dir(f.name))]++
	if !f.node.lost {
		f.node.synced = slices.Clone(f.node.data)
	}
	return nil
}

func (f *memFile) Truncate(size int64) error {
	return f.fs.change("truncate", f.name, func() error {
		f.node.data = slices.Clone(f.node.data[:size])
		f.node.lost = f.node.lost && int(size) > len(f.node.synced)
		return nil
	})
}

func (f *memFile) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.stopped {
		return 0, errStopped
	}
	return int64(len(f.node.data)), nil
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.stopped {
		return 0, errStopped
	}
	if at >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Close() error { return nil }

// crashMode is what is left of what was not synced.
type crashMode string

const (
	dropUnsynced crashMode = "drop"  // nothing: the power failed
	keepUnsynced crashMode = "keep"  // all: the process was killed
	mixUnsynced  crashMode = "mixed" // some: the power failed while the system was writing
)

// crash is the file layer as the next process finds it.
func (m *memFS) crash(mode crashMode, seed uint64) *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	next := newMemFS()
	rng := rand.New(rand.NewPCG(seed, 0))
	next.root = m.root.after(mode, rng, map[*memNode]*memNode{})
	return next
}

func (n *memNode) after(mode crashMode, rng *rand.Rand, done map[*memNode]*memNode) *memNode {
	if c := done[n]; c != nil {
		return c
	}
	if n.entries == nil {
		data := n.dataAfter(mode, rng)
		c := &memNode{data: slices.Clone(data), synced: slices.Clone(data)}
		done[n] = c
		return c
	}
	c := newMemDir()
	done[n] = c
	names := map[string]bool{}
	for name := range n.entries {
		names[name] = true
	}
	for name := range n.syncedEntries {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child := n.entries[name]
		if mode == dropUnsynced || mode == mixUnsynced && rng.IntN(2) == 0 {
			child = n.syncedEntries[name]
		}
		if child != nil {
			c.entries[name] = child.after(mode, rng, done)
		}
	}
	c.syncedEntries = maps.Clone(c.entries)
	return c
}

func (n *memNode) dataAfter(mode crashMode, rng *rand.Rand) []byte {
	switch {
	case mode == keepUnsynced:
		return n.data
	case mode == dropUnsynced || n.lost || len(n.data) <= len(n.synced):
		return n.synced
	}
	cut := len(n.synced) + rng.IntN(len(n.data)-len(n.synced)+1)
	data := slices.Clone(n.data[:cut])
	if rng.IntN(2) == 0 { // blocks that were allocated and not written
		data = append(data, make([]byte, rng.IntN(4096))...)
	}
	return data
}

// files lists the paths of all files below a directory.
func (m *memFS) files(dir string) []string {
	names, err := m.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		if n, err := m.find(path); err == nil && n.entries == nil {
			all = append(all, path)
			continue
		}
		all = append(all, m.files(path)...)
	}
	return all
}
