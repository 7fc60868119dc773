package supervisor

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// A frame is its kind (1 byte), the id of its call (4), the length of its
// payload (4), and the payload; integers are big-endian. A call opens with
// frameCall, goes on with any number of frameData in either direction and
// frameEnd from the caller, and ends with frameResult; frameCancel asks for the
// result to come soon.
type frame struct {
	kind    byte
	id      uint32
	payload []byte
}

const (
	frameCall   = 'C' // payload: request as JSON
	frameData   = 'D' // raw bytes
	frameEnd    = 'E' // no more data from the caller
	frameCancel = 'X'
	frameResult = 'R' // payload: reply as JSON
)

const (
	frameHead  = 9
	frameChunk = 64 << 10 // data is cut into pieces of this size
	// frameMax bounds what a hostile peer can make us allocate, and holds a
	// request of sandbox.MaxInput bytes in base64.
	frameMax = 16 << 20
)

// frameWriter writes frames whole, from any goroutine.
type frameWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *frameWriter) write(f frame) error {
	if len(f.payload) > frameMax {
		return fmt.Errorf("supervisor: a message of %d bytes is too long", len(f.payload))
	}
	buf := make([]byte, 0, frameHead+len(f.payload))
	buf = append(buf, f.kind)
	buf = binary.BigEndian.AppendUint32(buf, f.id)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(f.payload))) //nolint:gosec // at most frameMax
	buf = append(buf, f.payload...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.to.Write(buf); err != nil {
		// Not wrapped: an error of a file would pass for one in the sandbox.
		return errors.New("the channel to the sandbox: " + err.Error())
	}
	return nil
}

// writeJSON writes v as a frame's payload.
func (w *frameWriter) writeJSON(kind byte, id uint32, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.write(frame{kind: kind, id: id, payload: payload})
}

func readFrame(r *bufio.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[5:])
	if n > frameMax {
		return frame{}, fmt.Errorf("supervisor: a message of %d bytes is too long", n)
	}
	f := frame{kind: head[0], id: binary.BigEndian.Uint32(head[1:])}
	if n == 0 {
		return f, nil
	}
	f.payload = make([]byte, n)
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

// dataWriter is the data of one call in one direction.
type dataWriter struct {
	w  *frameWriter
	id uint32
}

func (d dataWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		piece := p[:min(len(p), frameChunk)]
		if err := d.w.write(frame{kind: frameData, id: d.id, payload: piece}); err != nil {
			return n, err
		}
		n += len(piece)
		p = p[len(piece):]
	}
	return n, nil
}

// request opens a call of one operation.
type request struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// The operations.
const (
	opSetup    = "setup"
	opExec     = "exec"
	opKill     = "kill"
	opRead     = "read"
	opWrite    = "write"
	opUpload   = "upload"
	opDownload = "download"
)

// reply ends a call: with an error, or with the operation's value.
type reply struct {
	Error *wireError      `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// wireError carries an error; one of a file operation keeps its parts.
type wireError struct {
	Text  string `json:"text"`
	Op    string `json:"op,omitempty"`
	Path  string `json:"path,omitempty"`
	Errno int    `json:"errno,omitempty"`
}

func toWire(err error) *wireError {
	wire := &wireError{Text: err.Error()}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		wire.Op, wire.Path, wire.Text = at.Op, at.Path, at.Err.Error()
		if errno, ok := errors.AsType[syscall.Errno](at.Err); ok {
			wire.Errno = int(errno)
		}
	}
	return wire
}

func (e *wireError) err() error {
	inner := errors.New(e.Text)
	if e.Errno != 0 {
		inner = syscall.Errno(e.Errno)
	}
	if e.Op == "" {
		return inner
	}
	return &fs.PathError{Op: e.Op, Path: e.Path, Err: inner}
}

// execArgs is a sandbox.Command without its standard input, which travels as
// data. The script is bytes, because JSON would mend what is not UTF-8.
type execArgs struct {
	Script    []byte            `json:"script"`
	Cwd       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Timeout   time.Duration     `json:"timeout,omitempty"`
	MaxOutput int               `json:"max_output,omitempty"`
	Fresh     bool              `json:"fresh,omitempty"`
}

func newExecArgs(cmd sandbox.Command) (execArgs, error) {
	script := []byte(cmd.Script)
	switch {
	case (cmd.Script == "") == (len(cmd.Argv) == 0):
		return execArgs{}, errors.New("a command has either a script or arguments")
	case len(cmd.Argv) > 0:
		script = []byte(sandbox.Quote(cmd.Argv...))
	}
	size := len(script)
	for name, value := range maps.All(cmd.Env) {
		size += len(name) + len(value)
	}
	if size > sandbox.MaxInput || len(cmd.Stdin) > sandbox.MaxInput {
		return execArgs{}, fmt.Errorf("a command of more than %d bytes; write it to a file", sandbox.MaxInput)
	}
	return execArgs{
		Script: script, Cwd: cmd.Cwd, Env: cmd.Env, Timeout: cmd.Timeout,
		MaxOutput: cmp.Or(cmd.MaxOutput, sandbox.DefaultMaxOutput), Fresh: cmd.Fresh,
	}, nil
}

// execValue is a sandbox.Result without its output, which travels as data.
type execValue struct {
	Omitted    int64         `json:"omitted,omitempty"`
	Gap        int           `json:"gap,omitempty"`
	ExitCode   int           `json:"exit_code"`
	TimedOut   bool          `json:"timed_out,omitempty"`
	Duration   time.Duration `json:"duration"`
	RolledBack bool          `json:"rolled_back,omitempty"`
}

func (v execValue) result(output []byte) sandbox.Result {
	return sandbox.Result{
		Output: output, Omitted: v.Omitted, Gap: min(v.Gap, len(output)), ExitCode: v.ExitCode,
		TimedOut: v.TimedOut, Duration: v.Duration, StateRolledBack: v.RolledBack,
	}
}

type readArgs struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset,omitempty"`
	Limit  int64  `json:"limit"`
}

type readValue struct {
	Size    int64       `json:"size"`
	Mode    fs.FileMode `json:"mode"`
	ModTime time.Time   `json:"mod_time"`
}

type writeArgs struct {
	Name string      `json:"name"`
	Mode fs.FileMode `json:"mode,omitempty"`
}

type treeArgs struct {
	Name string `json:"name"`
}
