package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// runCommands is about commands beside each other and beyond the shell.
func runCommands(t *testing.T, b sandbox.Backend) {
	t.Helper()
	t.Run("huge output", func(t *testing.T) { testHugeOutput(t, b) })
	t.Run("one after another", func(t *testing.T) { testTurns(t, b) })
	t.Run("fresh ones beside", func(t *testing.T) { testBeside(t, b) })
	t.Run("kill overtakes", func(t *testing.T) { testKillOvertakes(t, b) })
	t.Run("cancelled", func(t *testing.T) { testCancelled(t, b) })
	t.Run("bad commands", func(t *testing.T) {
		box := start(t, b, sandbox.Spec{})
		for _, cmd := range []sandbox.Command{
			{}, {Script: "true", Argv: []string{"true"}}, {Script: "true", Stdin: make([]byte, sandbox.MaxInput+1)},
		} {
			if _, err := box.Exec(t.Context(), cmd); err == nil {
				t.Errorf("a command with script %q and %d arguments was accepted", cmd.Script, len(cmd.Argv))
			}
		}
		script("echo fine", "fine\n").check(t, box)
	})
}

func testHugeOutput(t *testing.T, b sandbox.Backend) {
	t.Helper()
	const size, kept = 200_000_000, 20_000
	box := start(t, b, sandbox.Spec{})
	got, err := box.Exec(t.Context(), sandbox.Command{
		Script: fmt.Sprintf("echo first; head -c %d /dev/zero; echo last", size), MaxOutput: kept,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Output) != kept || got.Omitted != size+int64(len("first\nlast\n"))-kept {
		t.Errorf("kept %d bytes and omitted %d", len(got.Output), got.Omitted)
	}
	head, tail := got.Output[:got.Gap], got.Output[got.Gap:]
	if len(head) != kept*2/5 || !bytes.HasPrefix(head, []byte("first\n\x00")) || !bytes.HasSuffix(tail, []byte("\x00last\n")) {
		t.Errorf("%d bytes before the gap, %.10q ... %.10q", len(head), head, tail[len(tail)-10:])
	}
}

// testTurns sees that commands that keep state lose none of it when they come
// at once.
func testTurns(t *testing.T, b sandbox.Backend) {
	t.Helper()
	box := start(t, b, sandbox.Spec{})
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, err := box.Exec(t.Context(), sandbox.Command{Script: fmt.Sprintf("export MINE_%d=1", i)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Count(must(t, box, "env"), "MINE_"); got != n {
		t.Errorf("%d of %d variables are left", got, n)
	}
}

func testBeside(t *testing.T, b sandbox.Backend) {
	t.Helper()
	box := start(t, b, sandbox.Spec{})
	waiting := make(chan error, 1)
	go func() {
		got, err := box.Exec(t.Context(), sandbox.Command{Script: "until test -e go; do sleep 0.01; done"})
		if got.ExitCode != 0 {
			err = errors.Join(err, fmt.Errorf("exit code %d", got.ExitCode))
		}
		waiting <- err
	}()
	step{Command: sandbox.Command{Script: "touch go", Fresh: true}}.check(t, box)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// testKillOvertakes sees that Kill waits for no command, however many there are.
func testKillOvertakes(t *testing.T, b sandbox.Backend) {
	t.Helper()
	box := start(t, b, sandbox.Spec{})
	var all sync.WaitGroup
	const n = 6
	codes := make(chan int, n)
	for i := range n {
		all.Go(func() {
			got, err := box.Exec(t.Context(), sandbox.Command{Script: "touch begun; sleep 1000", Fresh: i%2 == 0, Timeout: 2 * patience})
			if err != nil {
				t.Error(err)
			}
			codes <- got.ExitCode
		})
	}
	for ended := 0; ended < n; {
		if err := box.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case code := <-codes:
			ended++
			if code != 137 {
				t.Errorf("a command ended with %d", code)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	all.Wait()
}

func testCancelled(t *testing.T, b sandbox.Backend) {
	t.Helper()
	box := start(t, b, sandbox.Spec{})
	must(t, box, "export A=1")
	why := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		// Cancelled once the command runs.
		_, err := box.Exec(t.Context(), sandbox.Command{Script: "until test -e begun; do sleep 0.01; done", Fresh: true})
		cancel(errors.Join(err, why))
	}()
	_, err := box.Exec(ctx, sandbox.Command{Script: "echo $$ > pid; touch begun; sleep 100; touch ended"})
	if !errors.Is(err, why) {
		t.Errorf("Exec returned %v, want %v", err, why)
	}
	step{Command: sandbox.Command{Script: `kill -0 "$(cat pid)" 2>/dev/null || test -e ended`}, exit: 1}.check(t, box)
	script("echo $A", "1\n").check(t, box)
}
