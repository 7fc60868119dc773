package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/sandboxtest"
)

// traces are what sandboxes can leave on the machine.
type traces struct {
	Mounts    int
	Cgroups   []string
	State     []string
	Processes []string
}

// suspects tell which processes belong to sandboxes of a test.
type suspects struct{ ids, namespaces map[string]bool }

func newSuspects() suspects {
	return suspects{ids: map[string]bool{}, namespaces: map[string]bool{}}
}

// add adds sandboxes that are alive, with the pid namespaces they have.
func (s suspects) add(ids ...string) {
	own, _ := os.Readlink("/proc/self/ns/pid")
	for _, id := range ids {
		s.ids[id] = true
	}
	for _, pid := range marked(s.ids) {
		if namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && namespace != own {
			s.namespaces[namespace] = true
		}
	}
}

func look(t *testing.T, state string, of suspects) traces {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	found := traces{Mounts: strings.Count(string(mounts), "\n")}
	places, err := openCgroups("talaria-look")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range places.dirs() {
		others, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), fmt.Sprintf("talaria-%d-*", os.Getpid()), "*"))
		for _, other := range others {
			if info, err := os.Stat(other); err == nil && info.IsDir() {
				found.Cgroups = append(found.Cgroups, other)
			}
		}
	}
	if err := places.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(state, func(name string, _ os.DirEntry, err error) error {
		if rel, relErr := filepath.Rel(state, name); relErr == nil && !strings.Contains(rel, "/etc") {
			found.State = append(found.State, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found.Processes = of.processes()
	return found
}

// processes lists those that are left, but for those that have ended and wait to
// be noticed.
func (s suspects) processes() []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	byMark := marked(s.ids)
	for _, link := range links {
		dir := filepath.Dir(filepath.Dir(link))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		namespace, _ := os.Readlink(link) // "" if it is not ours to read
		if (s.namespaces[namespace] || slices.Contains(byMark, pid)) && !ended(pid) {
			comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
			found = append(found, filepath.Base(dir)+" "+strings.TrimSpace(string(comm)))
		}
	}
	return found
}

// TestNothingLeft ends sandboxes in the middle of their mischief.
func TestNothingLeft(t *testing.T) {
	for _, opts := range []Options{{}, {Bwrap: "/no/such/bwrap", AllowUnconfined: true}} {
		t.Run(fmt.Sprintf("unconfined=%v", opts.AllowUnconfined), func(t *testing.T) {
			b := open(t, opts)
			state := filepath.Dir(b.owner.dir)
			of := newSuspects()
			before := look(t, state, of)
			for _, mischief := range []string{
				"sleep 1000 & trap '' TERM; sleep 1000",
				"mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a; sleep 1000",
				"(setsid setsid sh -c 'trap \"\" TERM; exec >&- 2>&-; while :; do sleep 1; done' &) ; sleep 1000",
				"kill -9 $PPID; sleep 1000",
				"kill -9 $PPID; while :; do :; done", // the shell itself, which starts nothing more
				"head -c 20000000 /dev/zero > big; ln -s /etc/passwd link; mkfifo fifo; cat fifo",
			} {
				endInTheMiddle(t, b, mischief, of)
			}
			nothingNew(t, state, of, before)
		})
	}
}

// nothingNew waits a little, for the kernel to be done with what has ended.
func nothingNew(t *testing.T, state string, of suspects, before traces) {
	t.Helper()
	err := eventually(t.Context(), func() (bool, error) {
		diff := cmp.Diff(before, look(t, state, of))
		return diff == "", errors.New(diff)
	})
	if err != nil {
		t.Errorf("what is left (-want +got): %v", err)
	}
}

func endInTheMiddle(t *testing.T, b *Backend, mischief string, of suspects) {
	t.Helper()
	box, err := b.Start(t.Context(), sandbox.Spec{Memory: 256 << 20, Disk: 64 << 20, Pids: 64})
	if err != nil {
		t.Fatal(err)
	}
	if err := sandboxtest.Orphan(t.Context(), box); err != nil {
		t.Error(err)
	}
	of.add(box.Info().ID)
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_, _ = box.Exec(t.Context(), sandbox.Command{Script: mischief}) // it fails when the sandbox ends
	}()
	select {
	case <-ran: // it has killed the supervisor
	case <-time.After(300 * time.Millisecond):
	}
	if err := box.Close(t.Context()); err != nil {
		t.Errorf("%s: %v", mischief, err)
	}
	<-ran
}

// hold is a harness that holds n sandboxes, says so, and waits to be killed.
func hold(args []string) error {
	var n int
	var opts Options
	if _, err := fmt.Sscan(strings.Join(args, " "), &n, &opts.AllowUnconfined, &opts.StateDir); err != nil {
		return err
	}
	if opts.AllowUnconfined {
		opts.Bwrap = "/no/such/bwrap"
	}
	ctx := context.Background()
	b, err := New(ctx, opts)
	if err != nil {
		return err
	}
	for i := range n {
		box, err := b.Start(ctx, sandbox.Spec{Memory: 64 << 20, Pids: 64, Labels: sandbox.Labels{Run: "held", Attempt: i}})
		if err != nil {
			return err
		}
		if err := sandboxtest.Orphan(ctx, box); err != nil {
			return err
		}
		go func() { _, _ = box.Exec(ctx, sandbox.Command{Script: "trap '' TERM; sleep 1000"}) }()
	}
	if _, err := fmt.Fprintln(os.Stdout, "holding"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestHarnessKilled kills a harness that holds sandboxes: their processes end by
// themselves, the rest is reaped.
func TestHarnessKilled(t *testing.T) {
	for _, unconfined := range []bool{false, true} {
		t.Run(fmt.Sprintf("unconfined=%v", unconfined), func(t *testing.T) {
			const n = 20
			b := open(t, Options{AllowUnconfined: unconfined}) // a harness that lives
			state := filepath.Dir(b.owner.dir)
			opts := Options{StateDir: state}
			alive, err := b.Start(t.Context(), sandbox.Spec{Pids: 32})
			if err != nil {
				t.Fatal(err)
			}
			before := look(t, state, newSuspects())
			of := killHolder(t, n, unconfined, state)
			checkReaped(t, opts, n, of.ids)
			nothingNew(t, state, of, before)
			got, err := alive.Exec(t.Context(), sandbox.Command{Script: "echo alive"})
			if err != nil || string(got.Output) != "alive\n" {
				t.Errorf("a living harness's sandbox says %q, error %v", got.Output, err)
			}
			if err := alive.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// killHolder starts a harness that holds n sandboxes, kills it, and returns
// its sandboxes.
func killHolder(t *testing.T, n int, unconfined bool, state string) suspects {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", holdArg, strconv.Itoa(n), strconv.FormatBool(unconfined), state)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "holding\n" {
		t.Fatalf("the harness says %q, error %v", line, err)
	}
	of := newSuspects()
	entries, err := List(Options{StateDir: state})
	for _, e := range entries {
		if e.Owner == cmd.Process.Pid {
			of.add(e.ID)
		}
	}
	if err != nil || len(of.ids) != n {
		t.Errorf("%d of %d sandboxes are listed, error %v", len(of.ids), n, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return of
}

func checkReaped(t *testing.T, opts Options, n int, ids map[string]bool) {
	t.Helper()
	// Without anybody's help the processes end.
	err := eventually(t.Context(), func() (bool, error) {
		left := marked(ids)
		return len(left) == 0, fmt.Errorf("processes %v are left", left)
	})
	if err != nil {
		t.Error(err)
	}
	reaped, err := Reap(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range reaped {
		if !ids[e.ID] || e.Alive || e.Labels.Run != "held" {
			t.Errorf("reaped %+v", e)
		}
	}
	if len(reaped) != n {
		t.Errorf("reaped %d sandboxes, want %d", len(reaped), n)
	}
	if again, err := Reap(t.Context(), opts); err != nil || len(again) != 0 {
		t.Errorf("reaping again: %v, error %v", again, err)
	}
}

// TestReapKills ends processes that nothing else has ended.
func TestReapKills(t *testing.T) {
	b := open(t, Options{})
	state := filepath.Dir(b.owner.dir)
	dead, err := newOwner(state, newToken(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dead.enter(record{ID: "left-behind"}); err != nil {
		t.Fatal(err)
	}
	if err := dead.held.Close(); err != nil { // as if it had died
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	cmd.Env = append(os.Environ(), marker+"=left-behind")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if _, err := Reap(t.Context(), Options{StateDir: state}); err != nil {
		t.Fatal(err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](<-ended); !ok || exit.String() != "signal: killed" {
		t.Errorf("the process ended with %v", exit)
	}
	if left, _ := filepath.Glob(filepath.Join(state, ownerPrefix+"*")); !slices.Equal(left, []string{b.owner.dir}) {
		t.Errorf("owners left: %v", left)
	}
}
