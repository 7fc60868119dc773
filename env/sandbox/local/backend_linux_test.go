package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

// run starts a sandbox, runs a script and returns what it said.
func run(t *testing.T, b *Backend, spec sandbox.Spec, script string) (sandbox.Result, sandbox.Info) {
	t.Helper()
	box, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := box.Exec(t.Context(), sandbox.Command{Script: script})
	if err != nil {
		t.Error(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return got, box.Info()
}

func names(enforced []string) []string {
	names := make([]string, 0, len(enforced))
	for _, held := range enforced {
		name, _, _ := strings.Cut(held, ":")
		names = append(names, name)
	}
	return names
}

// TestEnforced sees that a sandbox claims what it was asked for, and not what it
// was not.
func TestEnforced(t *testing.T) {
	b := open(t, Options{})
	always := []string{sandbox.HoldNesting, sandbox.HoldNetwork, sandbox.HoldProcesses, sandbox.HoldSystem, sandbox.HoldTime}
	if b.users != nil {
		always = append(always, sandbox.HoldUser)
	}
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(always), func(held string) bool { return held == name })
	}
	disk := []string{sandbox.HoldDisk}
	if os.Geteuid() == 0 {
		disk = append(disk, sandbox.HoldFiles)
	}
	for _, c := range []struct {
		name string
		spec sandbox.Spec
		want []string
	}{
		{"nothing", sandbox.Spec{}, always},
		{"memory", sandbox.Spec{Memory: 64 << 20}, slices.Concat(always, disk, []string{sandbox.HoldMemory})},
		{"disk", sandbox.Spec{Disk: 1 << 20}, slices.Concat(always, disk)},
		{"pids", sandbox.Spec{Pids: 4}, append(slices.Clone(always), sandbox.HoldPids)},
		{"host network", sandbox.Spec{Network: sandbox.NetworkHost}, without(sandbox.HoldNetwork)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, info := run(t, b, c.spec, "true")
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, names(info.Enforced)); diff != "" {
				t.Errorf("enforced (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEnforcedUnconfined sees that mere processes claim nothing that they are
// not.
func TestEnforcedUnconfined(t *testing.T) {
	b := open(t, Options{Bwrap: "/no/such/bwrap", AllowUnconfined: true})
	want := []string{sandbox.HoldMemory, sandbox.HoldTime}
	if b.users != nil {
		want = []string{sandbox.HoldMemory, sandbox.HoldPids, sandbox.HoldTime, sandbox.HoldUser}
	}
	_, info := run(t, b, sandbox.Spec{Memory: 256 << 20, Disk: 1 << 20, Pids: 32}, "true")
	if diff := cmp.Diff(want, names(info.Enforced)); diff != "" {
		t.Errorf("enforced (-want +got):\n%s", diff)
	}
	if info.Root == "" || info.Workdir != info.Root+"/workspace" {
		t.Errorf("root %q, directory %q", info.Root, info.Workdir)
	}
}

func TestReadOnlyOption(t *testing.T) {
	shared := t.TempDir()
	for _, dir := range []string{shared, filepath.Dir(shared)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(shared, "data"), []byte("shared"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := open(t, Options{ReadOnly: []string{shared}})
	got, _ := run(t, b, sandbox.Spec{}, fmt.Sprintf("cd %s && cat data && ! touch new 2>/dev/null", shared))
	if got.ExitCode != 0 || string(got.Output) != "shared" {
		t.Errorf("exit code %d, output %q", got.ExitCode, got.Output)
	}
}

func TestBackendClosed(t *testing.T) {
	b := open(t, Options{})
	box, err := b.Start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil { // with a sandbox alive
		t.Fatal(err)
	}
	if _, err := box.Exec(t.Context(), sandbox.Command{Script: "true"}); err == nil || !strings.Contains(err.Error(), "the sandbox is gone") {
		t.Errorf("a command after the end: %v", err)
	}
	if _, err := b.Start(t.Context(), sandbox.Spec{}); err == nil {
		t.Error("a closed backend starts sandboxes")
	}
	if _, err := os.Stat(b.owner.dir); err == nil {
		t.Errorf("%s is left", b.owner.dir)
	}
}

// TestAhead sees that what was started ahead of need is as good as what was not.
func TestAhead(t *testing.T) {
	b := open(t, Options{Ahead: 2})
	spec := sandbox.Spec{Memory: 64 << 20, Pids: 32}
	ready := func() []*box {
		b.making.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Clone(b.ahead)
	}
	_, cold := run(t, b, spec, "true")
	if n := len(ready()); n != 1 {
		t.Fatalf("%d sandboxes are ready", n)
	}
	first := ready()[0].info.ID
	if _, info := run(t, b, sandbox.Spec{}, "true"); info.ID == first || len(ready()) != 2 {
		t.Errorf("%s was taken for something else, or %d are ready", first, len(ready()))
	}
	got, warm := run(t, b, spec, `pwd; echo "$HOME"; ls -A`)
	if warm.ID != first {
		t.Errorf("%s was not taken but %s", first, warm.ID)
	}
	if diff := cmp.Diff(cold.Enforced, warm.Enforced); diff != "" {
		t.Errorf("enforced (-cold +ahead):\n%s", diff)
	}
	if want := "/workspace\n/home/agent\n"; string(got.Output) != want {
		t.Errorf("it says %q, want %q", got.Output, want)
	}
	for _, s := range ready() {
		if err := syscall.Kill(supervisorOf(t, s), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-s.Gone()
	}
	run(t, b, spec, "true")
	if n := len(ready()); n != 1 {
		t.Errorf("after those ready were killed there are %d", n)
	}
}

func TestImageRefused(t *testing.T) {
	b := open(t, Options{})
	if _, err := b.Start(t.Context(), sandbox.Spec{Image: "debian:12"}); err == nil || !strings.Contains(err.Error(), "debian:12") {
		t.Errorf("error %v", err)
	}
}

// TestStateDir refuses a directory that others could have prepared.
func TestStateDir(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o777), os.Chmod(open, 0o777), os.Symlink(dir, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "link", "missing/below"} {
		if _, err := stateDir(Options{StateDir: filepath.Join(dir, name)}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for range 2 {
		if _, err := stateDir(Options{StateDir: filepath.Join(dir, "new")}); err != nil {
			t.Error(err)
		}
	}
}

// TestStateMess has commands spoil what the supervisor keeps.
func TestStateMess(t *testing.T) {
	b := open(t, Options{})
	box, err := b.Start(t.Context(), sandbox.Spec{Timeout: 5 * time.Second}) // some have the shell wait for itself
	if err != nil {
		t.Fatal(err)
	}
	for _, mess := range []string{
		"rm -rf %[1]s/*", "chmod 0 %[1]s", "rm -f %[1]s/*; mkdir -p %[1]s/kept/x %[1]s/left/y", "mkfifo %[1]s/left", "head -c 100000000 /dev/zero > %[1]s/fill",
		"ln -sf /etc/passwd %[1]s/left", "rm -f %[1]s/kept; ln -s /usr/bin/env %[1]s/kept", "rm -f %[1]s/kept; mkfifo %[1]s/kept",
	} {
		if _, err := box.Exec(t.Context(), sandbox.Command{Script: "export A=1; " + fmt.Sprintf(mess, stateFS)}); err != nil {
			t.Errorf("%s: %v", mess, err)
		}
		got, err := box.Exec(t.Context(), sandbox.Command{Script: "echo $A"})
		if err != nil || got.ExitCode != 0 || strings.Trim(string(got.Output), "1\n") != "" {
			t.Errorf("after %s: exit code %d, output %q, error %v", mess, got.ExitCode, got.Output, err)
		}
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNoDescriptorsLost runs many commands whose background children hold pipes,
// and looks at the supervisor's descriptors.
func TestNoDescriptorsLost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can look into a supervisor")
	}
	b := open(t, Options{})
	started, err := b.Start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	box, ok := started.(*box)
	if !ok {
		t.Fatalf("a %T", started)
	}
	count := func() int {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", supervisorOf(t, box)))
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	rounds := func(n int) {
		for range n {
			if _, err := box.Exec(t.Context(), sandbox.Command{Script: "sleep 1000 & exit", Stdin: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := box.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rounds(1)
	before := count()
	rounds(20)
	err = eventually(t.Context(), func() (bool, error) {
		after := count()
		return after <= before, fmt.Errorf("%d descriptors after, %d before", after, before)
	})
	if err != nil {
		t.Error(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// supervisorOf is a sandbox's supervisor as the host sees it.
func supervisorOf(t *testing.T, box *box) int {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", box.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range Probe(t.Context(), Options{StateDir: filepath.Join(dir, "state")}) {
		t.Logf("%+v", f)
		if f.OK == (f.Fix != "") && f.Name != sandbox.HoldTime {
			t.Errorf("%s: OK is %v, and what to do is %q", f.Name, f.OK, f.Fix)
		}
		if !f.OK && os.Geteuid() == 0 {
			t.Errorf("as root %s does not hold: %s", f.Name, f.Detail)
		}
	}
	missing := Probe(t.Context(), Options{StateDir: filepath.Join(dir, "state"), Bwrap: "/no/such/bwrap", AllowUnconfined: true})
	if len(missing) != 1 || missing[0].OK || !strings.Contains(missing[0].Fix, "bubblewrap") {
		t.Errorf("without bubblewrap: %+v", missing)
	}
}

func TestList(t *testing.T) {
	b := open(t, Options{})
	opts := Options{StateDir: filepath.Dir(b.owner.dir)}
	labels := sandbox.Labels{Run: "r", Episode: "e", Attempt: 2}
	box, err := b.Start(t.Context(), sandbox.Spec{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := List(opts)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%+v, error %v", entries, err)
	}
	want := Entry{ID: box.Info().ID, Labels: labels, Started: entries[0].Started, Confined: true, Owner: os.Getpid(), Alive: true}
	if diff := cmp.Diff(want, entries[0]); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if entries, err := List(opts); err != nil || len(entries) != 0 {
		t.Errorf("after the end: %+v, error %v", entries, err)
	}
}

// TestCloseOfHungSupervisor stops what should end by itself.
func TestCloseOfHungSupervisor(t *testing.T) {
	b := open(t, Options{})
	started, err := b.Start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	box, ok := started.(*box)
	if !ok {
		t.Fatalf("a %T", started)
	}
	if err := syscall.Kill(supervisorOf(t, box), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // there is no time to be patient
	if err := box.Close(ctx); err != nil {
		t.Error(err)
	}
	err = eventually(t.Context(), func() (bool, error) {
		left := marked(map[string]bool{box.info.ID: true})
		return len(left) == 0, fmt.Errorf("processes %v are left", left)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	for complaint, want := range map[string]string{
		"bwrap: setting up uid map: Permission denied\n":                                        "apparmor_restrict_unprivileged_userns",
		"bwrap: No permissions to create new namespace, likely because the kernel does not ...": "unprivileged_userns_clone",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted":                     "unmask",
		"bwrap: Can't find source path /root/x: Permission denied":                              "chmod o+x",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted":                          "network",
		"": "doctor",
	} {
		err := explain(complaint)
		if _, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q became %v, want %q in it", complaint, err, want)
		}
	}
}
