//go:build unix

package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/talaria-run/talaria/configs"
)

// spareDescriptors is what a run opens besides its connections and sandboxes,
// perSandbox what one of those takes: its three streams, and its process.
const (
	spareDescriptors = 64
	perSandbox       = 4
)

// checkDescriptors refuses a run that would use up the files that this process
// may open: it would fail in the middle of the night.
func checkDescriptors(cfg *configs.Run, at endpoints) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("asking for the limit of open files: %w", err)
	}
	l := cfg.Limits.Concurrency
	all := min(l.Requests, l.Episodes)*len(at.byURL) + spareDescriptors
	if needsSandboxes(cfg) {
		all += min(l.Sandboxes, l.Episodes) * perSandbox
	}
	needs := uint64(all)            //nolint:gosec // none of it is negative
	if needs <= uint64(limit.Cur) { //nolint:unconvert // signed on some systems
		return nil
	}
	return fmt.Errorf(
		"limits.concurrency needs %d open files and this process may have %d: raise the limit with 'ulimit -n %d', or lower limits.concurrency.requests or limits.concurrency.sandboxes",
		needs, limit.Cur, needs)
}
