package source

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// file is one file of a source.
type file struct {
	path string // as shown
	open func() (fs.File, error)
}

// Bounds of a zstd frame: a window above it would be held in memory.
const maxWindow = 128 << 20

// stream is a file being read: its content decompressed, its bytes hashed.
type stream struct {
	*bufio.Reader // of the content
	raw           *counted
	buffered      *bufio.Reader // of raw
	close         func()
}

// counted hashes and counts what is read of a file.
type counted struct {
	r    io.Reader
	hash hash.Hash
	n    int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.hash.Write(p[:n])
	c.n += int64(n)
	return n, err
}

// start opens the file and recognises its format. The stream is closed by its
// close.
func (f file) start() (*stream, error) {
	opened, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("opening the dataset: %w", err)
	}
	raw := &counted{r: opened, hash: sha256.New()}
	s := &stream{raw: raw, buffered: bufio.NewReaderSize(raw, 64<<10), close: func() { _ = opened.Close() }}
	if err := s.decompress(); err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return s, nil
}

func (s *stream) decompress() error {
	head, err := peek(s.buffered)
	if err != nil {
		return err
	}
	kind, err := sniff(head)
	if err != nil {
		return err
	}
	switch kind {
	case jsonl, blank:
		s.Reader = s.buffered
		return nil
	case gzipped:
		z, err := gzip.NewReader(s.buffered)
		if err != nil {
			return unpacking(kind, err)
		}
		s.Reader = bufio.NewReaderSize(named{z, kind}, 64<<10)
	case zstandard:
		// One goroutine: the reader of a small file is not worth more, and the
		// bytes hashed are then those that were decoded.
		z, err := zstd.NewReader(s.buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return unpacking(kind, err)
		}
		closeFile := s.close
		s.close = func() { z.Close(); closeFile() }
		s.Reader = bufio.NewReaderSize(named{z, kind}, 64<<10)
	}
	return s.checkContent()
}

// checkContent looks at what was compressed.
func (s *stream) checkContent() error {
	head, err := peek(s.Reader)
	if err != nil {
		return nil //nolint:nilerr // reported with its line when it is read
	}
	kind, err := sniff(head)
	if err != nil {
		return fmt.Errorf("compressed content: %w", err)
	}
	if kind == gzipped || kind == zstandard {
		return errors.New("it is compressed twice; unpack it once")
	}
	return nil
}

// peek looks at the beginning of a file without reading it.
func peek(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

// named says in its errors what was being unpacked.
type named struct {
	r    io.Reader
	kind format
}

func (n named) Read(p []byte) (int, error) {
	c, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unpacking(n.kind, err)
	}
	return c, err
}

func unpacking(kind format, err error) error {
	name := "gzip"
	if kind == zstandard {
		name = "zstd"
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the %s data is cut off; fetch the file again", name)
	}
	return fmt.Errorf("the %s data is broken: %w; fetch the file again", name, err)
}

// check looks at the beginning of the file. It is blank if it has no row.
func (f file) check() (empty bool, err error) {
	s, err := f.start()
	if err != nil {
		return false, err
	}
	defer s.close()
	lines := &lines{r: s.Reader}
	_, err = lines.next()
	return errors.Is(err, io.EOF), nil // other errors are reported with their line when it is read
}

// File is what was read of one file.
type File struct {
	Path   string
	Bytes  int64  // as stored
	SHA256 string // of the stored bytes
}

// sum reads what is left of the file and returns what was read of it.
func (s *stream) sum(path string) (File, error) {
	if _, err := io.Copy(io.Discard, s.buffered); err != nil {
		return File{}, fmt.Errorf("reading the dataset %s: %w", path, err)
	}
	return File{Path: path, Bytes: s.raw.n, SHA256: hex.EncodeToString(s.raw.hash.Sum(nil))}, nil
}

// Fingerprint tells what the source's files hold: as read, if they have been
// read to the end, else they are read now.
func (s *Source) Fingerprint() ([]File, error) {
	if s.sums != nil {
		return s.sums, nil
	}
	sums := make([]File, 0, len(s.parts))
	for _, part := range s.parts {
		sum, err := part.fingerprint()
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	s.sums = sums
	return sums, nil
}

func (f file) fingerprint() (File, error) {
	s, err := f.start()
	if err != nil {
		return File{}, err
	}
	defer s.close()
	return s.sum(f.path)
}
