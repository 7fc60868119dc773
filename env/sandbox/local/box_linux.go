package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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

	"golang.org/x/sys/unix"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

// box is one sandbox.
type box struct {
	*supervisor.Client
	b    *Backend
	spec sandbox.Spec
	info sandbox.Info

	user    int // 0: the harness's own
	group   *group
	dir     string // of an unconfined one
	cmd     *exec.Cmd
	channel channel
	pid     int // of the supervisor
	pidfd   int // of the same, where it is process 1 of a namespace; else -1

	closing sync.Once
	closed  error
	undo    []func(context.Context) error // in the order of what they undo
}

var _ sandbox.Sandbox = (*box)(nil)

func newBox(b *Backend, spec sandbox.Spec) *box {
	return &box{b: b, spec: spec, pidfd: -1, info: sandbox.Info{ID: newToken(), Backend: Name}}
}

// Info implements [sandbox.Sandbox].
func (s *box) Info() sandbox.Info { return s.info }

func (s *box) defers(undo func(context.Context) error) { s.undo = append(s.undo, undo) }

// start brings the sandbox up. What it has got by the time it fails is for Close
// to give back.
func (s *box) start(ctx context.Context) error {
	s.defers(func(context.Context) error { s.b.dismiss(s); return nil })
	leave, err := s.b.owner.enter(record{
		ID: s.info.ID, Labels: s.spec.Labels, Started: time.Now().UTC(), Confined: s.b.Confined(),
	})
	s.defers(func(context.Context) error { return leave() })
	if err != nil {
		return err
	}
	if err := s.takeUser(); err != nil {
		return err
	}
	s.group, err = s.b.cgroups.newGroup(s.info.ID, s.memory(), s.spec.Pids)
	s.defers(s.group.remove)
	if err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	seen, err := s.Setup(ctx, s.setup())
	if err != nil {
		select {
		case <-s.Gone():
			return errors.Join(err, s.complaint())
		default:
			return err
		}
	}
	return s.settle(seen)
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

// files is how large the sandbox's own file system may become. It is never
// without a limit if memory has one, for its files are memory.
func (s *box) files() int64 { return cmp.Or(s.spec.Disk, s.spec.Memory) }

// memory is what the processes and the files may take together, which the
// kernel does not tell apart. Nothing but processes can thus run out of it, and
// ending those helps.
func (s *box) memory() int64 {
	if s.spec.Memory == 0 || !s.b.Confined() {
		return s.spec.Memory
	}
	return s.spec.Memory + s.files() + stateMax
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

// launch starts the supervisor, by bubblewrap where that is at hand, and speaks
// to it from then on.
func (s *box) launch(ctx context.Context) error {
	alone := context.WithoutCancel(ctx) // it outlives the start
	s.defers(func(context.Context) error { return s.channel.close() })
	var err error
	if s.b.Confined() {
		s.cmd = s.b.bwrap.command(alone, s.spec.Network, s.files())
		err = s.launchConfined(ctx)
	} else {
		s.cmd = exec.CommandContext(alone, "/proc/self/fd/3", supervisor.Arg) //nolint:gosec // our own program
		err = s.launchUnconfined()
	}
	if s.cmd.Process != nil {
		s.defers(s.end)
	}
	if err != nil {
		return err
	}
	s.Client = supervisor.NewClient(s.channel.replies, s.channel.requests)
	return nil
}

// spawn starts the command with the rest of what it needs.
func (s *box) spawn(extra ...*os.File) error {
	ends, err := s.channel.connect(s.cmd)
	defer closeAll(ends)
	if err != nil {
		return err
	}
	s.cmd.ExtraFiles = extra
	s.cmd.Dir = "/"
	// Two threads do for a supervisor, however large the machine.
	s.cmd.Env = []string{"PATH=" + defaultPath, "GOMAXPROCS=2", marker + "=" + s.info.ID}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of Ctrl-C
	if s.user != 0 {
		s.cmd.SysProcAttr.Credential = credential(s.user)
	}
	return s.b.spawner.start(s.cmd.Start)
}

// launchConfined holds bubblewrap back until the process that it makes, and all
// that come of that, are in their cgroups.
func (s *box) launchConfined(ctx context.Context) error {
	info, infoEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = info.Close() }()
	blockEnd, block, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{infoEnd})
		return err
	}
	defer func() { _ = block.Close() }() // which lets bubblewrap go on
	err = s.spawn(infoEnd, blockEnd, s.b.self)
	closeAll([]*os.File{infoEnd, blockEnd})
	if err != nil {
		return fmt.Errorf("running bubblewrap: %w", err)
	}
	if s.pid, err = madeBy(ctx, info); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return s.complaint()
	}
	if s.pidfd, err = unix.PidfdOpen(s.pid, 0); err != nil {
		return fmt.Errorf("holding on to a sandbox's process: %w", err)
	}
	s.defers(func(context.Context) error { return unix.Close(s.pidfd) })
	return s.group.add(s.pid)
}

// madeBy reads from bubblewrap which process it has made.
func madeBy(ctx context.Context, info *os.File) (pid int, err error) {
	stop := context.AfterFunc(ctx, func() { _ = info.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	data, err := io.ReadAll(io.LimitReader(info, 1<<10))
	if err != nil {
		return 0, err
	}
	var made struct {
		Pid int `json:"child-pid"`
	}
	if err := json.Unmarshal(data, &made); err != nil || made.Pid <= 0 {
		return 0, errors.New("bubblewrap made no process")
	}
	return made.Pid, nil
}

// complaint is what bubblewrap or the supervisor said before it ended.
func (s *box) complaint() error {
	_ = s.channel.complaints.SetReadDeadline(time.Now().Add(time.Second))
	said, _ := io.ReadAll(io.LimitReader(s.channel.complaints, 4<<10))
	return explain(string(bytes.ToValidUTF8(said, []byte("?"))))
}

// launchUnconfined starts the supervisor as a mere process, in a folder of its
// own.
func (s *box) launchUnconfined() error {
	s.dir = filepath.Join(s.b.owner.dir, s.info.ID)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	s.defers(func(context.Context) error { return supervisor.RemoveTree(s.dir) })
	if s.user != 0 {
		if err := os.Chown(s.dir, s.user, s.user); err != nil {
			return err
		}
	}
	if err := s.spawn(s.b.self); err != nil {
		return fmt.Errorf("running the supervisor: %w", err)
	}
	s.pid = s.cmd.Process.Pid
	return s.group.add(s.pid)
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
// others with it or by it; if it does not, it is killed.
func (s *box) end(ctx context.Context) error {
	err := s.channel.requests.Close()
	s.channel.requests = nil
	if s.Client == nil {
		s.kill()
	}
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
	s.kill()
	late.Reset(patience)
	select {
	case <-ended:
		return err
	case <-late.C:
		return errors.Join(err, fmt.Errorf("process %d does not end", s.cmd.Process.Pid))
	}
}

// kill kills the supervisor; process 1 of a namespace takes the rest with it.
func (s *box) kill() {
	if s.pidfd >= 0 {
		_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
		return
	}
	_ = s.cmd.Process.Kill()
}
