//go:build unix

package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/talaria-run/talaria/configs"
)

// spareDescriptors is what a run opens besides its connections.
const spareDescriptors = 64

// checkDescriptors refuses a run that would use up the files that this process
// may open: it would fail in the middle of the night.
func checkDescriptors(cfg *configs.Run, at endpoints) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("asking for the limit of open files: %w", err)
	}
	perEndpoint := min(cfg.Limits.Concurrency.Requests, cfg.Limits.Concurrency.Episodes)
	needs := uint64(perEndpoint*len(at.byURL) + spareDescriptors) //nolint:gosec // neither is negative
	if needs <= uint64(limit.Cur) {                               //nolint:unconvert // signed on some systems
		return nil
	}
	return fmt.Errorf(
		"limits.concurrency needs %d open files and this process may have %d: raise the limit with 'ulimit -n %d', or lower limits.concurrency.requests",
		needs, limit.Cur, needs)
}
