package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// settings are the files of /etc that programs need to work: which libraries
// and alternatives there are, names of services, time zone, certificates.
// Everything else there is the host's own business.
func settings() []string {
	return []string{
		"alternatives", "ca-certificates", "debian_version", "inputrc", "ld.so.cache", "ld.so.conf",
		"ld.so.conf.d", "localtime", "magic", "mime.types", "os-release", "pki/tls", "pki/ca-trust", "profile",
		"protocols", "resolv.conf", "services", "ssl", "terminfo", "timezone",
	}
}

// writeEtc makes the directory that sandboxes see as /etc. One mount of it is
// cheaper than one for each file.
func writeEtc(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // everybody reads /etc
		return err
	}
	own := map[string]string{
		"passwd":        "root:x:0:0:root:/root:/bin/sh\n" + userName + ":x:" + userID + ":" + userID + "::" + homeDir + ":/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
		"group":         "root:x:0:\n" + userName + ":x:" + userID + ":\nnogroup:x:65534:\n",
		"hosts":         "127.0.0.1 localhost " + hostName + "\n::1 localhost\n",
		"hostname":      hostName + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	}
	for name, text := range own {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // everybody reads /etc
			return err
		}
	}
	for _, name := range settings() {
		if err := copySettings(filepath.Join("/etc", name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return openToAll(dir)
}

// openToAll undoes what the harness's umask has taken.
func openToAll(dir string) error {
	return filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.Chmod(at, 0o755) //nolint:gosec // everybody reads /etc
		case entry.Type().IsRegular():
			return os.Chmod(at, 0o644) //nolint:gosec // everybody reads /etc
		}
		return nil
	})
}

// copySettings copies what is there and open to everybody; links stay links.
func copySettings(from, to string) error {
	return filepath.WalkDir(from, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, at[len(from):])
		switch mode := info.Mode(); {
		case mode.Type() == fs.ModeSymlink:
			return copyLink(at, target)
		case mode.Perm()&0o004 == 0:
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, 0o755) //nolint:gosec // everybody reads /etc
		case mode.IsRegular():
			return copyFile(at, target)
		}
		return nil
	})
}

func copyLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // everybody reads /etc
		return err
	}
	return os.Symlink(target, to)
}

func copyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()                           // read only
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // everybody reads /etc
		return err
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // everybody reads /etc
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
