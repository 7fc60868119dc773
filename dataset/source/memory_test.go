package source

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A stream holds one row at a time and 32 bytes for each row before it, whose
// size does not matter. Counted are the bytes that are alive, not those that
// wait for the collector.
func TestBoundedMemory(t *testing.T) {
	const total, rowBytes = 200_000, 64
	path := filepath.Join(t.TempDir(), "t.jsonl.gz")
	writeRows(t, path, total, rowBytes)
	s, err := Open(Options{Path: path, Columns: map[string]string{ID: "id"}})
	if err != nil {
		t.Fatal(err)
	}
	before := alive()
	n, most := 0, int64(0)
	for _, err := range s.Tasks() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%(total/4) == 0 {
			most = max(most, alive()-before)
		}
	}
	if n != total {
		t.Fatalf("%d tasks, want %d", n, total)
	}
	// At most twice the entries' 20 bytes while the table grows, and the buffers.
	if bound := int64(total*48 + 2<<20); most > bound {
		t.Errorf("%d bytes alive for %d rows of %d bytes, want at most %d", most, total, rowBytes, bound)
	}
	t.Logf("%.1f bytes a row", float64(most)/total)
}

func writeRows(t *testing.T, path string, total, size int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := bufio.NewWriter(z)
	input := strings.Repeat("x", size)
	for i := range total {
		if _, err := fmt.Fprintf(w, `{"id":"row-%d","input":"%s","target":"a"}`+"\n", i, input); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func alive() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
