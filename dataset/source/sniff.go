package source

import (
	"bytes"
	"errors"
	"fmt"
)

// format is what a file is, as its first bytes tell. Its name is not asked.
type format int

const (
	jsonl format = iota
	gzipped
	zstandard
	blank // nothing but white space so far
)

// sniffLen is how much of a file is looked at.
const sniffLen = 4096

// magic lists the beginnings of formats that are no JSONL, with what to do.
func magic() []struct{ prefix, what string } {
	const convert = "; convert it to JSONL"
	return []struct{ prefix, what string }{
		{"PAR1", "a Parquet file" + convert},
		{"ARROW1", "an Arrow file" + convert},
		{"\xff\xff\xff\xff", "an Arrow stream" + convert},
		{"PK\x03\x04", "a zip archive or a spreadsheet; unpack it to JSONL"},
		{"BZh", "compressed with bzip2; use gzip or zstd"},
		{"\xfd7zXZ\x00", "compressed with xz; use gzip or zstd"},
		{"\x04\x22\x4d\x18", "compressed with lz4; use gzip or zstd"},
		{"SQLite format 3\x00", "an SQLite database; export it to JSONL"},
		{"\x89HDF", "an HDF5 file" + convert},
		{"\x80\x02", "a Python pickle" + convert},
		{"\x80\x03", "a Python pickle" + convert},
		{"\x80\x04", "a Python pickle" + convert},
		{"\x80\x05", "a Python pickle" + convert},
		{"version https://git-lfs", "a Git LFS pointer; fetch the file with git lfs pull"},
		{"\xff\xfe", "text in UTF-16; save it as UTF-8"},
		{"\xfe\xff", "text in UTF-16; save it as UTF-8"},
		{"<", "HTML or XML, perhaps the error page of a download"},
	}
}

// utf8BOM is skipped where a file begins with it.
const utf8BOM = "\xef\xbb\xbf"

// sniff recognises a format by the beginning of its content.
func sniff(head []byte) (format, error) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzipped, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), skippable(head):
		return zstandard, nil
	}
	for _, m := range magic() {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return 0, fmt.Errorf("it is %s", m.what)
		}
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(utf8BOM)), " \t\r\n")
	switch {
	case len(text) == 0:
		return blank, nil
	case text[0] == '{':
		return jsonl, nil
	case text[0] == '[':
		return 0, errors.New("it is one JSON array; write one object per line, for example with jq -c '.[]'")
	}
	return 0, notJSON(text)
}

// skippable recognises a frame that a zstd reader skips: some writers begin
// with one.
func skippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

func notJSON(text []byte) error {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.IndexByte(text, 0) >= 0 {
		return errors.New("it is not text; a dataset is JSONL, plain or compressed with gzip or zstd")
	}
	if bytes.ContainsAny(line, ",\t;") {
		return errors.New("it looks like CSV; convert it to JSONL, one object per line")
	}
	return errors.New("it is not JSONL: the first line does not begin with {")
}
