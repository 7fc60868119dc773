package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every run reads its rows twice: to check and count them, and to feed them.
func BenchmarkTasks(b *testing.B) {
	const rows = 1000
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, `{"id":"t%d","question":"What is %d + %d? %s","answer":"%d"}`+"\n",
			i, i, i+1, strings.Repeat("Think about it with care. ", 20), 2*i+1)
	}
	path := filepath.Join(b.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	s, err := Open(Options{Path: path, Columns: map[string]string{ID: "id", Input: "question", Target: "answer"}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range s.Tasks() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}
