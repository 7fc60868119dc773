package runner

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/talaria-run/talaria/dataset"
)

// panicked is a panic on its way from the goroutine where it happened to the
// one that waits for it. It panics there again, so that the rollout may tell
// whose it was; the runner knows it by its reason.
type panicked struct {
	value  any
	stack  string
	reason dataset.ExitReason
}

// String is the text that a row keeps of the panic.
func (p *panicked) String() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// Error makes a panic that ended a scorer an error of that scorer.
func (p *panicked) Error() string { return p.String() }

// asPanicked is what a recover caught. One that comes from another goroutine
// keeps its own stack and reason.
func asPanicked(v any, reason dataset.ExitReason) *panicked {
	if p, ok := v.(*panicked); ok {
		return p
	}
	return &panicked{value: v, stack: stack(), reason: reason}
}

// maxFrames bounds the stack that a row keeps.
const maxFrames = 16

// stack lists the frames below the panic that the calling deferred function
// recovers. It holds no addresses and no goroutine numbers, so that the same
// panic gives the same row.
func stack() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var b strings.Builder
	for n, below := 0, false; n < maxFrames; {
		f, more := frames.Next()
		if below && !strings.HasPrefix(f.Function, "runtime.") {
			fmt.Fprintf(&b, "%s %s:%d\n", f.Function, path.Base(f.File), f.Line)
			n++
		}
		below = below || f.Function == "runtime.gopanic"
		if !more {
			break
		}
	}
	return b.String()
}

// maxShort bounds the error text of something that did not end the attempt.
const maxShort = 300

// short is the first line of s, cut to maxShort bytes.
func short(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) <= maxShort {
		return s
	}
	cut := maxShort
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
