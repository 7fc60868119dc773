package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/sandboxtest"
)

// open is a backend with a state directory of its own, which other users can
// search.
func open(t *testing.T, opts Options) *Backend {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	opts.StateDir = filepath.Join(dir, "state")
	b, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestConformance(t *testing.T) { sandboxtest.Run(t, open(t, Options{})) }

// TestAsUser runs the other tests again as an unprivileged user.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests run as a user anyway")
	}
	args := []string{"-test.run=" + ".", "-test.skip=^TestAsUser$"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	// By descriptor: the user cannot reach the file by name.
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", args...)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as a user: %v", err)
	}
	t.Logf("%s", out)
}

// TestStrictBinary runs a test with a binary that is its owner's alone.
func TestStrictBinary(t *testing.T) {
	strict := filepath.Join(t.TempDir(), "strict")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strict, self, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strict, "-test.run=^TestList$")
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestUnconfined finds no bubblewrap.
func TestUnconfined(t *testing.T) {
	missing := Options{Bwrap: "/no/such/bwrap", StateDir: t.TempDir()}
	_, err := New(t.Context(), missing)
	if unavailable, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(unavailable.Fix, "install the package bubblewrap") {
		t.Errorf("without bubblewrap the error is %v", err)
	}
	missing.AllowUnconfined = true
	b := open(t, missing)
	if b.Confined() {
		t.Fatal("confined by nothing")
	}
	sandboxtest.Run(t, b)
}

// TestPrivateTemp has the state lie where no sandbox's user can reach it: that is
// known before anything is spent.
func TestPrivateTemp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has other users")
	}
	for _, opts := range []Options{{}, {Bwrap: "/no/such/bwrap", AllowUnconfined: true}, {AllowUnconfined: true}} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		opts.StateDir = filepath.Join(dir, "state")
		_, err := New(t.Context(), opts)
		if unavailable, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(unavailable.Fix, "TMPDIR") {
			t.Errorf("%+v: the error is %v", opts, err)
		}
	}
}

func TestContain(t *testing.T) {
	sandboxtest.Contain(t, open(t, Options{Ahead: 1}), os.Geteuid() == 0)
}
