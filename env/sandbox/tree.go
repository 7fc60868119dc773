package sandbox

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Pack writes what lies under name in fsys as a tar stream: regular files,
// directories and symbolic links, sorted, without owners; anything else is left
// out. The names are relative to name; a file that is packed alone goes by its
// base name. Files without a time, such as embedded ones, have no permissions
// worth keeping and become writable.
func Pack(to io.Writer, fsys fs.FS, name string) error {
	w := tar.NewWriter(to)
	err := fs.WalkDir(fsys, name, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.FromSlash(name), filepath.FromSlash(at))
		if err != nil {
			return fmt.Errorf("packing %s: %w", at, err)
		}
		if rel == "." {
			if entry.IsDir() {
				return nil
			}
			rel = path.Base(at)
		}
		return packEntry(w, fsys, at, filepath.ToSlash(rel))
	})
	if err != nil {
		return err
	}
	return w.Close()
}

func packEntry(w *tar.Writer, fsys fs.FS, at, as string) error {
	info, err := fs.Lstat(fsys, at)
	if err != nil {
		return err
	}
	link := ""
	switch info.Mode().Type() {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		if link, err = fs.ReadLink(fsys, at); err != nil {
			return err
		}
	default:
		return nil
	}
	head := header(info, as, link)
	if head.Typeflag != tar.TypeReg {
		return w.WriteHeader(head)
	}
	return packFile(w, fsys, at, head)
}

func header(info fs.FileInfo, as, link string) *tar.Header {
	head := &tar.Header{
		Typeflag: tar.TypeReg, Name: as, Linkname: link,
		Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX,
	}
	if info.ModTime().IsZero() {
		head.Mode |= 0o200
	}
	switch {
	case link != "":
		head.Typeflag = tar.TypeSymlink
	case info.IsDir():
		head.Typeflag, head.Name = tar.TypeDir, as+"/"
	default:
		head.Size = info.Size()
	}
	return head
}

// packFile packs exactly as many bytes as the header promised, also if the
// file has changed meanwhile.
func packFile(w *tar.Writer, fsys fs.FS, at string, head *tar.Header) error {
	file, err := fsys.Open(at)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	if err := w.WriteHeader(head); err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(file, head.Size))
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, zeros{}, head.Size-n)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// ErrTooLarge means that a tree would take more room than it was given.
var ErrTooLarge = errors.New("the tree is too large")

// Unpack makes the entries of a tar stream under dir, which must exist. It
// takes regular files, directories and symbolic links, and refuses a stream
// with anything else, with a name that leads out of dir, by itself or through
// a link, or with files of more than limit bytes in all; a limit of 0 is none.
// A link may point anywhere, but nothing is written through it to outside.
func Unpack(dir string, tree io.Reader, limit int64) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if limit == 0 {
		limit = 1<<63 - 1
	}
	r := tar.NewReader(tree)
	for {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a tree: %w", err)
		}
		if limit -= head.Size; limit < 0 {
			return fmt.Errorf("unpacking %s: %w", head.Name, ErrTooLarge)
		}
		if err := unpackEntry(root, r, head); err != nil {
			return err
		}
	}
}

func unpackEntry(root *os.Root, r io.Reader, head *tar.Header) error {
	name := path.Clean(head.Name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("unpacking %q: the name leads out of the tree", head.Name)
	}
	mode := fs.FileMode(head.Mode).Perm() //nolint:gosec // Perm keeps nine bits
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch head.Typeflag {
	case tar.TypeDir:
		return unpackDir(root, name, mode)
	case tar.TypeReg:
		return unpackFile(root, r, name, mode, head)
	case tar.TypeSymlink:
		if err := makeWay(root, name); err != nil {
			return err
		}
		return root.Symlink(head.Linkname, name)
	}
	return fmt.Errorf("unpacking %q: entries of type %q are not supported", head.Name, head.Typeflag)
}

// unpackDir leaves a directory open to its owner, so that what it holds can
// follow.
func unpackDir(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	return root.Chmod(name, mode|0o700)
}

func unpackFile(root *os.Root, r io.Reader, name string, mode fs.FileMode, head *tar.Header) error {
	if err := makeWay(root, name); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	// The umask does not apply to chmod.
	if err := errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, head.ModTime, head.ModTime)
}

// makeWay removes a file or a link that lies where one is to be made, so that
// nothing is written through it.
func makeWay(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
