package local

import (
	"cmp"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// setup is what the supervisor is to prepare. Limits for which there is a
// cgroup need no other means.
func (s *box) setup() supervisor.Setup {
	s.info.Root = s.dir
	s.info.Workdir = s.info.Path(path.Clean(cmp.Or(s.spec.Workdir, sandbox.DefaultWorkdir)))
	home, tmp := s.info.Path(homeDir), s.info.Path("/tmp")
	env := map[string]string{
		"PATH": defaultPath, "HOME": home, "TMPDIR": tmp, "USER": userName, "LOGNAME": userName,
		"LANG": "C.UTF-8", "TERM": "dumb",
	}
	setup := supervisor.Setup{
		Dirs:    []string{home, tmp, s.info.Path("/var/tmp"), s.info.Path("/run")},
		Workdir: s.info.Workdir,
		State:   s.info.Path(stateFS),
		Env:     env,
		Shell:   s.spec.Shell,
		Timeout: s.spec.Timeout,
	}
	if !s.b.Confined() {
		setup.Mark = map[string]string{marker: s.info.ID}
		setup.Remove = []string{s.dir}
	}
	maps.Copy(env, s.spec.Env)
	if s.b.cgroups.memory.dir == "" {
		setup.Memory = s.spec.Memory
	}
	// A limit per user is one per sandbox where a sandbox has its own.
	if s.b.cgroups.pids.dir == "" && (s.b.Confined() || s.user != 0) {
		setup.Pids = s.spec.Pids
	}
	return setup
}

// memory is what the processes and the files may take together, which the
// kernel does not tell apart. Nothing but processes can thus run out of it, and
// ending those helps.
func (s *box) memory() int64 {
	if s.spec.Memory == 0 || !s.b.Confined() {
		return s.spec.Memory
	}
	return s.spec.Memory + s.kind.kept()
}

// settle sets the limits and finds out what holds, from what the supervisor has
// seen and what the kernel says. The supervisor's own threads do not count
// against the commands.
func (s *box) settle(seen supervisor.Observed) error {
	pids := 0
	if s.spec.Pids > 0 {
		pids = s.spec.Pids + seen.Threads
	}
	if err := s.group.limit(s.memory(), pids); err != nil {
		return err
	}
	held := map[string]string{
		sandbox.HoldTime:   "supervisor",
		sandbox.HoldMemory: s.memoryHeld(seen),
		sandbox.HoldPids:   s.pidsHeld(seen),
	}
	if s.user != 0 {
		held[sandbox.HoldUser] = "uid"
	}
	apart := func(kind string) bool {
		own, err := os.Readlink(filepath.Join("/proc/self/ns", kind))
		return err == nil && seen.Namespaces[kind] != "" && seen.Namespaces[kind] != own
	}
	if apart("net") {
		held[sandbox.HoldNetwork] = "namespace"
	}
	if apart("pid") && seen.Pid == 1 {
		held[sandbox.HoldProcesses] = "namespace"
	}
	if apart("mnt") && seen.ReadOnly {
		held[sandbox.HoldSystem] = "read-only"
	}
	if apart("user") && !seen.CanNest {
		held[sandbox.HoldNesting] = "limit"
	}
	if size := s.kind.files; apart("mnt") && size > 0 && seen.DiskBytes <= size+int64(os.Getpagesize()) {
		held[sandbox.HoldDisk] = "tmpfs"
		if s.tighten() {
			held[sandbox.HoldFiles] = "tmpfs"
		}
	}
	for name, mechanism := range held {
		if mechanism != "" {
			s.info.Enforced = append(s.info.Enforced, name+":"+mechanism)
		}
	}
	slices.Sort(s.info.Enforced)
	return nil
}

func (s *box) memoryHeld(seen supervisor.Observed) string {
	if s.spec.Memory > 0 && seen.MaxMemory >= 0 && seen.MaxMemory <= s.spec.Memory {
		return "rlimit" // for each process by itself
	}
	return s.group.holds(s.b.cgroups.memory, s.cmd.Process.Pid)
}

func (s *box) pidsHeld(seen supervisor.Observed) string {
	if s.spec.Pids > 0 && seen.MaxPids >= 0 && seen.MaxPids <= int64(s.spec.Pids+seen.Threads) {
		return "rlimit"
	}
	return s.group.holds(s.b.cgroups.pids, s.cmd.Process.Pid)
}
