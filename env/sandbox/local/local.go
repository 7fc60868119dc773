// Package local is the sandbox backend for a Linux machine without containers:
// bubblewrap with namespaces of its own for each sandbox, cgroups where they
// can be had and resource limits where not, and a user of its own for each
// sandbox if the harness runs as root. [New] makes a [Backend]; [Probe] tells
// what this machine can enforce; [List] and [Reap] deal with what harnesses
// left that were killed.
//
// A sandbox sees the host's programs read-only, few of its settings, and
// nothing else of it. Its own files lie in one file system in memory, whose
// size is the disk limit; they end with the last of its processes. The
// processes end with the sandbox, with the harness, or with [Backend.Close],
// whichever comes first.
package local

import (
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Name is what the backend is called in configs and in [sandbox.Info].
const Name = "local"

// Options of a backend. The zero value is a good choice.
type Options struct {
	// Bwrap is the path of bubblewrap; looked up in PATH if it is empty.
	Bwrap string
	// StateDir holds what the harnesses of one user tell each other about
	// their sandboxes; "talaria-<uid>" in the temporary folder if it is empty.
	// Harnesses that share it do not share users, and reap after each other.
	// If the harness is root, others need to be able to search it.
	StateDir string
	// ReadOnly are further directories of the host that sandboxes see, under
	// their own names.
	ReadOnly []string
	// Ahead is how many sandboxes are started before anybody asks for them, each
	// like the one that was asked for last, so that Start does not have to wait
	// for one to boot. An idle one costs about 2 MiB.
	Ahead int
	// AllowUnconfined runs commands as mere processes where bubblewrap is
	// missing or does not work. They can then do whatever their user can.
	AllowUnconfined bool
}

// Entry is a sandbox that a harness of this user has started.
type Entry struct {
	ID       string         `json:"id"`
	Labels   sandbox.Labels `json:"labels"`
	Started  time.Time      `json:"started"`
	Confined bool           `json:"confined"`
	Owner    int            `json:"owner"` // the harness's process
	Alive    bool           `json:"alive"` // whether the harness is
}

// Finding is one line of what [Probe] found.
type Finding struct {
	Name   string // a Hold constant of package sandbox, or what it is about
	OK     bool
	Detail string
	Fix    string // what to do if it is not OK
}
