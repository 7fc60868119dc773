package supervisor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// maxCalls bounds the calls that one supervisor serves at once, and with them
// its threads: see roomForThreads.
const maxCalls = 4

// patience is how much later than promised an answer may come before the
// supervisor counts as lost: the machine may be busy.
const patience = 30 * time.Second

// Client is the harness's end of the channel to a supervisor. It is safe for
// concurrent use. Its methods are those of a [sandbox.Sandbox] but for Info and
// Close, which are the backend's.
type Client struct {
	w     *frameWriter
	end   io.Closer     // of w
	turn  chan struct{} // of size one: held by the command that keeps state
	slots chan struct{} // one per call under way
	gone  chan struct{} // closed by receive, when nothing more can come

	mu    sync.Mutex
	calls map[uint32]*call
	last  uint32
	why   error // set before gone is closed
}

// call is one call under way. Only the receiving goroutine uses out, and sets it
// to nil before it sends a reply or a failure.
type call struct {
	out    io.Writer
	reply  chan reply // at most one, from receive
	failed chan error // at most one, from receive: out takes no more
}

// NewClient speaks to a supervisor through its standard streams. A goroutine
// reads from r until it ends; the caller closes r when the supervisor has ended,
// and w to end it. The client closes w by itself when the channel is broken.
func NewClient(r io.Reader, w io.WriteCloser) *Client {
	c := &Client{
		w:     &frameWriter{to: w},
		end:   w,
		turn:  make(chan struct{}, 1),
		slots: make(chan struct{}, maxCalls),
		gone:  make(chan struct{}),
		calls: map[uint32]*call{},
	}
	go c.receive(bufio.NewReaderSize(r, frameChunk))
	return c
}

// Gone is closed when the channel has ended, and with it the supervisor.
func (c *Client) Gone() <-chan struct{} { return c.gone }

// Setup prepares the supervisor; it must be the first call.
func (c *Client) Setup(ctx context.Context, setup Setup) (Observed, error) {
	var seen Observed
	err := c.call(ctx, opSetup, setup, nil, nil, &seen)
	return seen, err
}

// Exec implements [sandbox.Sandbox]. Commands that wait for their turn do so
// here, where they are in nobody's way.
func (c *Client) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	args, err := newExecArgs(cmd)
	if err != nil {
		return sandbox.Result{}, err
	}
	if !cmd.Fresh {
		select {
		case c.turn <- struct{}{}:
			defer func() { <-c.turn }()
		case <-ctx.Done():
			return sandbox.Result{}, fmt.Errorf("running a command: %w", context.Cause(ctx))
		}
	}
	var value execValue
	output := &bounded{room: args.MaxOutput}
	if err := c.call(ctx, opExec, args, bytes.NewReader(cmd.Stdin), output, &value); err != nil {
		return sandbox.Result{}, fmt.Errorf("running a command: %w", err)
	}
	return value.result(output.data), nil
}

// Kill implements [sandbox.Sandbox].
func (c *Client) Kill(ctx context.Context) error {
	return c.call(ctx, opKill, nil, nil, nil, nil)
}

// ReadFile implements [sandbox.Files].
func (c *Client) ReadFile(ctx context.Context, name string, offset, limit int64) (sandbox.File, error) {
	if limit <= 0 || limit > sandbox.MaxRead {
		limit = sandbox.MaxRead
	}
	var value readValue
	content := &bounded{room: int(limit)}
	err := c.call(ctx, opRead, readArgs{Name: name, Offset: offset, Limit: limit}, nil, content, &value)
	if err != nil {
		return sandbox.File{}, err
	}
	return sandbox.File{Data: content.data, Size: value.Size, Mode: value.Mode, ModTime: value.ModTime}, nil
}

// WriteFile implements [sandbox.Files].
func (c *Client) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	return c.call(ctx, opWrite, writeArgs{Name: name, Mode: mode}, bytes.NewReader(data), nil, nil)
}

// Upload implements [sandbox.Files].
func (c *Client) Upload(ctx context.Context, dir string, tree io.Reader) error {
	return c.call(ctx, opUpload, treeArgs{Name: dir}, tree, nil, nil)
}

// Download implements [sandbox.Files].
func (c *Client) Download(ctx context.Context, name string, tree io.Writer) error {
	return c.call(ctx, opDownload, treeArgs{Name: name}, nil, tree, nil)
}

// bounded holds what a peer may send, and no more.
type bounded struct {
	data []byte
	room int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.room {
		return 0, errors.New("the sandbox's supervisor sent more than it was asked for")
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// call performs one operation: it sends args and the body, hands data to out as
// it comes, and decodes the value of the reply. Kill waits for no other call.
func (c *Client) call(ctx context.Context, op string, args any, body io.Reader, out io.Writer, value any) error {
	if op != opKill {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-c.gone:
		return c.lost()
	default:
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late, unwatch := c.watch(ctx)
	defer unwatch()
	id, pending := c.register(out)
	defer c.forget(id)
	if err := c.open(id, op, args); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	err := c.send(ctx, id, body, pending)
	var got reply
	if err == nil {
		got, err = c.await(ctx, pending)
	}
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
		stop(err)
		return c.giveUp(id, pending, late, err)
	}
	select {
	case err := <-pending.failed: // before the reply: see await
		return err
	default:
	}
	switch {
	case got.Error != nil:
		return got.Error.err()
	case value == nil:
		return nil
	}
	return json.Unmarshal(got.Value, value)
}

// watch gives the supervisor a while to stop what is done in ctx once that has
// ended. After that the channel is given up: it may be that nobody reads what we
// are writing.
func (c *Client) watch(ctx context.Context) (late <-chan struct{}, unwatch func()) {
	gaveUp, done := make(chan struct{}), make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			_ = c.end.Close() // it was of no use
			close(gaveUp)
		}
	})
	return gaveUp, func() {
		forget()
		close(done)
	}
}

func (c *Client) register(out io.Writer) (uint32, *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	pending := &call{out: out, reply: make(chan reply, 1), failed: make(chan error, 1)}
	c.calls[c.last] = pending
	return c.last, pending
}

func (c *Client) forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// open begins a call.
func (c *Client) open(id uint32, op string, args any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	return c.w.writeJSON(frameCall, id, request{Op: op, Args: raw})
}

// send sends the body of a call, of which it drops the rest once there is a
// reply.
func (c *Client) send(ctx context.Context, id uint32, body io.Reader, pending *call) error {
	piece := make([]byte, frameChunk)
	for body != nil && len(pending.reply) == 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := body.Read(piece)
		if n > 0 {
			if err := c.w.write(frame{kind: frameData, id: id, payload: piece[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	return c.w.write(frame{kind: frameEnd, id: id})
}

// await waits for the reply, which counts though the channel ended behind it. A
// failure and the reply that followed it may both be there already: then it takes
// either.
func (c *Client) await(ctx context.Context, pending *call) (reply, error) {
	select {
	case got := <-pending.reply:
		return got, nil
	case err := <-pending.failed:
		return reply{}, err
	case <-c.gone:
		select {
		case got := <-pending.reply:
			return got, nil
		default:
			return reply{}, c.lost()
		}
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// giveUp ends a call that nobody wants any more and waits until the supervisor
// has stopped it, so that nothing of it runs on. It returns why.
func (c *Client) giveUp(id uint32, pending *call, late <-chan struct{}, why error) error {
	if c.w.write(frame{kind: frameCancel, id: id}) != nil {
		return why
	}
	select {
	case <-pending.reply:
		return why
	case <-c.gone:
		return errors.Join(why, c.lost())
	case <-late:
		return errors.Join(why, errors.New("the sandbox's supervisor does not answer"))
	}
}

func (c *Client) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.New("the sandbox is gone: " + c.why.Error()) // see frameWriter.write
}

// receive hands every frame to its call until the channel ends.
func (c *Client) receive(r *bufio.Reader) {
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(r); err == nil {
			err = c.take(f)
		}
	}
	c.mu.Lock()
	c.why = err
	c.mu.Unlock()
	close(c.gone)
	_ = c.end.Close() // wakes those who write to nobody
}

func (c *Client) take(f frame) error {
	c.mu.Lock()
	pending := c.calls[f.id]
	c.mu.Unlock()
	if pending == nil {
		return nil // nobody waits for it any more
	}
	switch f.kind {
	case frameData:
		c.takeData(f, pending)
		return nil
	case frameResult:
		var got reply
		if err := json.Unmarshal(f.payload, &got); err != nil {
			return fmt.Errorf("decoding a reply: %w", err)
		}
		pending.out = nil
		select {
		case pending.reply <- got:
		default: // a second reply: the peer is broken, the first one counts
		}
		return nil
	}
	return fmt.Errorf("supervisor: unexpected message %q", f.kind)
}

// takeData passes data on. When the taker fails the call is given up, but the
// channel goes on.
func (c *Client) takeData(f frame, pending *call) {
	if pending.out == nil {
		return
	}
	if _, err := pending.out.Write(f.payload); err != nil {
		pending.out = nil
		pending.failed <- err
	}
}
