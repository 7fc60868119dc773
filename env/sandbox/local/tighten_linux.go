package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Files take memory of the kernel beyond their content, and it stays when the
// processes have ended: without a limit on their number, empty ones could fill
// what a sandbox may take until nothing is left for its supervisor.
const (
	bytesPerFile = 8 << 10 // of a file system, for one file: no fewer than other file systems have
	fewestFiles  = 4 << 10
	fileCost     = 2 << 10 // what the kernel needs for a file, at most: its inode and a long name
	ipcMax       = 16 << 20
)

// maxFiles is how many files a file system of a size may hold; 0 is no limit.
func maxFiles(size int64) int64 {
	if size == 0 {
		return 0
	}
	return max(size/bytesPerFile, fewestFiles)
}

// tmpfsMax are the sizes of the file systems that commands can write to, by
// where they lie.
func (k kind) tmpfsMax() map[string]int64 {
	return map[string]int64{"/": k.files, "/dev/shm": shmMax, stateFS: stateMax}
}

// kept is the most memory that commands can take and leave to nobody: that of
// files, and of what processes share by number.
func (k kind) kept() int64 {
	sum := int64(ipcMax)
	for _, size := range k.tmpfsMax() {
		sum += size + maxFiles(size)*fileCost
	}
	return sum
}

// tighten limits, from outside, what bubblewrap cannot limit: how many files
// there may be, and how much memory processes may share that belongs to none of
// them. It tells whether that holds; only root may do so.
func (s *box) tighten() bool {
	if os.Geteuid() != 0 {
		return false
	}
	pid, err := childOf(s.cmd.Process.Pid)
	if err != nil {
		return false
	}
	return inside(pid, unix.CLONE_NEWIPC, s.limitShared) == nil && inside(pid, unix.CLONE_NEWNS, s.kind.limitFiles) == nil
}

// childOf is the one child of a process.
func childOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// inside calls do on a thread that is in a namespace of a process, and that ends
// with it.
func inside(pid, namespace int, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if unix.Gettid() == unix.Getpid() {
			// The first thread never ends, and /proc/self shows its namespaces:
			// as long as it is held here, another is taken.
			defer runtime.UnlockOSThread()
			done <- inside(pid, namespace, do)
			return
		}
		err := enter(pid, namespace)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

func enter(pid, namespace int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	// A thread shares its directory with the others until it says otherwise.
	return errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(fd, namespace))
}

func (k kind) limitFiles() error {
	for dir, size := range k.tmpfsMax() {
		var now unix.Statfs_t
		if err := unix.Statfs(dir, &now); err != nil {
			return err
		}
		const flags = unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_RDONLY // as in MS_
		options := "nr_inodes=" + strconv.FormatInt(maxFiles(size), 10)
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|uintptr(now.Flags&flags), options); err != nil {
			return err
		}
		if err := unix.Statfs(dir, &now); err != nil {
			return err
		}
		if int64(now.Files) > maxFiles(size) { //nolint:gosec // far from overflow
			return fmt.Errorf("%s has room for %d files", dir, now.Files)
		}
	}
	return nil
}

// limitShared bounds the segments, queues and semaphores of System V, which
// outlive processes as files do. The settings belong to the machine's root or,
// since Linux 5.19, to that of the namespace, who is the sandbox's user.
func (s *box) limitShared() error {
	err := setShared()
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	// Of this thread alone, which ends soon.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(s.user), ^uintptr(0)); errno != 0 {
		return errno
	}
	return setShared()
}

func setShared() error {
	page := int64(os.Getpagesize())
	for name, value := range map[string]string{
		"shmall": strconv.FormatInt(ipcMax/2/page, 10),
		"msgmni": strconv.Itoa(ipcMax / 4 / (16 << 10)), // of 16 KiB each
		"sem":    "250 16000 100 128",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys/kernel", name), []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}
