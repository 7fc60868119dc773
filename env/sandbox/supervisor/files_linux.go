package supervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/talaria-run/talaria/env/sandbox"
)

// openRegular opens a regular file, and never waits for a pipe's other end.
func openRegular(name string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
		if info.IsDir() {
			err = &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func readRegular(name string, offset, limit int64) ([]byte, fs.FileInfo, error) {
	file, info, err := openRegular(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // read only
	data, err := io.ReadAll(io.NewSectionReader(file, offset, limit))
	return data, info, err
}

func (s *server) read(args readArgs, out io.Writer) (readValue, error) {
	data, info, err := readRegular(s.session.at(args.Name), args.Offset, args.Limit)
	if err != nil {
		return readValue{}, err
	}
	_, err = out.Write(data)
	return readValue{Size: info.Size(), Mode: info.Mode(), ModTime: info.ModTime()}, err
}

func (s *server) write(args writeArgs, body io.Reader) error {
	name := s.session.at(args.Name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as mkdir does
		return err
	}
	mode := args.Mode.Perm()
	if args.Mode == 0 {
		mode = 0o644
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	if args.Mode != 0 {
		err = errors.Join(err, file.Chmod(mode))
	}
	return errors.Join(err, file.Close())
}

func (s *server) upload(args treeArgs, body io.Reader) error {
	dir := s.session.at(args.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as mkdir does
		return err
	}
	return sandbox.Unpack(dir, body, 0)
}

// download packs through an os.Root, so that a link cannot lead out of the tree
// that was asked for.
func (s *server) download(args treeArgs, out io.Writer) (err error) {
	name := s.session.at(args.Name)
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	dir, base := name, "."
	if !info.IsDir() {
		dir, base = filepath.Split(name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return sandbox.Pack(out, root.FS(), base)
}

// makeFile makes a file anew: what lay there may be no file, or have readers.
func makeFile(name string, data []byte) error {
	if err := RemoveTree(name); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// RemoveTree removes what lies at name, also where its owner has locked
// directories for itself. What is not there is removed.
func RemoveTree(name string) error {
	err := os.RemoveAll(name)
	if err == nil {
		return nil
	}
	walkErr := filepath.WalkDir(name, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			// Before its entries are read, which needs the permission.
			return os.Chmod(at, 0o700) //nolint:gosec // a directory needs to be searched
		}
		return nil
	})
	if err := os.RemoveAll(name); err != nil {
		return fmt.Errorf("removing %s: %w", name, errors.Join(err, walkErr))
	}
	return nil
}
