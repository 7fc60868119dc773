package supervisor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// children are the processes below the supervisor: those it started and those
// it inherited. One place waits for all of them, because who waits for any
// child takes the status away from who waits for one.
type children struct {
	mu      sync.Mutex // held while starting, so that none is reaped unknown
	waiting map[int]chan<- syscall.WaitStatus
	ended   chan os.Signal
}

func newChildren() *children {
	c := &children{waiting: map[int]chan<- syscall.WaitStatus{}, ended: make(chan os.Signal, 1)}
	signal.Notify(c.ended, syscall.SIGCHLD)
	go func() {
		for range c.ended {
			c.reap()
		}
	}()
	return c
}

// start starts a process; its status comes on the channel.
func (c *children) start(argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr) //nolint:gosec // what the harness asked for
	if err != nil {
		return 0, nil, err
	}
	status := make(chan syscall.WaitStatus, 1)
	c.waiting[pid] = status
	return pid, status, nil
}

// reap collects every child that has ended and tells whether none is left.
func (c *children) reap() (none bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return true
		case pid == 0:
			return false
		}
		if waiter, ok := c.waiting[pid]; ok {
			waiter <- status
			delete(c.waiting, pid)
		}
	}
}

// killAll ends every process below the supervisor and waits until all are gone.
func (c *children) killAll(ctx context.Context) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		strike()
		if c.reap() {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// strike kills all processes below the supervisor that there are at this
// moment. As process 1 it can do so at one stroke, which no fork escapes.
// Elsewhere minus one would mean every process of the user; there it kills the
// descendants it finds, and whoever escapes has become its own child by the
// next time.
func strike() {
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	below := map[int]bool{os.Getpid(): true}
	parents := processParents()
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if below[parent] && !below[pid] {
				below[pid], grown = true, true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// processParents lists the processes with their parents.
func processParents() map[int]int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc") // none is none
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat")
		// pid (name) state parent ...; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(string(fields[1]))
		}
	}
	return parents
}

// grace is what a command gets between the request to end and the end.
const grace = time.Second

// await waits for a command to end. If it takes too long, or nobody wants it
// any more, its group is asked to end and then killed; processes in groups of
// their own live on.
func await(ctx context.Context, pid int, ended <-chan syscall.WaitStatus, timeout time.Duration) (status syscall.WaitStatus, timedOut bool) {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case status := <-ended:
		return status, false
	case <-late:
		timedOut = true
	case <-ctx.Done():
	}
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case status = <-ended:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	case <-timer.C:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		status = <-ended
	}
	return status, timedOut
}
