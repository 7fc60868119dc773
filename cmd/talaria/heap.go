package main

import "runtime/debug"

// The heap may grow by heapGrowth percent of what is in use, and of a reserve,
// before garbage is collected.
const (
	heapGrowth  = 30
	heapReserve = 320 << 20
)

// reserveHeap makes collections rarer while the heap is small, and the heap
// smaller when it is large. A run of short episodes makes much garbage and
// keeps little: by Go's default it would collect every few megabytes and spend a
// fifth of its time on that. Thousands of episodes in flight keep much, and by
// Go's default as much garbage again.
//
// The reserve counts for the collector until the caller lets it go. It is never
// touched, so that it takes no memory of the machine, if it comes first: memory
// that was in use before would be cleared. Who has set GOGC or GOMEMLIMIT knows
// better: nothing is changed.
func reserveHeap(getenv func(string) string) []byte {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	debug.SetGCPercent(heapGrowth)
	return make([]byte, heapReserve)
}
