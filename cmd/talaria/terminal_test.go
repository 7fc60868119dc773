//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset/store"
)

// onTerminal is talaria with a terminal of its own, by the tool script.
func onTerminal(t *testing.T, commandLine string) *exec.Cmd {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "script", "-qec", "true", "/dev/null").CombinedOutput(); err != nil {
		t.Skipf("script, which gives a terminal, does not work here: %v: %s", err, bytes.TrimSpace(out))
	}
	cmd := exec.CommandContext(t.Context(), "script", "-qec", "talaria "+commandLine, "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=xterm")
	return cmd
}

// TestLiveProgress runs on a terminal: the display is drawn over, in colours
// unless NO_COLOR is set, and the table is below it.
func TestLiveProgress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		env    []string
		drawn  bool
		colour bool
	}{
		{name: "terminal", drawn: true, colour: true},
		{name: "NO_COLOR", env: []string{"NO_COLOR=1"}, drawn: true},
		{name: "dumb", env: []string{"TERM=dumb"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			cmd := onTerminal(t, "run '"+questions(t, 500)+"' --out '"+dir+"' --concurrency 16 --set 'agent.simulate={latency_min: 20ms, latency_max: 40ms}'")
			cmd.Env = append(cmd.Env, test.env...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			screen := string(out)
			wantTexts(t, screen, "500/500 (100%) done", "default       500    500   1.000  100.0%")
			if drawn := strings.Contains(screen, "\x1b[3A"); drawn != test.drawn {
				t.Errorf("drawn over: %v, want %v", drawn, test.drawn)
			}
			if colour := strings.Contains(screen, green); colour != test.colour {
				t.Errorf("colours: %v, want %v", colour, test.colour)
			}
		})
	}
}

// TestTerminalHangsUp closes the terminal in the middle: the run goes on to its
// end.
func TestTerminalHangsUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{})
	l.hold(beyond(2))
	config := labConfig(t, l.base, 6, "limits: {concurrency: {episodes: 1}}\n")
	dir := filepath.Join(t.TempDir(), "run")
	terminal := launch(t, onTerminal(t, "run '"+config+"' --out '"+dir+"'"))
	l.awaitHeld(t, 1)
	terminal.signal(t, os.Kill)
	terminal.wait(t)
	l.open()
	until(t, "the run is complete", func() bool { return runOf(t, dir).State == store.StateComplete })
	if n := len(recorded(t, dir)); n != 6 {
		t.Errorf("%d attempts, want 6", n)
	}
	if code := runOf(t, dir).Invocations[0].ExitCode; code == nil || *code != 0 {
		t.Errorf("exit code %v, want 0", code)
	}
}
