package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// controller is one resource that a cgroup hierarchy can limit.
type controller struct {
	name string
	// files by version of cgroups; the first is the limit, the others, where
	// they exist, keep memory from being swapped out instead.
	files map[int][]string
}

func memoryController() controller {
	return controller{name: "memory", files: map[int][]string{
		1: {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
		2: {"memory.max", "memory.swap.max"},
	}}
}

func pidsController() controller {
	return controller{name: "pids", files: map[int][]string{1: {"pids.max"}, 2: {"pids.max"}}}
}

// parent is the directory under which a controller's cgroups are made, in
// version 1 or 2 of cgroups; dir is empty if there is none.
type parent struct {
	controller
	version int
	dir     string
}

// errCgroup means that cgroups do not work although they seemed to.
var errCgroup = errors.New("starting a process in its cgroup")

// cgroups are the parents of all sandboxes of one backend.
type cgroups struct{ memory, pids parent }

// openCgroups looks for places where this process may make cgroups, and makes
// there one called name. Without any, limits have to be enforced by other
// means, which is no error.
func openCgroups(name string) (*cgroups, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	places := cgroupPlaces(string(self), string(mounts))
	return &cgroups{
		memory: openParent(memoryController(), places, name),
		pids:   openParent(pidsController(), places, name),
	}, nil
}

// place is a cgroup that this process is in, or one above it.
type place struct {
	version     int
	controllers []string // of version 1
	dir         string
}

// cgroupPlaces finds the cgroups of this process in the text of
// /proc/self/cgroup and /proc/self/mountinfo. In version 2 those above follow,
// because a cgroup that holds processes cannot also hold limited cgroups.
func cgroupPlaces(self, mountinfo string) []place {
	var places []place
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		mount, system := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(system) < 3 {
			continue
		}
		root, dir := mount[3], mount[4]
		switch system[0] {
		case "cgroup":
			controllers := strings.Split(system[2], ",")
			if rel, ok := cgroupBelow(self, root, controllers); ok {
				places = append(places, place{version: 1, controllers: controllers, dir: filepath.Join(dir, rel)})
			}
		case "cgroup2":
			rel, ok := cgroupBelow(self, root, []string{""})
			for ok {
				places = append(places, place{version: 2, dir: filepath.Join(dir, rel)})
				ok = rel != "/"
				rel = filepath.Dir(rel)
			}
		}
	}
	return places
}

// cgroupBelow is this process's cgroup in the hierarchy of one of the
// controllers, relative to what is mounted of it.
func cgroupBelow(self, root string, controllers []string) (rel string, ok bool) {
	for line := range strings.Lines(self) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if !slices.ContainsFunc(strings.Split(fields[1], ","), func(c string) bool { return slices.Contains(controllers, c) }) {
			continue
		}
		rel, ok := strings.CutPrefix(fields[2]+"/", strings.TrimSuffix(root, "/")+"/")
		// Of one outside of what this process may see it is said that it is "/..".
		if ok && !strings.HasPrefix(rel, "..") {
			return filepath.Join("/", rel), true
		}
	}
	return "", false
}

func openParent(c controller, places []place, name string) parent {
	for _, p := range places {
		dir := filepath.Join(p.dir, name)
		switch {
		case p.version == 1 && !slices.Contains(p.controllers, c.name):
			continue
		case p.version == 2 && !enable(p.dir, c.name):
			continue
		}
		err := os.Mkdir(dir, 0o755) //nolint:gosec // as cgroups are
		if err != nil && !errors.Is(err, fs.ErrExist) {
			continue
		}
		found := parent{controller: c, version: p.version, dir: dir}
		if found.works() {
			return found
		}
		if err == nil { // else it is the other controller's
			_ = os.Remove(dir)
		}
	}
	return parent{controller: c}
}

// enable gives the cgroups below dir a controller, of version 2.
func enable(dir, controller string) bool {
	control := filepath.Join(dir, "cgroup.subtree_control")
	if has, err := os.ReadFile(control); err == nil && slices.Contains(strings.Fields(string(has)), controller) {
		return true
	}
	return os.WriteFile(control, []byte("+"+controller), 0) == nil
}

// works tells whether a cgroup below has the file for the limit.
func (p parent) works() bool {
	if p.version == 2 && !enable(p.dir, p.name) {
		return false
	}
	probe := filepath.Join(p.dir, "probe")
	if err := os.Mkdir(probe, 0o755); err != nil { //nolint:gosec // as cgroups are
		return false
	}
	defer func() { _ = os.Remove(probe) }()
	file, err := os.OpenFile(filepath.Join(probe, p.files[p.version][0]), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// dirs are the directories that hold the sandboxes' cgroups.
func (c *cgroups) dirs() []string {
	dirs := []string{c.memory.dir, c.pids.dir}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
	return slices.Compact(dirs)
}

// close removes the directories; no cgroup may be left in them.
func (c *cgroups) close(ctx context.Context) error {
	return removeCgroups(ctx, c.dirs())
}

// group are the cgroups of one sandbox.
type group struct {
	id   string
	of   *cgroups
	dirs []string
}

// newGroup makes the cgroups that a kind of sandbox needs, where they can be had.
func (c *cgroups) newGroup(id string, k kind) (*group, error) {
	g := &group{id: id, of: c}
	for p, needed := range map[*parent]bool{&c.memory: k.memory, &c.pids: k.pids} {
		if p.dir == "" || !needed {
			continue
		}
		dir := filepath.Join(p.dir, id)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as cgroups are
			return g, fmt.Errorf("making a cgroup: %w", err)
		}
		if !slices.Contains(g.dirs, dir) {
			g.dirs = append(g.dirs, dir)
		}
	}
	return g, nil
}

// limit sets the limits of the cgroups that there are; 0 sets none. Both may be
// those of one cgroup, which was made for the sake of the other.
func (g *group) limit(memory int64, pids int) error {
	for p, limit := range map[*parent]int64{&g.of.memory: memory, &g.of.pids: int64(pids)} {
		if dir := filepath.Join(p.dir, g.id); limit > 0 && slices.Contains(g.dirs, dir) {
			if err := p.limit(dir, limit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p parent) limit(dir string, limit int64) error {
	for i, name := range p.files[p.version] {
		if name == "memory.swap.max" {
			limit = 0
		}
		err := os.WriteFile(filepath.Join(dir, name), strconv.AppendInt(nil, limit, 10), 0)
		if err != nil && i == 0 {
			return fmt.Errorf("limiting %s: %w", p.name, err)
		}
	}
	return nil
}

// start starts a command within the cgroups, so that no process of it is ever
// outside. Moving it there afterwards would also be slow: the kernel stops all
// forks of the machine for that.
//
// In version 2 the kernel does it. In version 1 a process is born where the
// thread is that starts it: the calling goroutine must be the only one to use
// its thread.
func (g *group) start(cmd *exec.Cmd) (err error) {
	for _, dir := range g.dirs {
		if g.version(dir) == 2 {
			at, err := os.Open(dir)
			if err != nil {
				return err
			}
			defer func() { _ = at.Close() }()
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(at.Fd())
			continue
		}
		if err := moveThread(dir); err != nil {
			return errors.Join(errCgroup, err)
		}
		// Back to where the backend's own cgroups hang.
		defer func() { err = errors.Join(err, moveThread(filepath.Dir(filepath.Dir(dir)))) }()
	}
	err = cmd.Start()
	if err != nil && cmd.SysProcAttr.UseCgroupFD {
		// Old kernels and strict containers do not know how; others forbid it.
		return errors.Join(errCgroup, err)
	}
	return err
}

// moveThread moves the calling thread to a cgroup of version 1.
func moveThread(dir string) error {
	return os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0)
}

func (g *group) version(dir string) int {
	if filepath.Dir(dir) == g.of.memory.dir {
		return g.of.memory.version
	}
	return g.of.pids.version
}

// holds tells by which mechanism the group limits p for a process in it; "" if
// it does not.
func (g *group) holds(p parent, pid int) string {
	dir := filepath.Join(p.dir, g.id)
	if !slices.Contains(g.dirs, dir) {
		return ""
	}
	limit, err := os.ReadFile(filepath.Join(dir, p.files[p.version][0]))
	if err != nil || bytes.Equal(bytes.TrimSpace(limit), []byte("max")) || !slices.Contains(cgroupMembers(dir), pid) {
		return ""
	}
	return "cgroup" + strconv.Itoa(p.version)
}

func (g *group) remove(ctx context.Context) error { return removeCgroups(ctx, g.dirs) }

func removeCgroups(ctx context.Context, dirs []string) error {
	errs := make([]error, len(dirs))
	for i, dir := range dirs {
		errs[i] = removeCgroup(ctx, dir)
	}
	return errors.Join(errs...)
}

func cgroupMembers(dir string) []int {
	data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for line := range strings.Lines(string(data)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeCgroup removes a cgroup whose processes have ended; for a moment after
// that it can still be busy.
func removeCgroup(ctx context.Context, dir string) error {
	return eventually(ctx, func() (bool, error) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	})
}

// settling is how long the kernel may take to be done with what was killed: on a
// crowded machine each process still has to get its turn to end.
const settling = 30 * time.Second

// eventually tries until it succeeds, for as long as settling takes at most.
func eventually(ctx context.Context, try func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		done, err := try()
		if done {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
