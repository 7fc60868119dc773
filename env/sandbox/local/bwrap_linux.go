package local

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

// Inside a sandbox.
const (
	userName = "agent"
	userID   = "1000"
	homeDir  = "/home/agent"
	hostName = "sandbox"
	stateFS  = "/run/talaria" // the shell's state, on a file system of its own: the disk may be full
	stateMax = 8 << 20
	shmMax   = 64 << 20 // /dev/shm
)

// selfPath is our own program, wherever that lies on the host: the first of
// exec.Cmd.ExtraFiles. It is run by descriptor, because a sandbox's user may not
// be able to reach its file by name.
const selfPath = "/proc/self/fd/3"

// bwrap is a bubblewrap that works on this machine.
type bwrap struct {
	path string
	// mounts are the arguments for what all sandboxes see.
	mounts []string
	// sizes and noNesting tell whether this version can limit a tmpfs and
	// forbid user namespaces.
	sizes, noNesting bool
}

// systemDirs are where a system keeps its programs and libraries.
func systemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"}
}

// openBwrap finds bubblewrap. Each directory is a mount of its own, also where
// the host has a link: a link could be replaced, the place of a mount cannot.
func openBwrap(ctx context.Context, opts Options, etc string) (*bwrap, error) {
	path, err := exec.LookPath(cmp.Or(opts.Bwrap, "bwrap"))
	if err != nil {
		return nil, &sandbox.UnavailableError{
			Backend: Name, Reason: "bubblewrap (bwrap) is not installed",
			Fix: "install the package bubblewrap, or allow commands to run unconfined with sandbox.allow_unconfined",
		}
	}
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput() //nolint:gosec // the user's choice
	if err != nil {
		return nil, fmt.Errorf("asking %s what it can do: %w", path, err)
	}
	b := &bwrap{
		path:      path,
		sizes:     bytes.Contains(help, []byte("--size ")),
		noNesting: bytes.Contains(help, []byte("--disable-userns")),
	}
	for _, dir := range append(systemDirs(), opts.ReadOnly...) {
		if _, err := os.Stat(dir); err == nil {
			b.mounts = append(b.mounts, "--ro-bind", dir, dir)
		}
	}
	b.mounts = append(b.mounts, "--ro-bind", etc, "/etc", "--proc", "/proc", "--dev", "/dev")
	b.mounts = append(b.mounts, b.tmpfs("/dev/shm", shmMax)...)
	b.mounts = append(b.mounts, "--remount-ro", "/dev")
	b.mounts = append(b.mounts, b.tmpfs(stateFS, stateMax)...)
	return b, nil
}

func (b *bwrap) tmpfs(dir string, size int64) []string {
	if b.sizes && size > 0 {
		return []string{"--size", strconv.FormatInt(size, 10), "--tmpfs", dir}
	}
	return []string{"--tmpfs", dir}
}

// args are the arguments for one sandbox. The root is one file system in memory,
// the system is mounted over it.
func (b *bwrap) args(k kind) []string {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", userID, "--gid", userID, "--hostname", hostName,
		"--die-with-parent", "--new-session", "--as-pid-1",
	}
	if b.noNesting {
		args = append(args, "--disable-userns")
	}
	if k.network != sandbox.NetworkHost {
		args = append(args, "--unshare-net")
	}
	args = append(args, b.tmpfs("/", k.files)...)
	return append(args, b.mounts...)
}

// command is the sandbox's supervisor under bubblewrap.
func (b *bwrap) command(ctx context.Context, k kind) *exec.Cmd {
	args := append(b.args(k), "--", selfPath, supervisor.Arg)
	return exec.CommandContext(ctx, b.path, args...) //nolint:gosec // our own arguments
}

// credential drops to a user that owns nothing and belongs to no group.
func credential(id int) *syscall.Credential {
	return &syscall.Credential{Uid: uint32(id), Gid: uint32(id)} //nolint:gosec // ids fit
}

// fixTemp helps where the state directory cannot be reached by sandboxes' users.
const fixTemp = "the folder for temporary files (TMPDIR) has to be open to other users (chmod o+x) when talaria runs as root"

// explain turns what bubblewrap complained about into what to do.
func explain(complaint string) error {
	complaint = cmp.Or(strings.TrimSpace(complaint), "bubblewrap ended without a word")
	fix := "see what talaria doctor says"
	switch {
	case strings.Contains(complaint, "setting up uid map"), strings.Contains(complaint, "No permissions to create new namespace"),
		strings.Contains(complaint, "Creating new namespace failed"):
		fix = "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), " +
			"kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces=10000 (others), " +
			"or run the container with the rights to make them"
	case strings.Contains(complaint, "Can't mount proc"):
		fix = "run the container so that /proc is not masked (podman: --security-opt unmask=ALL)"
	case strings.Contains(complaint, "loopback"):
		fix = "allow the container to make network namespaces"
	case strings.Contains(complaint, "Can't find source path"):
		fix = fixTemp
	}
	return &sandbox.UnavailableError{Backend: Name, Reason: complaint, Fix: fix}
}
