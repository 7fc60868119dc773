//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset/store"
)

// TestStatusOfAKilledRun asks for a run's state while a process writes it and
// after that was killed, when run.json still says that it is running.
func TestStatusOfAKilledRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{LatencyMinMS: 60_000, LatencyMaxMS: 60_000})
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "run", labConfig(t, l.base, 4, ""), "--out", dir)
	p.says(t, "recording in ")
	until(t, "the process tells what it does", func() bool {
		return readLive(dir, time.Now()) != nil
	})
	stdout, _ := mustExit(t, 0, "status", dir)
	wantTexts(t, stdout, "lab: running, 0 of 4 episodes", "4 in flight", l.base+": 4 in flight, limit ")
	stdout, _ = mustExit(t, 0, "status", dir, "--format", "json")
	wantTexts(t, stdout, `"endpoints":[{"endpoint":"`+l.base+`"`)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	if state := runOf(t, dir).State; state != store.StateRunning {
		t.Fatalf("run.json says %s: the test shows nothing", state)
	}
	stdout, _ = mustExit(t, 0, "status", dir)
	wantTexts(t, stdout, "lab: interrupted, 0 of 4 episodes")
	if strings.Contains(stdout, l.base) {
		t.Errorf("status tells of requests of a process that is gone:\n%s", stdout)
	}
	stdout, _ = mustExit(t, 0, "status", dir, "--format", "json")
	wantTexts(t, stdout, `"state":"interrupted"`)
}
