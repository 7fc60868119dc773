package terminal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env/sandbox"
)

const (
	// defaultVerifierTimeout and defaultHookTimeout are Harbor's.
	defaultVerifierTimeout = 600 * time.Second
	defaultHookTimeout     = 60 * time.Second
	// clearTimeout bounds the removal of what the agent left in the verifier's
	// place, which may be many files.
	clearTimeout = 2 * time.Minute
	// shownOutput is how much of the verifier's output a row keeps, in bytes.
	shownOutput = 2 << 10
)

// Score implements [env.Scored]. What the agent left decides, and nothing that
// it still does: its processes are killed first.
func (w *world) Score(ctx context.Context, _ *dataset.Trajectory) ([]dataset.Reward, error) {
	if w.box == nil {
		return nil, errors.New("verifying: there is no sandbox")
	}
	if err := w.box.Kill(ctx); err != nil {
		return nil, fmt.Errorf("ending the agent's processes: %w", err)
	}
	if err := w.collect(ctx); err != nil {
		return nil, err
	}
	full, err := w.clear(ctx)
	if err == nil && !full {
		full, err = w.uploadTests(ctx)
	}
	if err != nil {
		return nil, err
	}
	if full {
		return noRoom(), nil
	}
	return w.verify(ctx)
}

// noRoom is the score where the agent has filled its disk, or its memory with
// files, to the last: a task cannot be solved in a way that leaves no room to
// look at the solution.
func noRoom() []dataset.Reward {
	zero := 0.0
	return []dataset.Reward{{
		Name: scoreKey, Source: dataset.FromEnv, Value: &zero, Chosen: true,
		Explanation: "the agent left no room in the sandbox for the verifier",
	}}
}

// collect runs the task's hooks. What they print and how they exit is their own
// affair.
func (w *world) collect(ctx context.Context) error {
	for _, hook := range w.task.Collect {
		cmd := w.command(hook.Command, seconds(hook.TimeoutSec), defaultHookTimeout)
		result, err := w.box.Exec(ctx, cmd)
		if err != nil {
			return fmt.Errorf("running a hook of task %q: %w", w.ep.Task.ID, err)
		}
		if result.TimedOut {
			return taskError(w.ep, "a hook ran for more than %v: %s", cmd.Timeout, hook.Command)
		}
	}
	if len(w.task.Collect) == 0 {
		return nil
	}
	return w.box.Kill(ctx)
}

// Names of the sandbox's own world.
func (w *world) tests() string    { return w.box.Info().Path("/tests") }
func (w *world) logs() string     { return w.box.Info().Path("/logs") }
func (w *world) scratch() string  { return w.box.Info().Path("/tmp/verifier") }
func (w *world) verifier() string { return path.Join(w.logs(), "verifier") }

// command is a command of the task: nothing of the agent's shell is in it.
func (w *world) command(script string, timeout, otherwise time.Duration) sandbox.Command {
	return sandbox.Command{
		Script: script, Fresh: true, Cwd: w.box.Info().Workdir, Timeout: cmp.Or(timeout, otherwise),
		Env: map[string]string{"TESTS": w.tests(), "LOGS": w.logs()},
	}
}

// clearing makes way for the verifier. The names may have become links, files,
// or directories locked by their owner, and the working directory may be gone.
// In the end it tries for a little room on the disk and in memory, which many
// files can fill that take no room on the disk.
const clearing = `
umask 022
wipe() {
	if [ -d "$1" ] && [ ! -L "$1" ]; then chmod -R u+rwx "$1"; fi
	rm -rf "$1"
}
place() {
	if [ -L "$1" ] || [ ! -d "$1" ]; then wipe "$1"; mkdir -p "$1"; fi
	chmod u+rwx "$1"
}
place "$ROOT"
place "$TMP"
place "$LOGS"
wipe "$TESTS"
wipe "$LOGS/verifier"
wipe "$SCRATCH"
if [ ! -d "$WORK" ]; then wipe "$WORK"; mkdir -p "$WORK"; fi
chmod u+rwx "$WORK"
mkdir "$TESTS" "$LOGS/verifier" "$SCRATCH" "$SCRATCH/home" "$SCRATCH/tmp" || exit
head -c 1048576 /dev/zero >"$SCRATCH/room" || exit
rm "$SCRATCH/room"
dd if=/dev/zero of=/dev/null bs=16777216 count=1
`

// noRoomCode tells whether a program ended so for want of memory: killed, not
// started, or not able to load its libraries.
func noRoomCode(code int) bool {
	return code == 128+9 || code == sandbox.ExitUnstartable || code == 127
}

// clear makes way for the verifier; full tells that the disk has no room for
// it.
func (w *world) clear(ctx context.Context) (full bool, err error) {
	info := w.box.Info()
	cmd := w.command(clearing, clearTimeout, 0)
	cmd.Cwd = info.Path("/")
	maps.Copy(cmd.Env, map[string]string{
		"LC_ALL": "C", "ROOT": info.Path("/"), "TMP": info.Path("/tmp"), "SCRATCH": w.scratch(), "WORK": info.Workdir,
	})
	result, err := w.box.Exec(ctx, cmd)
	switch {
	case err != nil:
		return false, fmt.Errorf("making way for the verifier: %w", err)
	case result.TimedOut:
		return false, fmt.Errorf("making way for the verifier took more than %v", cmd.Timeout)
	case result.ExitCode == 0:
		return false, nil
	case w.bounded(sandbox.HoldDisk) && bytes.Contains(result.Output, []byte("No space left on device")),
		w.bounded(sandbox.HoldMemory) && noRoomCode(result.ExitCode):
		return true, nil
	}
	return false, fmt.Errorf("making way for the verifier: exit code %d: %s", result.ExitCode, w.tail(result.Output))
}

// bounded tells that what may be full is the sandbox's own.
func (w *world) bounded(hold string) bool { return w.box.Info().Mechanism(hold) != "" }

func (w *world) uploadTests(ctx context.Context) (full bool, err error) {
	err = upload(ctx, w.box, w.tests(), w.ep.Task.Files, testsDir)
	if errors.Is(err, syscall.ENOSPC) && w.bounded(sandbox.HoldDisk) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("putting the tests of task %q into the sandbox: %w", w.ep.Task.ID, err)
	}
	return false, nil
}

// runTests runs the tests by bash where it is, else by sh.
const runTests = `
if command -v bash >/dev/null 2>&1; then exec bash "$TESTS/test.sh"; fi
exec sh "$TESTS/test.sh"
`

// verify runs the tests and reads the reward. Whatever they left running is
// ended before, so that nothing writes a reward any more.
func (w *world) verify(ctx context.Context) ([]dataset.Reward, error) {
	cmd := w.command(runTests, seconds(w.task.VerifierTimeoutSec), defaultVerifierTimeout)
	cmd.Env["HOME"], cmd.Env["TMPDIR"] = path.Join(w.scratch(), "home"), path.Join(w.scratch(), "tmp")
	maps.Copy(cmd.Env, w.lines[forVerifier])
	result, err := w.box.Exec(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("running the verifier: %w", err)
	}
	if result.TimedOut {
		return nil, taskError(w.ep, "the verifier ran for more than %v", cmd.Timeout)
	}
	if err := w.box.Kill(ctx); err != nil {
		return nil, fmt.Errorf("ending the verifier's processes: %w", err)
	}
	rewards, err := w.readReward(ctx)
	if broken, ok := errors.AsType[*rewardError](err); ok {
		return nil, taskError(w.ep, "%w; the verifier ended with exit code %d and said: %s",
			broken, result.ExitCode, w.tail(result.Output))
	}
	if err != nil {
		return nil, err
	}
	rewards[0].Explanation = w.tail(result.Output)
	return rewards, nil
}

// readReward reads the file that the verifier left.
func (w *world) readReward(ctx context.Context) ([]dataset.Reward, error) {
	for _, f := range []struct {
		name  string
		parse func([]byte) ([]dataset.Reward, error)
	}{{"reward.json", parseJSON}, {"reward.txt", parseText}} {
		file, err := w.box.ReadFile(ctx, path.Join(w.verifier(), f.name), 0, maxReward+1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, &rewardError{f.name, err}
		}
		if err != nil {
			return nil, fmt.Errorf("reading the reward: %w", err)
		}
		rewards, err := parseReward(file.Data, f.parse)
		if err != nil {
			return nil, &rewardError{f.name, err}
		}
		return rewards, nil
	}
	return nil, &rewardError{"reward.json or reward.txt", errors.New("the verifier left none")}
}

// tail is the end of an output as text, without the names of the host.
func (w *world) tail(output []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(output), "\uFFFD"))
	if root := w.box.Info().Root; root != "" {
		text = strings.ReplaceAll(text, root, "")
	}
	if cut := len(text) - shownOutput; cut > 0 {
		text = "..." + strings.ToValidUTF8(text[cut:], "")
	}
	return text
}
