//go:build !linux

package supervisor

// Main does nothing: the supervisor needs Linux.
func Main([]string) (handled bool) { return false }
