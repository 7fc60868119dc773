package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"
)

// What decodeRow accepts is what encoding/json reads, with nothing lost.
func FuzzDecodeRow(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"a":1}`, `{"a":{"b":[1,2.50,1e400,null,true,"\ud800"]}}`, `{"a":1,"a":2}`, `[1]`, `null`, `{"a":`, `{"a":1} {}`,
		"{\"a\":\"\xff\"}", `{"a":[[[[]]]]}`, `{"\u0061":1,"a":2}`, `{"a" :1 , "b":[ ]}`, `{"a":-0}`, `{"a":01}`, `{a:1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		row, err := decodeRow(line)
		var want map[string]any
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		if refErr := dec.Decode(&want); refErr != nil || !json.Valid(line) || !utf8.Valid(line) {
			if err == nil {
				t.Fatalf("%q is accepted", line)
			}
			return
		}
		if err != nil {
			return // stricter: duplicate keys, depth, null
		}
		if !reflect.DeepEqual(row, want) {
			t.Fatalf("%q gives %v, want %v", line, row, want)
		}
	})
}

// Any file is either read or refused with an error that names it.
func FuzzSource(f *testing.F) {
	files, err := filepath.Glob("testdata/*o*/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"input":"q","target":"a"}`))
	f.Add([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "t")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := readPath(path)
		if err != nil {
			var row RowError
			if !bytes.Contains([]byte(err.Error()), []byte(path)) || errors.As(err, &row) && row.Line < 1 && row.Row < 1 {
				t.Fatalf("error without place: %v", err)
			}
			return
		}
		second, err := readPath(path)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("read again: %v, %v, want %v", second, err, first)
		}
	})
}

func readPath(path string) (any, error) {
	s, err := Open(Options{Path: path})
	if err != nil {
		return nil, err
	}
	return collect(s.Tasks())
}

func FuzzSniff(f *testing.F) {
	f.Add([]byte("PAR1"))
	f.Add([]byte("\xef\xbb\xbf {"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, head []byte) {
		kind, err := sniff(head, "t.csv")
		text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(utf8BOM)), " \t\r\n")
		if (err == nil && kind == jsonl) != (len(text) > 0 && text[0] == '{') {
			t.Fatalf("%q is %v, %v", head, kind, err)
		}
	})
}
