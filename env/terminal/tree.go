package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/talaria-run/talaria/env/sandbox"
)

// upload puts what lies under name in fsys into a directory of the sandbox. An
// [*fs.PathError] is what the sandbox says; what could not be read of fsys is
// wrapped away from that.
func upload(ctx context.Context, box sandbox.Sandbox, dir string, fsys fs.FS, name string) error {
	r, w := io.Pipe()
	packed := make(chan error, 1) // from the packing goroutine
	go func() {
		err := sandbox.Pack(w, fsys, name)
		packed <- err
		_ = w.CloseWithError(err) // never fails
	}()
	err := box.Upload(ctx, dir, r)
	_ = r.CloseWithError(errUnwanted) // never fails; the goroutine ends
	if packing := <-packed; packing != nil && !errors.Is(packing, errUnwanted) {
		return fmt.Errorf("reading %s: %v", name, packing) //nolint:errorlint // not to be taken for the sandbox's
	}
	return err
}

var errUnwanted = errors.New("the sandbox wants no more")

// imageless is a file system without the files that describe an image.
type imageless struct{ fs.FS }

var (
	_ fs.ReadDirFS  = imageless{}
	_ fs.ReadLinkFS = imageless{}
)

// ReadDir implements [fs.ReadDirFS].
func (f imageless) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	if name != environmentDir {
		return entries, err
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool {
		return e.Name() == "Dockerfile" || e.Name() == ".dockerignore"
	}), err
}

// Lstat implements [fs.ReadLinkFS].
func (f imageless) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(f.FS, name) }

// ReadLink implements [fs.ReadLinkFS].
func (f imageless) ReadLink(name string) (string, error) { return fs.ReadLink(f.FS, name) }
