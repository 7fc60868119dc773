package terminal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/local"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
	"github.com/talaria-run/talaria/env/terminal"
)

func TestMain(m *testing.M) {
	if supervisor.Main(os.Args) {
		return
	}
	os.Exit(m.Run())
}

// worlds runs a test in sandboxes, where this machine has them, and among mere
// processes.
func worlds(t *testing.T, test func(t *testing.T, b sandbox.Backend)) {
	t.Helper()
	for _, world := range []struct {
		name string
		opts local.Options
	}{
		{"confined", local.Options{}},
		{"unconfined", local.Options{Bwrap: "/no/such/bwrap", AllowUnconfined: true}},
	} {
		t.Run(world.name, func(t *testing.T) {
			test(t, backend(t, world.opts))
		})
	}
}

// backend has a state directory of its own, which other users can search.
func backend(t *testing.T, opts local.Options) sandbox.Backend {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	opts.StateDir = filepath.Join(dir, "state")
	b, err := local.New(t.Context(), opts)
	if unavailable, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		t.Skip(unavailable)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// limits are those of a careful config.
func limits() sandbox.Spec {
	return sandbox.Spec{Memory: 512 << 20, Disk: 64 << 20, Pids: 128}
}

func prompt(t dataset.Task) ([]dataset.Message, error) {
	if t.Input == "" {
		return nil, errors.New("no input")
	}
	return []dataset.Message{{Role: dataset.User, Content: t.Input}}, nil
}

func newFactory(t *testing.T, setup env.Setup) env.Factory {
	t.Helper()
	setup.Prompt = prompt
	if setup.Spec.Memory == 0 {
		setup.Spec = limits()
	}
	f, err := terminal.New(setup)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
