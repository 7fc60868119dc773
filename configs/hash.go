package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// hashFile is the SHA-256 of a file's content, once per load.
func (d *document) hashFile(path string) (string, error) {
	if sum, ok := d.hashes[path]; ok {
		return sum, nil
	}
	if sum := d.recorded.get(path); sum != nil {
		d.hashes[path] = sum.raw
		return sum.raw, nil
	}
	f, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading the file: %w", err)
	}
	d.hashes[path] = hex.EncodeToString(h.Sum(nil))
	return d.hashes[path], nil
}

func openFile(path string) (*os.File, error) {
	if strings.HasPrefix(path, bundledPrefix) {
		return nil, fmt.Errorf("%s is embedded; a file is needed here", path)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no such file: %s", path)
	} else if err != nil {
		return nil, fmt.Errorf("looking at the file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}
