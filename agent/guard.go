package agent

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
)

// panicError is a panic of an env or a tool.
type panicError struct{ text string }

func (e *panicError) Error() string { return e.text }

func panicked(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

// panicPrefix begins the text of a panic.
const panicPrefix = "panic: "

// guard calls f and makes an error of its panic. A panic that was carried here
// from another goroutine tells of itself, with the stack that it had there.
func guard(f func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		text := fmt.Sprint(v)
		if !strings.HasPrefix(text, panicPrefix) {
			text = panicPrefix + text + "\n" + stack()
		}
		err = &panicError{text: text}
	}()
	return f()
}

// maxFrames bounds the stack that a row keeps.
const maxFrames = 16

// stack lists the frames from the panic to the guard whose deferred function
// calls it, innermost first, without addresses and goroutine numbers: the same
// panic gives the same row.
func stack() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var b strings.Builder
	raised := false
	for kept := 0; kept < maxFrames; {
		f, more := frames.Next()
		if raised && strings.HasSuffix(f.Function, "/agent.guard") {
			break
		}
		if raised && !strings.HasPrefix(f.Function, "runtime.") {
			fmt.Fprintf(&b, "%s %s:%d\n", f.Function, path.Base(f.File), f.Line)
			kept++
		}
		raised = raised || f.Function == "runtime.gopanic"
		if !more {
			break
		}
	}
	return b.String()
}
