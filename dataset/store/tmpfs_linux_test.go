package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/talaria-run/talaria/dataset"
)

var inNamespace = flag.Bool("in-namespace", false, "the test runs in a mount namespace of its own")

// TestDiskFullForReal records a run on a tmpfs of 16 MiB until it is full,
// makes space, and goes on: no acknowledged attempt is lost. It runs itself
// again in a mount namespace, which root may make, and others in a user
// namespace.
func TestDiskFullForReal(t *testing.T) {
	if *inNamespace {
		fillDisk(t)
		return
	}
	flags := "-rm"
	if os.Geteuid() == 0 {
		flags = "-m"
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", flags, "mount", "-t", "tmpfs", "tmpfs", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("no mount namespace with a tmpfs (unshare %s): %v: %s", flags, err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", flags, self, "-test.run=^TestDiskFullForReal$", "-test.v", "-in-namespace")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestDiskFullForReal") {
		t.Fatalf("in its namespace: %v\n%s", err, out)
	}
}

func fillDisk(t *testing.T) {
	t.Helper()
	disk := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Fatalf("mounting: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.Background(), "umount", disk).CombinedOutput(); err != nil {
			t.Errorf("unmounting: %v: %s", err, out)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 7<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, opts := filepath.Join(disk, "run"), Options{PartBytes: 1 << 20}
	s := mustCreate(t, dir, opts)
	acked := 0
	var err error
	for err == nil && acked < 1000 {
		if err = s.Write(t.Context(), []*dataset.Trajectory{noisyTrajectory(acked)}); err == nil {
			acked++
		}
	}
	if closeErr := s.Close(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(closeErr, syscall.ENOSPC) {
		t.Fatalf("after %d attempts: Write: %v; Close: %v; want ENOSPC", acked, err, closeErr)
	}
	if acked < 20 {
		t.Fatalf("only %d attempts before the disk was full", acked)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, opts)
	for i := range acked {
		if got := s.Index().State(sampleEpisode(i).ID).Attempts; got != 1 {
			t.Errorf("attempt %d is recorded %d times after resuming", i, got)
		}
	}
	mustWrite(t, s, noisyTrajectory(2000))
	mustClose(t, s)
	count := map[string]int{}
	for _, a := range allRows(t, osFS{}, dir).Attempts {
		count[a.EpisodeID]++
	}
	for i := range acked {
		if got := count[sampleEpisode(i).ID]; got != 1 {
			t.Errorf("attempt %d has %d rows", i, got)
		}
	}
}

// noisyTrajectory does not compress.
func noisyTrajectory(i int) *dataset.Trajectory {
	tr := sampleTrajectory(i, false)
	rng := rand.New(rand.NewPCG(uint64(i), 0))
	var b strings.Builder
	for range 10_000 {
		fmt.Fprintf(&b, "%016x", rng.Uint64())
	}
	tr.Messages[1].Content = b.String()
	return tr
}
