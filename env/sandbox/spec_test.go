package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

func TestSpecValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		spec sandbox.Spec
		want []string // parts of the error; none: it is valid
	}{
		{"zero", sandbox.Spec{}, nil},
		{"full", sandbox.Spec{Network: sandbox.NetworkHost, Memory: 1, Disk: 1, Pids: 1, Timeout: 1, Workdir: "/a", Env: map[string]string{"A": ""}}, nil},
		{"network", sandbox.Spec{Network: "bridge"}, []string{`network "bridge"`}},
		{"several", sandbox.Spec{Pids: -1, Workdir: "a", Env: map[string]string{"": ""}}, []string{"negative", `workdir "a"`, `variable ""`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.spec.Validate()
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %q", err, part)
				}
			}
		})
	}
}

func TestInfo(t *testing.T) {
	info := sandbox.Info{Root: "/tmp/x", Enforced: []string{"memory:cgroup2", "memoryless:no"}}
	for _, c := range []struct{ got, want string }{
		{info.Mechanism(sandbox.HoldMemory), "cgroup2"},
		{info.Mechanism(sandbox.HoldDisk), ""},
		{info.Path("/logs/verifier"), "/tmp/x/logs/verifier"},
		{sandbox.Info{}.Path("/logs/verifier"), "/logs/verifier"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	words := []string{"plain", "", "a b", "it's", `"$HOME"`, "`x`", "\\", "a\nb", "*", "''", "é\xff"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' "+sandbox.Quote(words...)).Output()
	if err != nil {
		t.Skipf("needs sh: %v", err)
	}
	if diff := cmp.Diff(strings.Join(words, "|")+"|", string(out)); diff != "" {
		t.Errorf("what the shell makes of it (-want +got):\n%s", diff)
	}
}
