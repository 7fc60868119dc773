package source

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// A stream holds one row at a time and 32 bytes for each row before it, whose
// size does not matter. Counted are the bytes that are alive, not those that
// wait for the collector.
func TestBoundedMemory(t *testing.T) {
	const total = 200_000
	for name, write := range map[string]func(*testing.T, string, int){
		"t.jsonl.gz": writeJSONL, "t.csv": writeCSV, "t.parquet": writeParquet,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			write(t, path, total)
			s, err := Open(Options{Path: path, Columns: map[string]string{ID: "id"}})
			if err != nil {
				t.Fatal(err)
			}
			most := mostAlive(t, s, total)
			// At most twice the entries' 20 bytes while the table grows, and the buffers.
			if bound := int64(total*48 + 4<<20); most > bound {
				t.Errorf("%d bytes alive for %d rows, want at most %d", most, total, bound)
			}
			t.Logf("%.1f bytes a row", float64(most)/total)
		})
	}
}

// mostAlive reads all tasks, of which there have to be total, and returns how
// many bytes were alive at most.
func mostAlive(t *testing.T, s *Source, total int) (most int64) {
	t.Helper()
	before := alive()
	n := 0
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
	return most
}

// bigRow is a row of the tests of memory: 200,000 of them take 50 MB.
type bigRow struct {
	ID     string `parquet:"id" json:"id"`
	Input  string `parquet:"input" json:"input"`
	Target string `parquet:"target,dict" json:"target"`
}

func bigRows(total int) iter.Seq[bigRow] {
	return func(yield func(bigRow) bool) {
		for i := range total {
			id := fmt.Sprintf("row-%d", i)
			if !yield(bigRow{id, strings.Repeat(id+" ", 20), "a"}) {
				return
			}
		}
	}
}

func writeJSONL(t *testing.T, path string, total int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	enc := json.NewEncoder(z)
	for row := range bigRows(total) {
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func writeCSV(t *testing.T, path string, total int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	_ = w.Write([]string{"id", "input", "target"})
	for row := range bigRows(total) {
		_ = w.Write([]string{row.ID, row.Input, row.Target})
	}
	w.Flush()
	if err := errors.Join(w.Error(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func writeParquet(t *testing.T, path string, total int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[bigRow](f, parquet.MaxRowsPerRowGroup(int64(total/4)), parquet.Compression(&parquet.Zstd))
	for row := range bigRows(total) {
		if _, err := w.Write([]bigRow{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func alive() int64 {
	runtime.GC()
	runtime.GC() // what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
