// Package sandbox is the contract for an isolated place where an agent's
// commands run. A [Backend] starts one [Sandbox] per attempt; it is destroyed
// with the attempt, and nothing of it is left.
//
// Two kinds of failure are kept apart. What a command did, even if it was
// killed or ran out of time, is a [Result]; what a file operation found (no
// such file, no permission, no space) is an [*fs.PathError]. Every other error
// means that the sandbox itself failed, which is never the agent's doing.
//
// A backend passes the suite of env/sandbox/sandboxtest. It need not be able to
// enforce every limit, but [Info].Enforced has to tell the truth about it.
package sandbox

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// Backend starts sandboxes. It is safe for concurrent use. Close ends every
// sandbox that is still alive and gives back what they shared.
type Backend interface {
	// Start makes a fresh sandbox. The context bounds the start alone.
	Start(ctx context.Context, spec Spec) (Sandbox, error)
	Close(ctx context.Context) error
}

// Sandbox is one isolated place. It is safe for concurrent use.
type Sandbox interface {
	Files
	// Exec runs a command in a process of its own and waits for it. Commands
	// that keep state run one after another, in the order they came; those
	// with Fresh set run beside them. When ctx ends, the command is stopped
	// and the error is the context's cause.
	Exec(ctx context.Context, cmd Command) (Result, error)
	// Kill ends every process that commands have started, whatever group or
	// session they fled to. The files stay, and the sandbox can still be used:
	// it is called before the agent's work is judged.
	Kill(ctx context.Context) error
	Info() Info
	// Close destroys the sandbox with all processes and files. It is called
	// exactly once, with a context that outlives the attempt's deadline.
	Close(ctx context.Context) error
}

// Files reads and writes the files of a sandbox with the rights of its
// commands. A relative name is taken from the directory where the last command
// that keeps state ended.
type Files interface {
	// ReadFile reads at most limit bytes of a regular file from offset on; a
	// limit of 0 stands for MaxRead.
	ReadFile(ctx context.Context, name string, offset, limit int64) (File, error)
	// WriteFile replaces the content of a file, making missing directories. A
	// mode of 0 keeps that of an existing file and is 0644 for a new one.
	WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error
	// Upload unpacks a tar stream into dir, which is made if it is missing. No
	// entry can leave dir, not even through a link in the stream.
	Upload(ctx context.Context, dir string, tree io.Reader) error
	// Download packs a file or a directory into a tar stream: regular files,
	// directories and symbolic links, sorted, without owners. What comes out
	// of a sandbox is not to be trusted: see Unpack.
	Download(ctx context.Context, name string, tree io.Writer) error
}

// MaxRead is the most that one ReadFile returns, in bytes.
const MaxRead = 16 << 20

// MaxInput is the most that Command.Stdin may hold, and also the script with
// its environment, in bytes. What is larger travels as a file.
const MaxInput = 8 << 20

// DefaultMaxOutput is how many bytes of a command's output are kept when the
// command does not say.
const DefaultMaxOutput = 64 << 10

// ExitTimeout is the exit code of a command that ran out of time,
// ExitUnstartable of one that could not be started: its directory is gone, or
// a limit of the sandbox left no room for it.
const (
	ExitTimeout     = 124
	ExitUnstartable = 126
)

// Command is what Exec runs: Script by the sandbox's shell, or Argv as it stands. Exactly one of the two is set.
type Command struct {
	Script string
	Argv   []string
	Stdin  []byte // then end of file
	Cwd    string // default: where the last command ended
	// Env is exported before the command runs; commands that keep state pass
	// it on to the next like whatever they export themselves.
	Env       map[string]string
	Timeout   time.Duration // default: Spec.Timeout
	MaxOutput int           // bytes kept: the first two fifths and the end
	// Fresh runs the command in the environment and the directory that the
	// sandbox began with, and keeps nothing of what it changes there.
	Fresh bool
}

// Result is what a command did.
type Result struct {
	// Output is stdout and stderr as they came, raw. Where it was too long, its
	// middle is missing: Omitted bytes between Output[:Gap] and Output[Gap:].
	Output   []byte
	Omitted  int64
	Gap      int
	ExitCode int // 128 + n after signal n
	TimedOut bool
	Duration time.Duration
	// StateRolledBack tells that the shell ended without leaving its state:
	// directory, variables and functions are those from before the command.
	StateRolledBack bool
}

// File is what ReadFile found: a piece of the content, and the size of all.
type File struct {
	Data    []byte
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
}
