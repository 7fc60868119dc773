package sandbox

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// What a sandbox may see of the network.
const (
	NetworkNone = "none"
	NetworkHost = "host"
)

// DefaultWorkdir is where commands begin when the Spec does not say.
const DefaultWorkdir = "/workspace"

// Spec says what sandbox to make. The zero value is an offline sandbox without
// limits.
type Spec struct {
	Network string // NetworkNone, also if empty, or NetworkHost
	Memory  int64  // bytes that processes may hold; 0 sets no limit
	// Disk is how many bytes files may take, which also limits their number; 0
	// sets no limit. Where files lie in memory, a limit on Memory without one on
	// Disk limits both alike.
	Disk    int64
	Pids    int               // processes and threads of commands; 0 sets no limit
	Timeout time.Duration     // default of a command; 0 sets no limit
	Env     map[string]string // added to what commands begin with
	Workdir string            // absolute; DefaultWorkdir if empty
	Shell   string            // the program for scripts; bash where it is, else sh, if empty
	Image   string            // for backends that run images
	Labels  Labels
}

// Labels tell what a sandbox is for, to whoever finds it.
type Labels struct {
	Run     string `json:"run,omitempty"`
	Episode string `json:"episode,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
}

// Validate tells what in the spec no backend could make.
func (s Spec) Validate() error {
	var errs []error
	if !slices.Contains([]string{"", NetworkNone, NetworkHost}, s.Network) {
		errs = append(errs, fmt.Errorf("network %q: must be %s or %s", s.Network, NetworkNone, NetworkHost))
	}
	if s.Memory < 0 || s.Disk < 0 || s.Pids < 0 || s.Timeout < 0 {
		errs = append(errs, errors.New("memory, disk, pids and timeout must not be negative"))
	}
	if s.Workdir != "" && !path.IsAbs(s.Workdir) {
		errs = append(errs, fmt.Errorf("workdir %q: must be absolute", s.Workdir))
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			errs = append(errs, fmt.Errorf("environment variable %q: not a name", name))
		}
	}
	return errors.Join(errs...)
}

// Info describes a sandbox.
type Info struct {
	ID      string
	Backend string
	Image   string
	// Root is what stands before the absolute names of the sandbox's own world:
	// empty where the sandbox has a file system of its own, else a directory of
	// the host. Workdir begins with it.
	Root    string
	Workdir string
	// Enforced lists what really holds, each as "name:mechanism", sorted: see
	// the Hold constants for the names.
	Enforced []string
}

// What a sandbox may enforce: the names in Info.Enforced.
const (
	HoldDisk      = "disk"      // files take no more than Spec.Disk
	HoldFiles     = "files"     // there are only so many of them, however small
	HoldMemory    = "memory"    // processes hold no more than Spec.Memory
	HoldNesting   = "nesting"   // commands cannot make namespaces of their own
	HoldNetwork   = "network"   // nothing outside can be reached
	HoldPids      = "pids"      // no more than Spec.Pids processes
	HoldProcesses = "processes" // others cannot be seen, and none outlives the sandbox
	HoldSystem    = "system"    // the system's files are read-only, the host's are hidden
	HoldTime      = "time"      // commands end with their timeout
	HoldUser      = "user"      // commands run as a user of their own
)

// Mechanism tells by what means name is enforced; "" if it is not.
func (i Info) Mechanism(name string) string {
	for _, held := range i.Enforced {
		if mechanism, ok := strings.CutPrefix(held, name+":"); ok {
			return mechanism
		}
	}
	return ""
}

// Path is where an absolute name of the sandbox's own world lies: name itself
// where Root is empty.
func (i Info) Path(name string) string {
	if i.Root == "" {
		return name
	}
	return path.Join(i.Root, name)
}

// UnavailableError tells that a backend cannot work on this machine, and what
// to do about it.
type UnavailableError struct {
	Backend string
	Reason  string
	Fix     string
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("sandbox backend %s: %s; %s", e.Backend, e.Reason, e.Fix)
}

// Quote renders words for a shell so that it takes each as it stands.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
