package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare makes the world that commands begin in and tells what it looks like.
func (s *server) prepare(setup Setup) (any, error) {
	if err := s.prepareProcess(setup); err != nil {
		return nil, err
	}
	for _, dir := range append(setup.Dirs, setup.Workdir, setup.State) {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // of the sandbox alone
			return nil, fmt.Errorf("preparing the sandbox: %w", err)
		}
	}
	var err error
	if s.shell, err = findShell(setup.Shell, setup.Memory); err != nil {
		return nil, err
	}
	s.setup, s.session = setup, &session{dir: setup.Workdir}
	return s.observe()
}

// prepareProcess shields the supervisor from its commands and sets the limits
// that they inherit.
func (s *server) prepareProcess(setup Setup) error {
	unix.Umask(0o022)
	_ = os.WriteFile("/proc/self/comm", []byte("talaria-sandbox"), 0) // for people who look at ps
	// Commands run as the same user: they must not reach into the supervisor's
	// memory and descriptors, for it speaks for them to the harness.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shielding the supervisor: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopting orphans: %w", err)
	}
	s.threads.Wait()
	limits := map[int]uint64{unix.RLIMIT_CORE: 0}
	if setup.Pids > 0 {
		limits[unix.RLIMIT_NPROC] = uint64(setup.Pids + threads()) //nolint:gosec // positive
	}
	for resource, limit := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limiting processes: %w", err)
		}
	}
	return nil
}

// roomForThreads makes the runtime start n threads now, which it keeps. A Go
// program dies when it needs a thread and cannot have one, as when commands
// have used up the sandbox's processes.
func roomForThreads(n int) *sync.WaitGroup {
	var started, ended sync.WaitGroup
	started.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread() // so that each needs a thread of its own
			defer runtime.UnlockOSThread()
			started.Done()
			started.Wait()
		})
	}
	return &ended
}

func threads() int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	return len(entries)
}

func findShell(wanted string, memory int64) (shell, error) {
	candidates := []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh", "/usr/bin/sh"}
	if wanted != "" {
		candidates = []string{wanted}
	}
	for _, path := range candidates {
		if unix.Access(path, unix.X_OK) == nil {
			return newShell(path, memory), nil
		}
	}
	return shell{}, fmt.Errorf("the sandbox has no shell: none of %s", strings.Join(candidates, ", "))
}

func (s *server) observe() (Observed, error) {
	seen := Observed{
		Pid: os.Getpid(), Namespaces: map[string]string{}, Threads: threads(),
		ReadOnly: readOnly("/usr", "/bin", "/etc"), CanNest: canNest(),
	}
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "user", "uts"} {
		seen.Namespaces[kind], _ = os.Readlink("/proc/self/ns/" + kind) // "" if the kernel has none
	}
	var files unix.Statfs_t
	err := unix.Statfs(s.setup.Workdir, &files)
	if err != nil {
		return Observed{}, fmt.Errorf("looking at %s: %w", s.setup.Workdir, err)
	}
	seen.DiskBytes = int64(files.Blocks) * files.Bsize //nolint:gosec // far from overflow
	var pids unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &pids); err != nil {
		return Observed{}, fmt.Errorf("looking at the limit on processes: %w", err)
	}
	seen.MaxPids = int64(pids.Cur) //nolint:gosec // infinity becomes -1
	seen.MaxMemory, err = s.memoryLimit()
	return seen, err
}

// memoryLimit asks a shell, because it puts the limit on itself.
func (s *server) memoryLimit() (int64, error) {
	if s.setup.Memory == 0 {
		return -1, nil
	}
	ran, err := s.children.run(context.Background(), program{
		argv: s.shell.argv(s.shell.fresh("ulimit -d")), dir: "/", keep: 100,
	})
	if err != nil {
		return -1, fmt.Errorf("looking at the limit on memory: %w", err)
	}
	text, _, _ := ran.output.kept()
	kib, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return -1, nil //nolint:nilerr // "unlimited" is no number
	}
	return kib << 10, nil
}

func readOnly(dirs ...string) bool {
	for _, dir := range dirs {
		var files unix.Statfs_t
		if unix.Statfs(dir, &files) != nil || files.Flags&unix.ST_RDONLY == 0 {
			return false
		}
	}
	return true
}

// canNest tries to start a process in a user namespace of its own. The program
// does not exist: if that is what stops it, the namespace was made.
func canNest() bool {
	_, err := syscall.ForkExec("/nonexistent", []string{"-"}, &syscall.ProcAttr{ //nolint:gosec // nothing of the kind
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER},
	})
	return errors.Is(err, syscall.ENOENT)
}
