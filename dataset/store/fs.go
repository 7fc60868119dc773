package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is the file layer under a [Store]: few operations, each of which may fail
// or be the last one before a crash. Names are paths as package os takes them.
// Errors wrap [fs.ErrNotExist] and [fs.ErrExist] where they apply. An FS is
// safe for concurrent use.
type FS interface {
	Dirs
	Locks
	// OpenFile opens with the flags of package os.
	OpenFile(name string, flag int) (File, error)
	// Rename replaces to, atomically.
	Rename(from, to string) error
	Remove(name string) error
}

// Locks is the part of an [FS] that keeps a second writer away.
type Locks interface {
	// Lock takes the exclusive lock file name for owner. The error wraps
	// [ErrLocked] if another Store holds it. Close gives it back.
	Lock(name, owner string) (io.Closer, error)
	// Locked tells whether somebody holds the lock, and who, and changes
	// nothing.
	Locked(name string) (owner string, held bool, err error)
}

// Dirs is the part of an [FS] that concerns directories.
type Dirs interface {
	Mkdir(name string) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
}

// File is an open file. Writes go to its end.
type File interface {
	sizedReader
	io.WriteCloser
	// Sync makes the content durable. After an error nothing is known.
	Sync() error
	Truncate(size int64) error
}

type sizedReader interface {
	io.ReaderAt
	Size() (int64, error)
}

// Flags of OpenFile as the store uses them.
const (
	toRead   = os.O_RDONLY
	toAppend = os.O_RDWR | os.O_APPEND | os.O_CREATE
	toCut    = os.O_RDWR // a file opened to append cannot be cut everywhere
	toCreate = os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_TRUNC
)

// makeDir makes a directory and its parents and makes their entries durable.
func makeDir(fsys FS, dir string) error {
	if _, err := fsys.ReadDir(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	if err := fsys.SyncDir(parent); err != nil {
		return fmt.Errorf("syncing %s: %w", parent, err)
	}
	return nil
}

// readFile reads a whole file.
func readFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, toRead)
	if err != nil {
		return nil, err
	}
	defer closeRead(f)
	return readAll(f)
}

func readAll(f sizedReader) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// writeAll writes b; a short write is an error.
func writeAll(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// replaceFile writes a file through a temporary one, so that a reader and a
// crash see the old content or the new, and never a part of it.
func replaceFile(fsys FS, name string, content []byte) error {
	tmp := name + tmpSuffix
	if err := writeSynced(fsys, tmp, content); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

func writeSynced(fsys FS, name string, content []byte) error {
	f, err := fsys.OpenFile(name, toCreate)
	if err != nil {
		return err
	}
	err = writeAll(f, content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// closeRead closes a file that was only read: an error of Close loses nothing.
func closeRead(c io.Closer) { _ = c.Close() }

// DamageError is a file of a run that is not as it was written. Advice says
// what to do.
type DamageError struct {
	Path   string
	Err    error
	Advice string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; %s", e.Path, e.Err, e.Advice)
}

func (e *DamageError) Unwrap() error { return e.Err }
