// Package supervisor runs inside a sandbox and does there what the harness
// asks: run commands, read and write files, kill. It is the harness's own
// binary, started with [Arg] as its first argument; [Main] must see the
// arguments before anything else in main does, because every sandbox waits for
// it. A [Client] is the other end of the channel: frames over the supervisor's
// standard input and output.
//
// Each command is a fresh child in a session of its own, so that nothing a
// command does to its shell harms the next. What is to be kept between
// commands (directory, exported variables, functions, aliases) the shell
// itself writes down as it ends. As process 1 of its pid namespace the
// supervisor can neither be killed from inside nor outlived; elsewhere it
// adopts the orphans of its descendants and ends them.
package supervisor

import "time"

// Arg is the hidden first argument that makes a binary the supervisor.
const Arg = "talaria-sandbox-supervisor"

// Setup prepares a supervisor.
type Setup struct {
	// Dirs are made if they are missing, with their parents.
	Dirs []string `json:"dirs"`
	// Workdir is where commands begin; State a directory that only the
	// supervisor and its shells use, best on a file system of its own.
	Workdir string `json:"workdir"`
	State   string `json:"state"`
	// Env is all that commands begin with.
	Env map[string]string `json:"env"`
	// Mark stands in the environment of every process, whatever the state of the
	// shell: by it they are found should the supervisor be killed.
	Mark    map[string]string `json:"mark,omitempty"`
	Shell   string            `json:"shell,omitempty"` // default: bash where it is, else sh
	Timeout time.Duration     `json:"timeout,omitempty"`
	// Memory bounds the private memory of each process, in bytes; Pids the
	// processes of the supervisor's user in its user namespace.
	Memory int64 `json:"memory,omitempty"`
	Pids   int   `json:"pids,omitempty"`
	// Remove are directories to remove as the supervisor ends.
	Remove []string `json:"remove,omitempty"`
}

// Observed is what a supervisor sees of its surroundings: the ground for what a
// backend claims to enforce.
type Observed struct {
	Pid        int               `json:"pid"`
	Namespaces map[string]string `json:"namespaces"` // by kind, as in /proc/self/ns
	Threads    int               `json:"threads"`    // the supervisor's own
	// ReadOnly tells that the system's files cannot be written; DiskBytes is
	// the size of the file system of Workdir.
	ReadOnly  bool  `json:"read_only"`
	DiskBytes int64 `json:"disk_bytes"`
	// CanNest tells that a command could make a user namespace.
	CanNest bool `json:"can_nest"`
	// MaxPids and MaxMemory are the limits of processes as they stand, -1 if
	// there is none.
	MaxPids   int64 `json:"max_pids"`
	MaxMemory int64 `json:"max_memory"`
}
