package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

const inNamespaceVariable = "TEST_IN_MOUNT_NAMESPACE"

// inNamespace reports whether the test may mount: it is in a mount namespace
// of its own. If it is not, the test is run again in one, as root or as root of
// a user namespace, and what came of that is this test's result.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespaceVariable) != "" {
		return true
	}
	flags := "-rm"
	if os.Geteuid() == 0 {
		flags = "-m"
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", flags, "true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespace can be made here: unshare %s: %v: %s", flags, err, bytes.TrimSpace(out))
	}
	cmd := exec.CommandContext(t.Context(), "unshare", flags, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespaceVariable+"=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("in a mount namespace: %v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("in a mount namespace: %s", out)
	case !bytes.Contains(out, []byte("--- PASS")):
		t.Errorf("in a mount namespace the test did not run:\n%s", out)
	}
	return false
}

// mount mounts a file system in memory for the rest of the namespace's life.
func mount(t *testing.T, options string, flags uintptr) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fullDisk is a disk of 16 MiB with some KiB left, and what makes space on it.
func fullDisk(t *testing.T, left int) (dir string, makeSpace func()) {
	t.Helper()
	dir = mount(t, "size=16m", 0)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, (16<<10-left)<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
}

const diskEpisodes = 100

// diskRun is the arguments of a run that needs more than there is.
func diskRun(t *testing.T, dir, wait string) (args []string, l *localLab) {
	t.Helper()
	l = newLab(t, lab.Script{ReplyBytes: 50_000})
	config := labConfig(t, l.base, diskEpisodes, "limits: {concurrency: {episodes: 8}}\n")
	return []string{"run", config, "--out", dir, "--set", "limits.disk_wait=" + wait}, l
}

// TestDiskFull fills the disk in the middle of a run, whose journal takes 1.6
// MB and whose part 2.3 MB. It stops; with space again a resume goes on, and no
// acknowledged attempt is lost or bought twice.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	tests := []struct {
		name string
		left int // KiB
		all  bool
		// state is told truly where run.json could not be written any more: of the
		// second all episodes are done, and safe.
		state string
	}{
		{name: "in the journal", left: 512, state: "interrupted"},
		{name: "in a part", left: 2800, all: true, state: "complete"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			disk, makeSpace := fullDisk(t, test.left)
			dir := filepath.Join(disk, "run")
			args, l := diskRun(t, dir, "1s")
			stdout, stderr := mustExit(t, 1, args...)
			wantTexts(t, stderr, "no space left on device", "what finished is safe in "+dir+": once it is mended, 'talaria resume "+dir+"' goes on")
			if strings.Count(stderr, "\nwaiting 1s for space") > 0 {
				t.Errorf("one failure is told twice:\n%s", stderr)
			}
			status, _ := mustExit(t, 0, "status", dir)
			// A failed write leaves what there was: it may suffice for run.json.
			if !strings.Contains(status, "lab: "+test.state+", ") && !strings.Contains(status, "lab: failed, ") {
				t.Errorf("want a run that is %s, or failed:\n%s", test.state, status)
			}
			before := recorded(t, dir)
			if len(before) == 0 || (len(before) == diskEpisodes) != test.all {
				t.Fatalf("%d attempts are recorded: the disk was full too early or too late", len(before))
			}
			// What the last batch got onto the disk counts too, though nobody was told.
			if told := episodesTold(t, stdout); told == 0 || told > len(before) {
				t.Errorf("%d episodes were told to be recorded, and %d are", told, len(before))
			}
			makeSpace()
			mustExit(t, 0, "resume", dir)
			wantKept(t, before, dir, l)
		})
	}
}

// wantKept wants all episodes ended, and the attempts that were recorded before
// as they were and never bought again.
func wantKept(t *testing.T, before []store.AttemptRow, dir string, l *localLab) {
	t.Helper()
	acknowledged := ends(before)
	wantEnded(t, recorded(t, dir), diskEpisodes, acknowledged)
	requests := map[string]int{}
	for _, e := range l.Ledger() {
		requests[episodeOf(e)]++
	}
	for key := range acknowledged {
		if episode, _, _ := strings.Cut(key, "-"); requests[episode] != 1 {
			t.Errorf("episode %s was bought %d times", episode, requests[episode])
		}
	}
}

// episodesTold is the number of episodes in a summary's table.
func episodesTold(t *testing.T, stdout string) int {
	t.Helper()
	_, row, _ := strings.Cut(stdout, "\ndefault ")
	n, err := strconv.Atoi(append(strings.Fields(row), "")[0])
	if err != nil {
		t.Errorf("no summary: %v\n%s", err, stdout)
	}
	return n
}

// TestDiskFullForAWhile makes space while the run waits for it: nothing is lost
// and nothing bought twice.
func TestDiskFullForAWhile(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	disk, makeSpace := fullDisk(t, 512)
	dir := filepath.Join(disk, "run")
	args, l := diskRun(t, dir, "1m")
	p := start(t, args...)
	p.says(t, "disk full, waiting for space")
	makeSpace()
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, p.err)
	}
	if diff := cmp.Diff(map[dataset.Outcome]int{dataset.OutcomeModel: diskEpisodes}, outcomesOf(recorded(t, dir))); diff != "" {
		t.Errorf("attempts by outcome (-want +got):\n%s", diff)
	}
	if n := len(l.Ledger()); n != diskEpisodes {
		t.Errorf("%d requests for %d episodes", n, diskEpisodes)
	}
}

// TestReadOnlyDirectory cannot write where it should: nothing is spent.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	disk := mount(t, "size=16m", syscall.MS_RDONLY)
	l := newLab(t, lab.Script{})
	config := labConfig(t, l.base, 1, "")
	_, stderr := mustExit(t, 1, "run", config, "--out", filepath.Join(disk, "run"))
	wantTexts(t, stderr, "talaria: making the run directory: ", filepath.Join(disk, "run"), "read-only file system")
	_, stderr = mustExit(t, 1, "run", config, "--set", "out="+filepath.Join(disk, "runs"))
	wantTexts(t, stderr, "talaria: making the run directory: ", filepath.Join(disk, "runs"), "read-only file system")
	if n := len(l.Ledger()); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// TestReadOnlyRun reads a run that nobody may write, and refuses to go on with
// it.
func TestReadOnlyRun(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	disk := mount(t, "size=16m", 0)
	dir := filepath.Join(disk, "run")
	if err := os.CopyFS(dir, os.DirFS(finishedRun(t))); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=16m"); err != nil {
		t.Fatal(err)
	}
	stdout, _ := mustExit(t, 0, "status", dir)
	wantTexts(t, stdout, "lab: complete, 8 of 8 episodes")
	if sqlBuiltIn {
		if n := askOne[struct{ N int }](t, dir, "SELECT count(*) AS n FROM episodes").N; n != 8 {
			t.Errorf("query sees %d episodes, want 8", n)
		}
	}
	_, stderr := mustExit(t, 1, "resume", dir)
	wantTexts(t, stderr, "talaria: opening the run: "+dir+": ", "read-only file system")
}
