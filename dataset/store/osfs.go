package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	dirMode  = 0o755
	fileMode = 0o644
)

// osFS is the real file layer.
type osFS struct{}

var _ FS = osFS{}

func (osFS) OpenFile(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) Mkdir(name string) error {
	return os.Mkdir(name, dirMode)
}

func (osFS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (osFS) SyncDir(name string) error { return syncDir(name) }

// Lock takes the lock and leaves the owner's identity in the file, behind its
// first byte: where locks are mandatory, others cannot touch that one.
func (osFS) Lock(name, owner string) (io.Closer, error) {
	lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileMode))
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	ok, err := lock.TryLockContext(ctx, lockPatience/10)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	if !ok {
		return nil, fmt.Errorf("%w (%s)", ErrLocked, lockOwner(name))
	}
	if err := writeOwner(name, owner); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", name, err), lock.Close())
	}
	return lock, nil
}

// lockPatience is how long somebody who only looks, by Locked, may be in the
// way.
const lockPatience = 200 * time.Millisecond

func (osFS) Locked(name string) (owner string, held bool, err error) {
	lock := flock.New(name, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("looking at the lock %s: %w", name, err)
	case !free:
		return lockOwner(name), true, nil
	}
	if err := lock.Close(); err != nil {
		return "", false, fmt.Errorf("closing %s: %w", name, err)
	}
	return "", false, nil
}

const ownerBytes = 255

// writeOwner pads the text, so that it covers a longer one from before.
func writeOwner(name, owner string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%-*.*s\n", ownerBytes, ownerBytes, owner), 1)
	return errors.Join(err, f.Close())
}

func lockOwner(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return "owner unknown"
	}
	defer closeRead(f)
	b := make([]byte, ownerBytes)
	n, _ := f.ReadAt(b, 1) // a shorter text is read up to its end
	return cmp.Or(strings.TrimSpace(string(b[:n])), "owner unknown")
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
