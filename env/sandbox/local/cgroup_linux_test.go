package local

import (
	"errors"
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
