package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Contain attacks what a backend says it enforces. Each attack is bounded, so
// that it does little harm where it succeeds. What a sandbox does not claim to
// enforce is skipped, or fails if strict is set.
//
// Whether anything is left of it all is for the backend's own test to see.
func Contain(t *testing.T, b sandbox.Backend, strict bool) {
	t.Helper()
	for _, attack := range []struct {
		name string
		hold string
		run  func(*testing.T, sandbox.Sandbox)
	}{
		{"fork bomb", sandbox.HoldPids, forkBomb},
		{"many processes", sandbox.HoldPids, manyProcesses},
		{"memory bomb", sandbox.HoldMemory, memoryBomb},
		{"memory bomb in many processes", sandbox.HoldMemory, memoryBombs},
		{"disk fill", sandbox.HoldDisk, diskFill},
		{"disk and memory fill", sandbox.HoldDisk, fillBoth},
		{"many files", sandbox.HoldFiles, manyFiles},
		{"all that is kept", sandbox.HoldFiles, fillKept},
		{"writes outside", sandbox.HoldSystem, writesOutside},
		{"reads outside", sandbox.HoldSystem, readsOutside},
		{"system replaced", sandbox.HoldSystem, systemReplaced},
		{"host network", sandbox.HoldNetwork, hostNetwork},
		{"host processes", sandbox.HoldProcesses, hostProcesses},
		{"kill everything", sandbox.HoldProcesses, killEverything},
		{"supervisor", sandbox.HoldProcesses, attackSupervisor},
		{"namespaces", sandbox.HoldNesting, namespaces},
		{"kernel settings", sandbox.HoldSystem, kernelSettings},
	} {
		t.Run(attack.name, func(t *testing.T) {
			box := start(t, b, limited())
			if box.Info().Mechanism(attack.hold) == "" {
				if strict {
					t.Fatalf("%s is not enforced, only %v", attack.hold, box.Info().Enforced)
				}
				t.Skipf("%s is not enforced here, only %v", attack.hold, box.Info().Enforced)
			}
			attack.run(t, box)
			if err := box.Kill(t.Context()); err != nil {
				t.Fatalf("Kill: %v", err)
			}
			script("echo usable", "usable\n").check(t, box)
		})
	}
}

const (
	maxMemory = 128 << 20
	maxDisk   = 32 << 20
	maxPids   = 64
)

func limited() sandbox.Spec {
	return sandbox.Spec{Memory: maxMemory, Disk: maxDisk, Pids: maxPids, Timeout: patience}
}

// attempt runs a script whose fate is open.
func attempt(t *testing.T, box sandbox.Sandbox, text string) sandbox.Result {
	t.Helper()
	got, err := box.Exec(t.Context(), sandbox.Command{Script: text})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

// refuse runs scripts that all have to fail.
func refuse(t *testing.T, box sandbox.Sandbox, scripts ...string) {
	t.Helper()
	for _, text := range scripts {
		if got := attempt(t, box, text); got.ExitCode == 0 {
			t.Errorf("%s succeeded: %s", text, got.Output)
		}
	}
}

func forkBomb(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	got, err := box.Exec(t.Context(), sandbox.Command{Script: "bomb() { bomb | bomb & }; bomb; sleep 5", Timeout: 2 * time.Second})
	if err != nil {
		t.Fatalf("the bomb harmed the sandbox: %v", err)
	}
	t.Logf("exit code %d, timed out: %v, %d bytes of output", got.ExitCode, got.TimedOut, len(got.Output))
	// The command after it may find no room, but says so.
	if got := attempt(t, box, "true"); got.ExitCode != 0 {
		t.Logf("the next command: exit code %d, %.200s", got.ExitCode, got.Output)
	}
}

// manyProcesses counts how many processes there can be: bounded, in case that
// nothing stops them.
func manyProcesses(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	// A plain sh does not try again and again.
	got, err := box.Exec(t.Context(), sandbox.Command{
		Argv: []string{"sh", "-c", "i=0; while test $i -lt 300; do sleep 100 & i=$((i+1)); echo $i > count; done"},
	})
	if err != nil || got.ExitCode == 0 {
		t.Errorf("exit code %d, error %v", got.ExitCode, err)
	}
	file, err := box.ReadFile(t.Context(), box.Info().Workdir+"/count", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(file.Data))); err != nil || n > maxPids || n < maxPids/2 {
		t.Errorf("%d processes were possible with a limit of %d, error %v", n, maxPids, err)
	}
}

// memoryBomb doubles a string up to four times the limit.
func memoryBomb(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	const grow = `x=0123456789abcdef; while test ${#x} -lt ` + "536870912" + `; do x=$x$x; done; echo grown`
	got := attempt(t, box, grow)
	if got.ExitCode == 0 || strings.Contains(string(got.Output), "grown") {
		t.Errorf("exit code %d, output %.200s", got.ExitCode, got.Output)
	}
	t.Logf("exit code %d, %.100s", got.ExitCode, got.Output)
}

// memoryBombs keeps every process below a limit that is one for each.
func memoryBombs(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	if box.Info().Mechanism(sandbox.HoldMemory) == "rlimit" {
		t.Skip("the limit is one for each process here")
	}
	got := attempt(t, box, `
hold() {
	x=0123456789abcdef
	while test ${#x} -lt 33554432; do x=$x$x; done
	touch grown.$1
	until test -e stop; do sleep 0.1; done
}
alive() { for pid in $pids; do kill -0 $pid 2>/dev/null || return 1; done; }
grown() { for i in 1 2 3 4 5 6 7 8 9 10; do test -e grown.$i || return 1; done; }
pids=
for i in 1 2 3 4 5 6 7 8 9 10; do hold $i & pids="$pids $!"; done
while alive && ! grown; do sleep 0.1; done
alive && echo all alive
touch stop`)
	if got.TimedOut {
		t.Error("the processes neither grew nor ended")
	}
	if strings.Contains(string(got.Output), "all alive") {
		t.Error("ten processes of 32 MiB fit into 128 MiB")
	}
}

func diskFill(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	must(t, box, "export A=1; mkdir d; cd d")
	for _, file := range []string{"big", "/tmp/big", "/dev/shm/big", "/var/tmp/big"} {
		got := attempt(t, box, fmt.Sprintf("head -c %d /dev/zero > %s", 4*maxDisk, file))
		if got.ExitCode == 0 || got.StateRolledBack {
			t.Errorf("%s: exit code %d, state rolled back: %v", file, got.ExitCode, got.StateRolledBack)
		}
	}
	err := box.WriteFile(t.Context(), "more", make([]byte, 1<<20), 0)
	if _, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing to a full disk: %v", err)
	}
	// The state is kept all the same, and there is a way back.
	script(`export B=2; cd ..; echo $A; rm -f d/* /tmp/big /dev/shm/big /var/tmp/big`, "1\n").check(t, box)
	script(`echo $B; echo fits > f; cat f`, "2\nfits\n").check(t, box)
}

// fillBoth wants memory when files have taken all they may.
func fillBoth(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	attempt(t, box, fmt.Sprintf("head -c %d /dev/zero > big", 4*maxDisk))
	if box.Info().Mechanism(sandbox.HoldMemory) != "" {
		memoryBomb(t, box)
	}
	script("rm big; echo fine", "fine\n").check(t, box)
}

// makeFiles makes empty files with long names, in a directory, until there can
// be no more.
const makeFiles = `
mkdir -p $dir && cd $dir || exit
long=$(printf %0200d 0)
i=0
while [ $i -lt 300 ]; do
	touch $(seq -f "$long%.0f" $((i*1000)) $((i*1000+999))) || exit
	i=$((i+1))
done`

// manyFiles makes more empty files than a disk of this size should have.
func manyFiles(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	must(t, box, "export A=1")
	for _, dir := range []string{"many", "/tmp/many", "/dev/shm/many"} {
		got := attempt(t, box, "dir="+dir+makeFiles)
		if got.ExitCode == 0 || got.StateRolledBack || !strings.Contains(string(got.Output), "No space left") {
			t.Errorf("%s: exit code %d, state rolled back: %v, %.200s", dir, got.ExitCode, got.StateRolledBack, got.Output)
		}
	}
	err := box.WriteFile(t.Context(), "more", nil, 0)
	if _, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a file too many: %v", err)
	}
	script(`cd /; rm -rf /workspace/many /tmp/many /dev/shm/many; echo $A > /tmp/f; cat /tmp/f`, "1\n").check(t, box)
}

// fillKept takes all that stays when processes have ended, and then wants memory.
func fillKept(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	for _, dir := range []string{"/workspace", "/dev/shm", "/run/talaria"} {
		attempt(t, box, "(dir="+dir+"/many"+makeFiles+`); head -c 200000000 /dev/zero > `+dir+"/many/fill; head -c 200000000 /dev/zero > "+dir+"/fill")
	}
	attempt(t, box, "i=0; while [ $i -lt 300 ]; do ipcmk -M 1000000 && ipcmk -Q && ipcmk -S 250 || break; i=$((i+1)); done")
	attempt(t, box, `command -v perl >/dev/null && perl -e 'while () { my $id = shmget(0, 1<<20, 0600) // last; shmwrite($id, "x" x (1<<20), 0, 1<<20) }'`)
	attempt(t, box, `command -v perl >/dev/null && perl -e 'while () { my $id = msgget(0, 0600) // last; 1 while msgsnd($id, pack("l! a*", 1, "x" x 4000), 04000) }'`)
	if box.Info().Mechanism(sandbox.HoldMemory) != "" {
		memoryBomb(t, box)
	}
	script("rm -rf /workspace/* /dev/shm/* /run/talaria/*; echo fine", "fine\n").check(t, box)
}

func writesOutside(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	for _, dir := range []string{"/etc", "/usr", "/usr/bin", "/bin", "/lib", "/dev", "/proc", "/proc/sys/kernel"} {
		refuse(t, box, "echo x > "+dir+"/talaria-test")
	}
	refuse(t, box, "echo x >> /etc/passwd", "echo x > /bin/sh", "chmod 777 /etc", "rm -f /bin/sh", "mount -o remount,rw /usr", "umount /usr")
	if _, err := os.Stat("/usr/talaria-test"); err == nil {
		t.Error("a file has appeared on the host")
	}
}

func readsOutside(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("sings"), 0o644); err != nil { //nolint:gosec // for everybody to read
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err == nil {
		refuse(t, box, "ls "+sandbox.Quote(home))
	}
	refuse(t, box, "cat "+sandbox.Quote(canary), "cat /etc/shadow", "ls /sys/kernel", "ls /boot", "find /home /root /tmp /var -type f 2>/dev/null | grep .",
		"head -c 1 /dev/mem", "head -c 1 /dev/sda", "head -c 1 /dev/vda", "ls /proc/1/root/", "mknod x b 8 0")
}

// systemReplaced tries to put programs of its own in the way of others.
func systemReplaced(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	refuse(t, box, "mv /bin /bin2", "rmdir /bin", "ln -sfn /workspace /bin", "rm -f /bin && test ! -e /bin/sh",
		"mv /etc /etc2", "mv /usr /usr2", "mv /dev /dev2", "mv /lib /lib2", "mv /proc /proc2")
	step{Command: sandbox.Command{Script: "ls /bin/sh", Fresh: true}, out: "/bin/sh\n"}.check(t, box)
}

func hostNetwork(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	if !hasBash(t, box) {
		t.Skip("needs bash")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = conn.Close()
			close(reached)
		}
	}()
	refuse(t, box, "exec 3<>/dev/tcp/127.0.0.1/"+port, "exec 3<>/dev/tcp/192.0.2.1/80")
	select {
	case <-reached:
		t.Error("the host was reached")
	default:
	}
	if got := must(t, box, "tail -n +3 /proc/net/dev | grep -v lo: || true"); got != "" {
		t.Errorf("there are interfaces: %s", got)
	}
}

// hostProcesses looks for processes of the host, by name and by number.
func hostProcesses(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	victim := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	attempt(t, box, fmt.Sprintf("kill -9 %d %d", victim.Process.Pid, os.Getpid()))
	if got := must(t, box, `cat /proc/[0-9]*/cmdline | tr '\0' ' '`); strings.Contains(got, "sleep 1000") {
		t.Errorf("processes of the host can be seen: %s", got)
	}
	if n := strings.Count(must(t, box, "ls -d /proc/[0-9]*"), "\n"); n > 5 {
		t.Errorf("there are %d processes", n)
	}
	if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of the host was killed: %v", err)
	}
	_ = victim.Process.Kill()
	_ = victim.Wait()
}

// killEverything kills all it can, and stops what it cannot kill.
func killEverything(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	must(t, box, "export A=1")
	for _, text := range []string{
		"kill -9 -1", "kill -9 1; kill -STOP 1; kill -SEGV 1; kill -ABRT 1; kill -QUIT 1; kill -TERM 1; kill -HUP 1; kill -PIPE 1; true",
		"for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; true",
	} {
		attempt(t, box, text)
		script("echo $A", "1\n").check(t, box)
	}
}

// attackSupervisor tries to get at the process that speaks to the harness.
func attackSupervisor(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	refuse(t, box, "cat /proc/1/environ", "ls /proc/1/fd", "head -c 1 /proc/1/mem", "echo x > /proc/1/mem",
		"cat /proc/1/maps", "echo x > /proc/1/fd/1", "ls /proc/1/cwd/", "head -c 4 /proc/1/exe", "echo -1000 > /proc/self/oom_score_adj")
	if got := must(t, box, "ls /proc/self/fd | wc -l | tr -d ' '"); got > "4\n" {
		t.Errorf("commands inherit descriptors: %s", must(t, box, "ls -l /proc/self/fd"))
	}
}

func namespaces(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	if attempt(t, box, "command -v unshare").ExitCode != 0 {
		t.Skip("the sandbox has no unshare")
	}
	refuse(t, box, "unshare -U true", "unshare -r true", "unshare -m true", "unshare -n true", "unshare -p -f true",
		"unshare -r -m mount -t tmpfs tmpfs /tmp", "chroot / true")
}

// kernelSettings writes back what is there already, which would do no harm.
func kernelSettings(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	before, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger"} {
		refuse(t, box, "test -w "+name, "x=$(cat "+name+"); printf %s \"$x\" > "+name)
	}
	after, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || string(after) != string(before) {
		t.Errorf("core_pattern is %q, was %q, error %v", after, before, err)
	}
}

// Orphan starts a process that has left its group and its session, is deaf to
// SIGTERM. For tests that look for it from
// outside.
func Orphan(ctx context.Context, box sandbox.Sandbox) error {
	_, err := box.Exec(ctx, sandbox.Command{Script: `(setsid sh -c 'trap "" TERM HUP; (while :; do sleep 1; done) & :' &); true`})
	return err
}
