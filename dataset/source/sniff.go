package source

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// format is what a file is, as its first bytes tell. Its name is asked only
// where text could be CSV of one column.
type format int

const (
	jsonl format = iota
	csvText
	parquetFile
	arrowData // a file or a stream
	gzipped
	zstandard
	blank // nothing but white space so far
)

// sniffLen is how much of a file is looked at.
const sniffLen = 4096

// known lists the beginnings of formats that are read.
func known() []struct {
	prefix string
	kind   format
} {
	return []struct {
		prefix string
		kind   format
	}{
		{"\x1f\x8b", gzipped},
		{"\x28\xb5\x2f\xfd", zstandard},
		{"PAR1", parquetFile},
		{"ARROW1", arrowData},
		{"\xff\xff\xff\xff", arrowData},
	}
}

// magic lists the beginnings of formats that are not read, with what to do.
func magic() []struct{ prefix, what string } {
	const convert = "; convert it to JSONL or Parquet"
	return []struct{ prefix, what string }{
		{"PARE", "an encrypted Parquet file; write it without encryption"},
		{"FEA1", "a Feather file of version 1; write it again in version 2"},
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
func sniff(head []byte, name string) (format, error) {
	for _, k := range known() {
		if bytes.HasPrefix(head, []byte(k.prefix)) {
			return k.kind, nil
		}
	}
	if skippable(head) {
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
	case bytes.IndexByte(text, 0) >= 0:
		return 0, errors.New("it is not text; a dataset is JSONL, CSV, Parquet or Arrow, text also compressed with gzip or zstd")
	case separator(head, name) != 0:
		return csvText, nil
	}
	return 0, errors.New("it is neither JSONL nor CSV: the first line does not begin with { and has no separator; " +
		"a file of one column is read as CSV if its name ends in .csv")
}

// separator is what separates the columns of a file if it is CSV, else 0.
func separator(head []byte, name string) byte {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".zst")
	if strings.HasSuffix(name, ".tsv") {
		return '\t'
	}
	header, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte("\n"))
	s := separatorOf(header)
	if s == 0 && strings.HasSuffix(name, ".csv") {
		return ','
	}
	return s
}

// skippable recognises a frame that a zstd reader skips: some writers begin
// with one.
func skippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}
