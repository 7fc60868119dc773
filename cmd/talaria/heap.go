package main

// heapReserve is what the heap may grow by, beside doubling, before garbage is
// collected.
const heapReserve = 128 << 20

// reserveHeap makes collections rarer while the heap is small. A run of short
// episodes makes much garbage and keeps little: by Go's default it would
// collect every few megabytes and spend a fifth of its time on that. A heap of
// hundreds of megabytes keeps to the default, so that memory stays bounded.
//
// The reserve counts for the collector until the caller lets it go. It is never
// touched, so that it takes no memory of the machine, if it comes first: memory
// that was in use before would be cleared. Who has set GOGC or GOMEMLIMIT knows
// better, and gets none.
func reserveHeap(getenv func(string) string) []byte {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, heapReserve)
}
