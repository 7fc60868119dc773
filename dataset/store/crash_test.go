package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
)

// inBubble tells a story with a fixed order of operations.
func inBubble(t *testing.T, st *story, fsys FS) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		st.settle = synctest.Wait
		st.tell(fsys)
	})
}

// brief reports whether a sweep is to take samples only.
func brief() bool { return testing.Short() || underRace }

// TestCrashAtEveryOperation stops the process at each operation of the file
// layer in turn, at some of them in a brief test.
func TestCrashAtEveryOperation(t *testing.T) {
	stride := 1
	if brief() {
		stride = 17
	}
	for _, sequences := range []bool{false, true} {
		t.Run(fmt.Sprintf("sequences=%t", sequences), func(t *testing.T) {
			read, n := map[string]*Rows{}, 0
			for !crashAt(t, n, &story{sequences: sequences, parts: read}) {
				n += stride
			}
			if n < 300 {
				t.Errorf("the story has only %d operations", n)
			}
		})
	}
}

// crashAt stops a story at its n-th operation and reports whether it had come
// to its end before.
func crashAt(t *testing.T, n int, st *story) (ended bool) {
	t.Helper()
	fsys := newMemFS()
	fsys.before = func(op memOp) fault { return fault{stop: op.n == n, half: n%2 == 0} }
	inBubble(t, st, fsys)
	for i, mode := range []crashMode{dropUnsynced, keepUnsynced, mixUnsynced} {
		if mode == mixUnsynced && n%3 > 0 {
			continue
		}
		st.where = fmt.Sprintf("stopped at %s, %s unsynced", last(fsys.log), mode)
		st.verify(t, fsys.crash(mode, uint64(n)), mode, (n+i)%5 == 0)
	}
	return st.closed
}

func last(log []string) string {
	if len(log) == 0 {
		return "the start"
	}
	return log[len(log)-1]
}

// TestCrashInRecovery stops the process at each operation of Open, after a
// crash that left parts, segments and call lines.
func TestCrashInRecovery(t *testing.T) {
	read, stride := map[string]*Rows{}, 1
	if brief() {
		stride = 6
	}
	for _, at := range []int{100, 180} {
		st := &story{sequences: true, parts: read}
		first := newMemFS()
		first.before = func(op memOp) fault { return fault{stop: op.n == at} }
		inBubble(t, st, first)
		for _, mode := range []crashMode{dropUnsynced, keepUnsynced} {
			for n := 0; !recoveryStopsAt(t, n, st, first, mode); n += stride {
			}
		}
	}
}

// recoveryStopsAt opens what a crash left, stops that at its n-th operation,
// and opens again. It reports whether Open had come to its end before.
func recoveryStopsAt(t *testing.T, n int, st *story, first *memFS, mode crashMode) (ended bool) {
	t.Helper()
	second := first.crash(mode, 0)
	second.before = func(op memOp) fault { return fault{stop: op.n == n, half: n%2 == 0} }
	s, err := Open(crashDir, st.options(second))
	if err == nil {
		mustClose(t, s)
		return true
	}
	for _, again := range []crashMode{dropUnsynced, keepUnsynced, mixUnsynced} {
		st.where = fmt.Sprintf("stopped at %s, %s unsynced, then in recovery at %s, %s unsynced",
			last(first.log), mode, last(second.log), again)
		st.verify(t, second.crash(again, uint64(n)), mode, false)
	}
	return false
}

// TestFaultThenCrash makes each operation fail in turn and stops the process
// two operations later, while the store goes on in a new segment or tries again.
func TestFaultThenCrash(t *testing.T) {
	read := map[string]*Rows{}
	stride := 1
	if brief() {
		stride = 19
	}
	for n := 0; ; n += stride {
		failure := []error{syscall.EIO, syscall.ENOSPC}[n/stride%2]
		st := &story{parts: read}
		fsys := newMemFS()
		fsys.before = func(op memOp) fault {
			switch op.n {
			case n:
				return fault{err: failure, half: true}
			case n + 2:
				return fault{stop: true}
			}
			return fault{}
		}
		inBubble(t, st, fsys)
		for _, mode := range []crashMode{dropUnsynced, keepUnsynced} {
			st.where = fmt.Sprintf("%v at operation %d, stopped at %s, %s unsynced", failure, n, last(fsys.log), mode)
			st.verify(t, fsys.crash(mode, 0), mode, false)
		}
		if st.closed {
			return
		}
	}
}

// TestFaultsThenCrash makes some operations fail and then stops the process:
// what was acknowledged in spite of the failures must be there.
func TestFaultsThenCrash(t *testing.T) {
	rounds := 100
	if brief() {
		rounds = 20
	}
	read := map[string]*Rows{}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		stop := rng.IntN(300)
		failing := []int{rng.IntN(250), rng.IntN(250), rng.IntN(250)}
		failure := []error{syscall.EIO, syscall.ENOSPC}[rng.IntN(2)]
		st := &story{sequences: seed%2 == 0, parts: read}
		fsys := newMemFS()
		fsys.before = func(op memOp) fault {
			switch {
			case op.n == stop:
				return fault{stop: true, half: true}
			case slices.Contains(failing, op.n):
				return fault{err: failure, half: op.n%2 == 0}
			}
			return fault{}
		}
		synctest.Test(t, func(*testing.T) {
			st.settle = func() {}
			st.tell(fsys)
		})
		for _, mode := range []crashMode{dropUnsynced, keepUnsynced, mixUnsynced} {
			st.where = fmt.Sprintf("seed %d: %v at %v, stopped at %d, %s", seed, failure, failing, stop, mode)
			st.verify(t, fsys.crash(mode, uint64(seed)), mode, seed%4 == 0)
		}
	}
}
