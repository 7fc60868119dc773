package supervisor

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/talaria-run/talaria/env/sandbox"
)

// program is one process to run, and how long and how loud it may be.
type program struct {
	argv    []string
	env     []string
	dir     string
	stdin   []byte
	timeout time.Duration
	keep    int // bytes of output
}

// ran is what became of a program.
type ran struct {
	status   syscall.WaitStatus
	timedOut bool
	output   *clip
}

// exitCode is what a shell would make of the status.
func (r ran) exitCode() int {
	switch {
	case r.timedOut:
		return sandbox.ExitTimeout
	case r.status.Signaled():
		return 128 + int(r.status.Signal())
	}
	return r.status.ExitStatus()
}

// run starts a program and waits for it.
func (c *children) run(ctx context.Context, p program) (ran, error) {
	stdin, err := input(p.stdin)
	if err != nil {
		return ran{}, err
	}
	defer func() { _ = stdin.Close() }()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return ran{}, err
	}
	pid, ended, err := c.startSoon(ctx, p.argv, &syscall.ProcAttr{
		Dir: p.dir, Env: p.env,
		Files: []uintptr{stdin.Fd(), uintptr(pipe[1]), uintptr(pipe[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	_ = unix.Close(pipe[1])
	if err != nil {
		_ = unix.Close(pipe[0])
		return ran{}, &unstartableError{err}
	}
	output := listen(pipe[0], p.keep)
	status, timedOut := await(ctx, pid, ended, p.timeout)
	return ran{status: status, timedOut: timedOut, output: output.stop()}, nil
}

// startSoon starts a process, and tries again for a while when the limit on
// processes does not allow it: those that are ending still count.
func (c *children) startSoon(ctx context.Context, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	for tries := 0; ; tries++ {
		pid, ended, err := c.start(argv, attr)
		if !errors.Is(err, syscall.EAGAIN) || tries == 5 {
			return pid, ended, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, nil, err
		}
	}
}

// input is a file that holds data, so that nobody has to wait for a command
// that does not read it.
func input(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "stdin")
	if _, err := file.Write(data); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_, err = file.Seek(0, io.SeekStart)
	return file, err
}
