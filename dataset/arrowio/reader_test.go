package arrowio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/google/go-cmp/cmp"
)

// rows reads to the end.
func rows(r io.Reader) (n int, err error) {
	a, err := NewReader(r)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	for {
		if _, err := a.Next(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

// A table that is cut off anywhere is never taken for a whole one.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{"same.stream", "same.arrow", "same.feather", "types.stream"} {
		data, err := os.ReadFile(filepath.Join("..", "source", "testdata", "formats", name))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := rows(bytes.NewReader(data)); err != nil || n < 3 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		for cut := range data {
			if n, err := rows(bytes.NewReader(data[:cut])); err == nil {
				t.Errorf("%s cut off after %d bytes gives %d rows and no error", name, cut, n)
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s cut off after %d bytes: an error of several lines: %q", name, cut, err)
			}
		}
	}
}

// What the reader below says goes before what becomes of it.
func TestReadError(t *testing.T) {
	data, err := os.ReadFile("../source/testdata/formats/same.stream")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is broken")
	_, err = rows(io.MultiReader(bytes.NewReader(data[:700]), failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func sums() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "input", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
}

// batches writes so many batches of 1000 rows.
func batches(w io.Writer, count int) error {
	out := ipc.NewWriter(w, ipc.WithSchema(sums()))
	for b := range count {
		builder := array.NewRecordBuilder(memory.DefaultAllocator, sums())
		for i := range 1000 {
			builder.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("row %d of batch %d %s", i, b, strings.Repeat("x", 200)))
			builder.Field(1).(*array.Int64Builder).Append(int64(i))
		}
		rec := builder.NewRecord()
		if err := out.Write(rec); err != nil {
			return err
		}
		rec.Release()
	}
	return out.Close()
}

// One batch is in memory, however many there are.
func TestBoundedMemory(t *testing.T) {
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(batches(w, 200)) }()
	a, err := NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	before, most := alive(), int64(0)
	n := 0
	for ; ; n++ {
		if n%50_000 == 0 {
			most = max(most, alive()-before)
		}
		if _, err := a.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 200_000 || most > 8<<20 {
		t.Errorf("%d rows, %d bytes alive; want 200000 rows and at most 8 MiB of 50 MB", n, most)
	}
}

func alive() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A row that cannot be a row is told, and the next one is read.
func TestBadRow(t *testing.T) {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, sums())
	builder.Field(0).(*array.StringBuilder).AppendValues([]string{"a", "\xff", "c"}, nil)
	builder.Field(1).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	var b bytes.Buffer
	out := ipc.NewWriter(&b, ipc.WithSchema(sums()))
	if err := errors.Join(out.Write(builder.NewRecord()), out.Close()); err != nil {
		t.Fatal(err)
	}
	a, err := NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got := make([]string, 0, 3)
	for range 3 {
		row, err := a.Next()
		got = append(got, fmt.Sprint(row, " ", err))
	}
	want := []string{
		"map[input:a n:1] <nil>",
		`map[] the column "input": its text is not valid UTF-8; write the column as binary or mend the text`,
		"map[input:c n:3] <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
}
