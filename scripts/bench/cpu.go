//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has used, user and system together.
func cpuTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("asking for the CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// cpuOf is what a process that has ended used.
func cpuOf(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// measure prints the CPU time of f on stdout, in nanoseconds, for the parent.
func measure(f func() error) error {
	before, err := cpuTime()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := cpuTime()
	if err != nil {
		return err
	}
	fmt.Println(int64(after - before))
	return nil
}

func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}
