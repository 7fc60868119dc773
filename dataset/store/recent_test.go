package store

import (
	"encoding/binary"
	"testing"
)

// What is remembered of tasks is bounded, and the latest are among it.
func TestRecentTasks(t *testing.T) {
	key := func(i int) (k [16]byte) {
		binary.LittleEndian.PutUint64(k[:], uint64(i))
		return k
	}
	var r recentTasks
	for i := range 3*maxRecentTasks + 7 {
		if !r.add(key(i)) {
			t.Fatalf("task %d is new and was taken for known", i)
		}
		if j := max(i-maxRecentTasks/2, 0); r.add(key(j)) {
			t.Fatalf("task %d is forgotten after task %d", j, i)
		}
	}
	if got := len(r.young) + len(r.old); got > 2*maxRecentTasks {
		t.Errorf("%d tasks are remembered, want at most %d", got, 2*maxRecentTasks)
	}
	if !r.add(key(0)) {
		t.Error("the first task is still remembered after many others")
	}
}
