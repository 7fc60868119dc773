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
	"slices"

	"github.com/klauspost/compress/zstd"
)

// file is one file of a source.
type file struct {
	path string // as shown
	open func() (fs.File, error)

	// Of a file from a hub.
	revision string
	sha256   string // "": it is not known
	cached   string // where it is
}

// Bounds of a zstd frame: a window above it would be held in memory.
const maxWindow = 128 << 20

// stream is a file being read: its rows, and its bytes as stored, hashed.
type stream struct {
	rows     records // nil: the file has none
	file     fs.File
	raw      *counted
	buffered *bufio.Reader // of raw
	closers  []func()
}

// records are the rows of a file, in order.
type records interface {
	// next returns the next row. A badRowError is the error of that row alone,
	// [io.EOF] tells the end, and any other error ends the file.
	next() (map[string]any, error)
	// at says where the row or the error of the latest next is.
	at(RowError) RowError
	close()
}

// badRowError says why a row cannot be read; the next one can.
type badRowError struct{ error }

func (b badRowError) Unwrap() error { return b.error }

// errRead is wrapped by errors of reading the file, which are not its content's.
var errRead = errors.New("reading the file")

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
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errRead, err)
	}
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
	s := &stream{file: opened, raw: raw, buffered: bufio.NewReaderSize(raw, 64<<10)}
	s.closers = append(s.closers, func() { _ = opened.Close() })
	if err := s.recognise(f.path); err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return s, nil
}

func (s *stream) close() {
	if s.rows != nil {
		s.rows.close()
	}
	for _, c := range slices.Backward(s.closers) {
		c()
	}
}

// recognise finds out what the file holds.
func (s *stream) recognise(name string) error {
	head, err := peek(s.buffered)
	if err != nil {
		return err
	}
	kind, err := sniff(head, name)
	if err != nil {
		return err
	}
	switch kind {
	case gzipped, zstandard:
		return s.unpack(kind, name)
	case parquetFile:
		return s.parquet()
	default:
		return s.read(s.buffered, head, kind, name)
	}
}

// read begins to read rows from r, which begins with head.
func (s *stream) read(r *bufio.Reader, head []byte, kind format, name string) (err error) {
	switch kind {
	case csvText:
		var rows *csvRows
		if rows, err = newCSVRows(lines{r: r}, separator(head, name)); err == nil {
			s.rows = rows
		}
	case arrowData:
		var rows *arrowRows
		if rows, err = newArrowRows(r); err == nil {
			s.rows = rows
		}
	default:
		s.rows = &jsonRows{lines{r: r}}
	}
	return err
}

func (s *stream) unpack(kind format, name string) error {
	var content io.Reader
	if kind == gzipped {
		z, err := gzip.NewReader(s.buffered)
		if err != nil {
			return unpacking(kind, err)
		}
		content = z
	} else {
		// One goroutine: the reader of a small file is not worth more, and the
		// bytes hashed are then those that were decoded.
		z, err := zstd.NewReader(s.buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return unpacking(kind, err)
		}
		s.closers = append(s.closers, z.Close)
		content = z
	}
	r := bufio.NewReaderSize(named{content, kind}, 64<<10)
	head, err := peek(r)
	if err != nil && len(head) == 0 {
		return err
	}
	inner, err := sniff(head, name)
	switch {
	case err != nil:
		return fmt.Errorf("compressed content: %w", err)
	case inner == gzipped || inner == zstandard:
		return errors.New("it is compressed twice; unpack it once")
	case inner == parquetFile:
		return errors.New("it is a compressed Parquet file; unpack it, Parquet is compressed in itself")
	}
	return s.read(r, head, inner, name)
}

func (s *stream) parquet() error {
	r, ok := s.file.(io.ReaderAt)
	if !ok {
		return errors.New("it is a Parquet file, which is not read from here")
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	rows, err := newParquetRows(r, info.Size())
	if err == nil {
		s.rows = rows
	}
	return err
}

// peek looks at the beginning of a file without reading it. What there is it
// returns with an error too.
func peek(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(sniffLen)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
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
	_, err = s.rows.next()
	return errors.Is(err, io.EOF), nil // other errors are reported with their line when it is read
}

// File is what was read of one file.
type File struct {
	Path     string
	Bytes    int64  // as stored
	SHA256   string // of the stored bytes
	Revision string // of the dataset on a hub
}

// sum reads what is left of the file and returns what was read of it.
func (s *stream) sum(f file) (File, error) {
	if _, err := io.Copy(io.Discard, s.buffered); err != nil {
		return File{}, fmt.Errorf("reading the dataset %s: %w", f.path, err)
	}
	sum := File{Path: f.path, Bytes: s.raw.n, SHA256: hex.EncodeToString(s.raw.hash.Sum(nil)), Revision: f.revision}
	if f.sha256 != "" && f.sha256 != sum.SHA256 {
		return File{}, fmt.Errorf("%s: its copy in the cache, %s, is damaged; remove it, and it is fetched again", f.path, f.cached)
	}
	return sum, nil
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
	return s.sum(f)
}
