// Package bench measures the local backend beside the bare tools that it is
// made of, in one run: go test -bench . ./env/sandbox/local/bench
//
// It is a package of its own because the test binary is also the supervisor,
// whose start every sandbox waits for: what else is linked in counts.
package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/local"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

func TestMain(m *testing.M) {
	if supervisor.Main(os.Args) {
		return
	}
	os.Exit(m.Run())
}

func open(b *testing.B, ahead int) *local.Backend {
	b.Helper()
	dir := b.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		b.Fatal(err)
	}
	backend, err := local.New(b.Context(), local.Options{StateDir: filepath.Join(dir, "state"), Ahead: ahead})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := backend.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	return backend
}

func start(b *testing.B, backend *local.Backend) sandbox.Sandbox {
	b.Helper()
	box, err := backend.Start(b.Context(), sandbox.Spec{Memory: 512 << 20, Disk: 256 << 20, Pids: 128})
	if err != nil {
		b.Fatal(err)
	}
	return box
}

func command(b *testing.B, box sandbox.Sandbox) {
	b.Helper()
	if got, err := box.Exec(b.Context(), sandbox.Command{Script: "true"}); err != nil || got.ExitCode != 0 {
		b.Fatal(got, err)
	}
}

// bwrap is a process of bubblewrap that belongs to a sandbox of ours.
type bwrap struct {
	pid, child int
	args       []string
	user       uint32
}

// find looks for the processes of this harness's sandboxes.
func find(b *testing.B) []bwrap {
	b.Helper()
	var found []bwrap
	for _, pid := range children(os.Getpid()) {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			b.Fatal(err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if below := children(pid); ok && len(below) == 1 {
			args := strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
			found = append(found, bwrap{pid: pid, child: below[0], args: args, user: stat.Uid})
		}
	}
	return found
}

func children(pid int) []int {
	var pids []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(data)) {
			n, _ := strconv.Atoi(child)
			pids = append(pids, n)
		}
	}
	return pids
}

// bare runs bubblewrap as for a sandbox, but with a program of its own.
func (w bwrap) bare(b *testing.B, program ...string) {
	b.Helper()
	args := append(slices.Clone(w.args[1:slices.Index(w.args, "--")+1]), program...)
	cmd := exec.CommandContext(b.Context(), w.args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: w.user, Gid: w.user}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// BenchmarkLocal measures everything in turn and reports medians, because the
// machine's mood changes more between runs than anything that is measured. On a
// busy machine the processor time says more than the time on the wall.
func BenchmarkLocal(b *testing.B) {
	backend, cold := open(b, 1), open(b, 0)
	kept := start(b, cold)
	flags := find(b)[0]
	times, work := map[string][]time.Duration{}, map[string]time.Duration{}
	measure := func(name string, do func()) {
		begin, used := time.Now(), processor(b)
		do()
		times[name] = append(times[name], time.Since(begin))
		work[name] += processor(b) - used
	}
	whole := func(backend *local.Backend) {
		box := start(b, backend)
		command(b, box)
		if err := box.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		// Two at once: what was started ahead for the first is paid for too.
		measure("two-sandboxes", func() { whole(backend); whole(backend) })
		measure("cold-sandbox", func() { whole(cold) })
		measure("bwrap-true", func() { flags.bare(b, "/bin/true") })
		measure("bwrap-bash", func() { flags.bare(b, "/bin/bash", "-c", "true") })
		measure("command", func() { command(b, kept) })
		measure("bash", func() {
			if err := exec.CommandContext(b.Context(), "bash", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		})
	}
	median := func(name string) float64 {
		slices.Sort(times[name])
		return times[name][len(times[name])/2].Seconds() * 1000
	}
	for name := range times {
		b.ReportMetric(median(name), name+"-ms")
		b.ReportMetric(work[name].Seconds()*1000/float64(b.N), name+"-cpu-ms")
	}
	b.ReportMetric(median("two-sandboxes")/2/median("bwrap-true"), "sandbox/bwrap-true")
	b.ReportMetric(median("cold-sandbox")/median("bwrap-true"), "cold-sandbox/bwrap-true")
	b.ReportMetric(median("command")/median("bash"), "command/bash")
}

// processor is how long this process and those it has waited for have computed.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		sum += usage.Utime.Nano() + usage.Stime.Nano()
	}
	return time.Duration(sum)
}

// BenchmarkAlive holds 200 sandboxes at once and tells what each costs: the
// share of memory of its processes, and what the machine has less of.
func BenchmarkAlive(b *testing.B) {
	const n = 200
	backend := open(b, 0)
	for b.Loop() {
		before := number(b, "/proc/meminfo", "MemAvailable:")
		boxes := make([]sandbox.Sandbox, n)
		for i := range boxes {
			boxes[i] = start(b, backend)
			command(b, boxes[i])
		}
		after := number(b, "/proc/meminfo", "MemAvailable:")
		shares := 0
		for _, w := range find(b) {
			shares += number(b, fmt.Sprintf("/proc/%d/smaps_rollup", w.pid), "Pss:")
			shares += number(b, fmt.Sprintf("/proc/%d/smaps_rollup", w.child), "Pss:")
		}
		for _, box := range boxes {
			if err := box.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(shares)/n, "KiB-share/sandbox")
		b.ReportMetric(float64(before-after)/n, "KiB-available/sandbox")
	}
}

// number is what a file of the kernel says after name.
func number(b *testing.B, file, name string) int {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := strings.CutPrefix(string(line), name); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("no %s in %s", name, text)
	return 0
}
