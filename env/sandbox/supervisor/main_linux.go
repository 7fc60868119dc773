package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main serves as the supervisor if args ask for it, until the harness closes
// the channel or dies, and then ends all other processes. Only then does it
// report that it has handled the arguments, and main has nothing left to do.
func Main(args []string) (handled bool) {
	if len(args) < 2 || args[1] != Arg {
		return false
	}
	withstandSignals()
	keepDescriptors()
	// The harness does not hear of an error here, for it has gone.
	_ = newServer(os.NewFile(1, "replies")).serve(os.NewFile(0, "requests"))
	return true
}

// withstandSignals lets no signal from commands end or stop the supervisor. They
// go to a channel that nobody reads; ignoring them instead would be inherited.
// Those that the runtime takes no notice of by itself are left out, for each one
// that it is asked to notice makes the start of every sandbox longer.
func withstandSignals() {
	signal.Notify(make(chan os.Signal, 1),
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT,
		syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGSTKFLT, syscall.SIGTERM,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGSYS)
}

// keepDescriptors keeps from commands whatever else the harness had open.
func keepDescriptors() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd") // Linux before 5.11
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// server answers the calls of one harness.
type server struct {
	w        *frameWriter
	children *children
	threads  *sync.WaitGroup // until there are all that will be needed
	scripts  atomic.Int64    // numbers those that are too long for an argument

	// Written by the first call, before any other is answered.
	setup   Setup
	shell   shell
	session *session

	mu    sync.Mutex
	calls map[uint32]*served
}

// served is one call being answered.
type served struct {
	body   *io.PipeWriter
	cancel context.CancelFunc
}

func newServer(to io.Writer) *server {
	return &server{
		w: &frameWriter{to: to}, children: newChildren(), calls: map[uint32]*served{},
		threads: roomForThreads(maxCalls + 3),
	}
}

// serve reads calls until the channel ends. The handlers read what belongs to
// their calls without delay, so that no call holds up the others.
func (s *server) serve(from io.Reader) error {
	r := bufio.NewReaderSize(from, frameChunk)
	defer s.end()
	for {
		f, err := readFrame(r)
		if err != nil {
			return err
		}
		if f.kind == frameCall {
			s.begin(f)
			continue
		}
		s.mu.Lock()
		call := s.calls[f.id]
		s.mu.Unlock()
		if call != nil {
			call.take(f)
		}
	}
}

// end leaves nothing behind. In a pid namespace of its own the end of the
// supervisor is the end of all, at once.
func (s *server) end() {
	if os.Getpid() == 1 {
		return
	}
	_ = s.children.killAll(context.Background())
	for _, dir := range s.setup.Remove {
		_ = RemoveTree(dir)
	}
}

func (c *served) take(f frame) {
	switch f.kind {
	case frameData:
		_, _ = c.body.Write(f.payload) // a handler that has ended wants no more
	case frameEnd:
		_ = c.body.Close()
	case frameCancel:
		_ = c.body.CloseWithError(context.Canceled)
		c.cancel()
	}
}

// begin starts to answer a call. The first one, the setup, is answered before
// any other is read.
func (s *server) begin(f frame) {
	ctx, cancel := context.WithCancel(context.Background())
	in, body := io.Pipe()
	s.mu.Lock()
	s.calls[f.id] = &served{body: body, cancel: cancel}
	s.mu.Unlock()
	answer := func() {
		got := s.answer(ctx, f, in)
		_ = in.Close()
		cancel()
		s.mu.Lock()
		delete(s.calls, f.id)
		s.mu.Unlock()
		_ = s.w.writeJSON(frameResult, f.id, got) // if this fails, the harness has gone
	}
	if s.session == nil {
		answer()
		return
	}
	go answer()
}

func (s *server) answer(ctx context.Context, f frame, body io.Reader) (got reply) {
	defer func() {
		if p := recover(); p != nil {
			got = reply{Error: &wireError{Text: fmt.Sprintf("the supervisor panicked: %v", p)}}
		}
	}()
	var req request
	if err := json.Unmarshal(f.payload, &req); err != nil {
		return reply{Error: toWire(fmt.Errorf("decoding a request: %w", err))}
	}
	value, err := s.dispatch(ctx, req, body, dataWriter{w: s.w, id: f.id})
	if err != nil {
		return reply{Error: toWire(err)}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return reply{Error: toWire(err)}
	}
	return reply{Value: raw}
}

func (s *server) dispatch(ctx context.Context, req request, body io.Reader, out io.Writer) (any, error) {
	if (s.session == nil) != (req.Op == opSetup) {
		return nil, errors.New("the first call, and only the first, is the setup")
	}
	switch req.Op {
	case opSetup:
		return decode(req, s.prepare)
	case opExec:
		return decode(req, func(args execArgs) (any, error) { return s.exec(ctx, args, body, out) })
	case opKill:
		return nil, s.children.killAll(ctx)
	case opRead:
		return decode(req, func(args readArgs) (any, error) { return s.read(args, out) })
	case opWrite:
		return decode(req, func(args writeArgs) (any, error) { return nil, s.write(args, body) })
	case opUpload:
		return decode(req, func(args treeArgs) (any, error) { return nil, s.upload(args, body) })
	case opDownload:
		return decode(req, func(args treeArgs) (any, error) { return nil, s.download(args, out) })
	}
	return nil, fmt.Errorf("unknown operation %q", req.Op)
}

// decode hands a request's arguments to its handler.
func decode[A any](req request, handle func(A) (any, error)) (any, error) {
	var args A
	if err := json.Unmarshal(req.Args, &args); err != nil {
		return nil, fmt.Errorf("decoding the arguments of %s: %w", req.Op, err)
	}
	return handle(args)
}
