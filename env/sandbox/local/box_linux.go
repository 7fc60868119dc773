package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

// kind is what has to be known of a sandbox when its processes start. Those of
// one kind can be started before it is known what for.
type kind struct {
	network      string
	files        int64 // how large its own file system may become; 0: no limit
	memory, pids bool  // whether it needs a cgroup for them
}

// kindOf is what a spec needs. The files are never without a limit if memory has
// one, for they lie in memory.
func kindOf(spec sandbox.Spec) kind {
	return kind{
		network: cmp.Or(spec.Network, sandbox.NetworkNone),
		files:   cmp.Or(spec.Disk, spec.Memory),
		memory:  spec.Memory > 0,
		pids:    spec.Pids > 0,
	}
}

// box is one sandbox.
type box struct {
	*supervisor.Client
	b    *Backend
	kind kind
	spec sandbox.Spec // from furnish on
	info sandbox.Info

	user    int // 0: the harness's own
	group   *group
	dir     string // of an unconfined one
	cmd     *exec.Cmd
	channel channel

	closing sync.Once
	closed  error
	undo    []func(context.Context) error // in the order of what they undo
}

var _ sandbox.Sandbox = (*box)(nil)

func newBox(b *Backend, k kind) *box {
	return &box{b: b, kind: k, info: sandbox.Info{ID: newToken(), Backend: Name}}
}

// Info implements [sandbox.Sandbox].
func (s *box) Info() sandbox.Info { return s.info }

func (s *box) defers(undo func(context.Context) error) { s.undo = append(s.undo, undo) }

// launch starts the processes of the sandbox, which boot by themselves. What it
// has got by the time it fails is for Close to give back.
func (s *box) launch(ctx context.Context) error {
	s.defers(func(context.Context) error { s.b.dismiss(s); return nil })
	if err := s.takeUser(); err != nil {
		return err
	}
	var err error
	s.group, err = s.b.cgroups.newGroup(s.info.ID, s.kind)
	s.defers(s.group.remove)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// furnish makes of a sandbox that boots what the spec asks for.
func (s *box) furnish(ctx context.Context, spec sandbox.Spec) error {
	s.spec = spec
	leave, err := s.b.owner.enter(record{
		ID: s.info.ID, Labels: spec.Labels, Started: time.Now().UTC(), Confined: s.b.Confined(),
	})
	s.defers(func(context.Context) error { return leave() })
	if err != nil {
		return err
	}
	seen, err := s.Setup(ctx, s.setup())
	if err != nil && s.gone() {
		return errors.Join(err, s.complaint())
	}
	if err != nil {
		return err
	}
	return s.settle(seen)
}

// gone tells whether the supervisor has ended.
func (s *box) gone() bool {
	select {
	case <-s.Gone():
		return true
	default:
		return false
	}
}

// takeUser takes a user for the sandbox, if there is a choice.
func (s *box) takeUser() error {
	if s.b.users == nil {
		return nil
	}
	id, release, err := s.b.users.take()
	if err != nil {
		return err
	}
	s.user = id
	s.defers(func(context.Context) error { return release() })
	return nil
}

// channel are the ends of the supervisor's standard streams.
type channel struct{ requests, replies, complaints *os.File }

func (c channel) close() error {
	var errs []error
	for _, f := range []*os.File{c.requests, c.replies, c.complaints} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// connect makes a channel and puts its other ends into cmd. The caller closes
// those once cmd is started.
func (c *channel) connect(cmd *exec.Cmd) (ends []*os.File, err error) {
	stdin, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.requests = requests
	replies, stdout, err := os.Pipe()
	if err != nil {
		return []*os.File{stdin}, err
	}
	c.replies = replies
	complaints, stderr, err := os.Pipe()
	if err != nil {
		return []*os.File{stdin, stdout}, err
	}
	c.complaints = complaints
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	return []*os.File{stdin, stdout, stderr}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // ends that another process has now
	}
}

// run starts the supervisor, by bubblewrap where that is at hand, and speaks to
// it from then on.
func (s *box) run(ctx context.Context) error {
	alone := context.WithoutCancel(ctx) // it outlives the start
	if s.b.Confined() {
		s.cmd = s.b.bwrap.command(alone, s.kind)
	} else {
		s.cmd = exec.CommandContext(alone, selfPath, supervisor.Arg) //nolint:gosec // our own program
		if err := s.makeDir(); err != nil {
			return err
		}
	}
	s.defers(func(context.Context) error { return s.channel.close() })
	ends, err := s.channel.connect(s.cmd)
	defer closeAll(ends)
	if err != nil {
		return err
	}
	err = s.spawn()
	if s.cmd.Process != nil {
		s.defers(s.end)
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", s.cmd.Path, err)
	}
	s.Client = supervisor.NewClient(s.channel.replies, s.channel.requests)
	return nil
}

// spawn starts the command within its cgroups.
func (s *box) spawn() error {
	s.cmd.ExtraFiles = []*os.File{s.b.self}
	s.cmd.Dir = "/"
	// Two threads do for a supervisor, however large the machine and its share of
	// it, which to find out takes as long as a mount.
	s.cmd.Env = []string{
		"PATH=" + defaultPath, "GOMAXPROCS=2", "GODEBUG=containermaxprocs=0,updatemaxprocs=0", marker + "=" + s.info.ID,
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of Ctrl-C
	if s.user != 0 {
		s.cmd.SysProcAttr.Credential = credential(s.user)
	}
	return s.b.spawner.start(func() error { return s.group.start(s.cmd) })
}

// makeDir makes a folder for an unconfined sandbox.
func (s *box) makeDir() error {
	s.dir = filepath.Join(s.b.owner.dir, s.info.ID)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	s.defers(func(context.Context) error { return supervisor.RemoveTree(s.dir) })
	// Commands may have killed the supervisor before it could end them.
	s.defers(func(ctx context.Context) error { return endMarked(ctx, map[string]bool{s.info.ID: true}) })
	if s.user == 0 {
		return nil
	}
	return os.Chown(s.dir, s.user, s.user)
}

// complaint is what bubblewrap or the supervisor said before it ended.
func (s *box) complaint() error {
	_ = s.channel.complaints.SetReadDeadline(time.Now().Add(time.Second))
	said, _ := io.ReadAll(io.LimitReader(s.channel.complaints, 4<<10))
	return explain(string(bytes.ToValidUTF8(said, []byte("?"))))
}

// Close implements [sandbox.Sandbox].
func (s *box) Close(ctx context.Context) error {
	s.closing.Do(func() {
		var errs []error
		for _, undo := range slices.Backward(s.undo) {
			errs = append(errs, undo(ctx))
		}
		if err := errors.Join(errs...); err != nil {
			s.closed = fmt.Errorf("closing sandbox %s: %w", s.info.ID, err)
		}
	})
	return s.closed
}

// patience is how long a supervisor may take to end by itself.
const patience = 10 * time.Second

// end ends all processes. The supervisor ends when its channel does, and all
// others with it or by it; if it does not, it is killed. Bubblewrap is not
// killed while it starts, but left to start a supervisor that ends at once:
// its child would wait for it for ever.
func (s *box) end(ctx context.Context) error {
	err := s.channel.requests.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil // the client has given up
	}
	s.channel.requests = nil
	ended := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // its status tells nothing
		close(ended)
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ended:
		return err
	case <-late.C:
	case <-ctx.Done():
	}
	// The supervisor dies with bubblewrap, and all others with the supervisor.
	_ = s.cmd.Process.Kill()
	err = errors.Join(err, endMarked(context.WithoutCancel(ctx), map[string]bool{s.info.ID: true}))
	late.Reset(patience)
	select {
	case <-ended:
		return err
	case <-late.C:
		return errors.Join(err, fmt.Errorf("process %d does not end", s.cmd.Process.Pid))
	}
}
