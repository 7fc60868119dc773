package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCgroupPlaces(t *testing.T) {
	for _, c := range []struct {
		name, self, mounts string
		want               []place
	}{
		{
			name: "version 1",
			self: "8:pids:/\n4:memory:/slice/job\n1:cpu,cpuacct:/\n0::/\n",
			mounts: "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
				"39 31 0:35 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n",
			want: []place{
				{version: 1, controllers: []string{"rw", "memory"}, dir: "/sys/fs/cgroup/memory/slice/job"},
				{version: 1, controllers: []string{"rw", "pids"}, dir: "/sys/fs/cgroup/pids"},
			},
		},
		{
			name:   "version 1 in a container that sees its own part",
			self:   "4:memory:/docker/abc\n",
			mounts: "35 31 0:31 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n",
			want:   []place{{version: 1, controllers: []string{"rw", "memory"}, dir: "/sys/fs/cgroup/memory"}},
		},
		{
			name:   "version 1 mounted from elsewhere",
			self:   "4:memory:/docker/abc\n",
			mounts: "35 31 0:31 /docker/other /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n",
		},
		{
			name:   "version 1 mounted from one whose name begins alike",
			self:   "4:memory:/docker/abcd\n",
			mounts: "35 31 0:31 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n",
		},
		{
			name:   "version 2 of one that cannot be seen",
			self:   "0::/../../other\n",
			mounts: "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
		},
		{
			name:   "version 2",
			self:   "0::/user.slice/user@1000.service/app.slice\n",
			mounts: "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			want: []place{
				{version: 2, dir: "/sys/fs/cgroup/user.slice/user@1000.service/app.slice"},
				{version: 2, dir: "/sys/fs/cgroup/user.slice/user@1000.service"},
				{version: 2, dir: "/sys/fs/cgroup/user.slice"},
				{version: 2, dir: "/sys/fs/cgroup"},
			},
		},
		{
			name:   "version 2 in a container",
			self:   "0::/\n",
			mounts: "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
			want:   []place{{version: 2, dir: "/sys/fs/cgroup"}},
		},
		{name: "none", self: "", mounts: "22 27 0:21 / /proc rw,relatime - proc proc rw\nbroken\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cgroupPlaces(c.self, c.mounts)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(place{})); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

// limitCase is a sandbox of a kind with cgroups of one version.
type limitCase struct {
	name    string
	version int
	kind    kind
	memory  int64
	pids    int
	want    map[string]string // what its files hold
}

// TestLimitFiles sees what is written into cgroups of either version. In version
// 2 the limits are those of one cgroup.
func TestLimitFiles(t *testing.T) {
	for _, c := range []limitCase{
		{
			name: "version 1", version: 1, kind: kind{memory: true, pids: true}, memory: 1 << 20, pids: 7,
			want: map[string]string{
				"memory/one/memory.limit_in_bytes": "1048576", "memory/one/memory.memsw.limit_in_bytes": "1048576", "pids/one/pids.max": "7",
			},
		},
		{
			name: "version 2", version: 2, kind: kind{memory: true, pids: true}, memory: 1 << 20, pids: 7,
			want: map[string]string{"all/one/memory.max": "1048576", "all/one/memory.swap.max": "0", "all/one/pids.max": "7"},
		},
		{
			name: "only processes", version: 2, kind: kind{pids: true}, pids: 7,
			want: map[string]string{"all/one/memory.max": "max", "all/one/memory.swap.max": "max", "all/one/pids.max": "7"},
		},
		{
			name: "only memory", version: 2, kind: kind{memory: true}, memory: 1 << 20,
			want: map[string]string{"all/one/memory.max": "1048576", "all/one/memory.swap.max": "0", "all/one/pids.max": "max"},
		},
		{name: "nothing", version: 2, want: map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func (c limitCase) check(t *testing.T) {
	t.Helper()
	top := t.TempDir()
	all := fakeCgroups(t, top, c.version)
	g, err := all.newGroup("one", c.kind)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.dirs {
		fill(t, dir, all.memory)
		fill(t, dir, all.pids)
	}
	if err := g.limit(c.memory, c.pids); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.want, contents(t, top)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	mechanism := map[bool]string{true: fmt.Sprintf("cgroup%d", c.version)}
	checkHeld(t, g, 23, "", "") // nobody is in it
	for _, dir := range g.dirs {
		writeAll(t, filepath.Join(dir, "cgroup.procs"), "1\n23\n")
	}
	checkHeld(t, g, 23, mechanism[c.kind.memory], mechanism[c.kind.pids])
	checkHeld(t, g, 2, "", "")
}

func checkHeld(t *testing.T, g *group, pid int, memory, pids string) {
	t.Helper()
	got := []string{g.holds(g.of.memory, pid), g.holds(g.of.pids, pid)}
	if diff := cmp.Diff([]string{memory, pids}, got); diff != "" {
		t.Errorf("memory and pids of process %d are held by (-want +got):\n%s", pid, diff)
	}
}

// fakeCgroups are directories instead of cgroups.
func fakeCgroups(t *testing.T, top string, version int) *cgroups {
	t.Helper()
	fake := func(c controller) parent {
		dir := filepath.Join(top, c.name)
		if version == 2 {
			dir = filepath.Join(top, "all")
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return parent{controller: c, version: version, dir: dir}
	}
	return &cgroups{memory: fake(memoryController()), pids: fake(pidsController())}
}

// fill puts into a cgroup what the kernel would put there for a controller.
func fill(t *testing.T, dir string, p parent) {
	t.Helper()
	if filepath.Dir(dir) != p.dir {
		return
	}
	for _, name := range p.files[p.version] {
		writeAll(t, filepath.Join(dir, name), "max")
	}
}

func writeAll(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents are the files below a directory.
func contents(t *testing.T, top string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(top, name)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEnable gives cgroups a controller, unless they have it.
func TestEnable(t *testing.T) {
	dir := t.TempDir()
	control := filepath.Join(dir, "cgroup.subtree_control")
	for _, c := range []struct{ has, want string }{{"cpu memory\n", "cpu memory\n"}, {"cpu\n", "+memory"}, {"", "+memory"}} {
		writeAll(t, control, c.has)
		if !enable(dir, "memory") {
			t.Errorf("%q cannot be enabled", c.has)
		}
		if got := contents(t, dir)["cgroup.subtree_control"]; got != c.want {
			t.Errorf("%q became %q, want %q", c.has, got, c.want)
		}
	}
	if enable(filepath.Join(dir, "missing"), "memory") {
		t.Error("enabled where there is nothing")
	}
}

// TestCgroup2 limits huge pages: the only controller that machines with version
// 1 of the others tend to leave to version 2.
func TestCgroup2(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make cgroups")
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	huge := controller{name: "hugetlb", files: map[int][]string{2: {"hugetlb.2MB.max"}}}
	var places []place
	for _, p := range cgroupPlaces(string(self), string(mounts)) {
		if p.version == 2 {
			places = append(places, p)
		}
	}
	p := openParent(huge, places, "talaria-test-"+newToken())
	if p.dir == "" {
		t.Skip("version 2 of cgroups has no limit on huge pages here")
	}
	c := &cgroups{memory: p}
	g, err := c.newGroup("one", kind{memory: true})
	if err := errors.Join(err, g.limit(4<<20, 0)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := g.start(cmd); err != nil {
		t.Fatal(err)
	}
	if got, want := g.holds(p, cmd.Process.Pid), "cgroup2"; got != want {
		t.Errorf("the process is held by %q, want %q, in %v", got, want, cgroupMembers(filepath.Join(p.dir, "one")))
	}
	if got := g.holds(p, os.Getpid()); got != "" {
		t.Errorf("this process is held by %q", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := g.remove(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.dir); err == nil {
		t.Errorf("%s is left", p.dir)
	}
}
