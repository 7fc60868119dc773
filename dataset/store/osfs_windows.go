package store

import (
	"errors"

	"golang.org/x/sys/windows"
)

// syncDir does nothing: Windows has no such call, and NTFS journals renames.
func syncDir(string) error { return nil }

// isDiskFull reports whether an error passes when somebody makes space.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
