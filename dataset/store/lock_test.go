package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever looks at the lock learns who holds it, leaves nothing behind, and is
// not in the way of a writer.
func TestWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, writing, err := Writer(dir); writing || err != nil {
		t.Errorf("without a lock file: %t, %v", writing, err)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("looking left %v, %v", entries, err)
	}
	s, err := Create(dir, sampleRun(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	owner, writing, err := Writer(dir)
	if !writing || !strings.HasPrefix(owner, "pid ") || err != nil {
		t.Errorf("while it is written: %q, %t, %v", owner, writing, err)
	}
	mustClose(t, s)
	if _, writing, err := Writer(dir); writing || err != nil {
		t.Errorf("after it was written: %t, %v", writing, err)
	}
}
