package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/env/sandbox"
	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

// The state directory:
//
//	lock                 held while an owner comes or goes
//	users                locks on user ids, see users
//	owner-<pid>-<token>  of one harness
//	  lock               held as long as the harness lives
//	  owner.json         ownerRecord
//	  etc                the sandboxes' /etc
//	  <id>.json          one per sandbox: record
//	  <id>               the files of an unconfined sandbox
//
// A harness that is killed leaves its directory, and perhaps cgroups; its lock
// tells that it is dead, whatever process has its number now.
const (
	lockFile    = "lock"
	usersFile   = "users"
	ownerFile   = "owner.json"
	ownerPrefix = "owner-"
)

// marker is the environment variable by which the processes of a sandbox are
// known.
const marker = "TALARIA_SANDBOX"

type ownerRecord struct {
	Pid     int      `json:"pid"`
	Cgroups []string `json:"cgroups"`
}

type record struct {
	ID       string         `json:"id"`
	Labels   sandbox.Labels `json:"labels"`
	Started  time.Time      `json:"started"`
	Confined bool           `json:"confined"`
}

// newToken is a name that nobody else has.
func newToken() string { return strings.ToLower(rand.Text()[:12]) }

// stateDir makes the state directory if need be. In a folder that others can
// write to it has to be ours alone.
func stateDir(opts Options) (string, error) {
	dir := cmp.Or(opts.StateDir, filepath.Join(os.TempDir(), "talaria-"+strconv.Itoa(os.Geteuid())))
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := makeDir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s must be a directory that only user %d can write to", dir, os.Geteuid())
	}
	return dir, nil
}

// makeDir makes a directory that the users of sandboxes can search, whatever the
// umask.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o711); err != nil { //nolint:gosec // see above
		return err
	}
	return os.Chmod(dir, 0o711) //nolint:gosec // see above
}

// lock waits for an exclusive lock on a file, which ends with its closing.
func lock(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", file, err), f.Close())
	}
	return f, nil
}

// locked tells whether somebody holds the lock on a file.
func locked(file string) bool {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // which unlocks
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// owner is this harness in the state directory.
type owner struct {
	dir  string
	held *os.File
}

func newOwner(state, token string, cgroups []string) (*owner, error) {
	gate, err := lock(filepath.Join(state, lockFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = gate.Close() }() // which unlocks
	o := &owner{dir: filepath.Join(state, ownerPrefix+strconv.Itoa(os.Getpid())+"-"+token)}
	if err := makeDir(o.dir); err != nil {
		return nil, err
	}
	if o.held, err = lock(filepath.Join(o.dir, lockFile)); err != nil {
		return nil, err
	}
	return o, writeJSON(filepath.Join(o.dir, ownerFile), ownerRecord{Pid: os.Getpid(), Cgroups: cgroups})
}

func (o *owner) close() error {
	return errors.Join(supervisor.RemoveTree(o.dir), o.held.Close())
}

// enter records a sandbox before anything of it exists.
func (o *owner) enter(r record) (leave func() error, err error) {
	file := filepath.Join(o.dir, r.ID+".json")
	return func() error { return os.Remove(file) }, writeJSON(file, r)
}

func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// List tells which sandboxes the harnesses of this user have or have left,
// oldest first.
func List(opts Options) ([]Entry, error) {
	state, err := stateDir(opts)
	if err != nil {
		return nil, err
	}
	gate, err := lock(filepath.Join(state, lockFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = gate.Close() }() // which unlocks
	owners, err := filepath.Glob(filepath.Join(state, ownerPrefix+"*"))
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, dir := range owners {
		entries = append(entries, entriesOf(dir)...)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Started.Compare(b.Started) })
	return entries, nil
}

// entriesOf reads the records of one owner. One that cannot be read is being
// written or was cut off; either way nothing of its sandbox exists.
func entriesOf(dir string) []Entry {
	var o ownerRecord
	_ = readJSON(filepath.Join(dir, ownerFile), &o)
	alive := locked(filepath.Join(dir, lockFile))
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var entries []Entry
	for _, file := range files {
		var r record
		if readJSON(file, &r) != nil || r.ID == "" {
			continue
		}
		entries = append(entries, Entry{
			ID: r.ID, Labels: r.Labels, Started: r.Started, Confined: r.Confined, Owner: o.Pid, Alive: alive,
		})
	}
	return entries
}

// Reap removes whatever harnesses have left that are no longer alive:
// processes, cgroups, files. It returns the sandboxes that these were. Harnesses
// that live are not touched, so that it can be called at any time.
func Reap(ctx context.Context, opts Options) ([]Entry, error) {
	state, err := stateDir(opts)
	if err != nil {
		return nil, err
	}
	gate, err := lock(filepath.Join(state, lockFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = gate.Close() }() // which unlocks
	owners, err := filepath.Glob(filepath.Join(state, ownerPrefix+"*"))
	if err != nil {
		return nil, err
	}
	var reaped []Entry
	var errs []error
	for _, dir := range owners {
		if locked(filepath.Join(dir, lockFile)) {
			continue
		}
		entries := entriesOf(dir)
		if err := reapOwner(ctx, dir, entries); err != nil {
			errs = append(errs, fmt.Errorf("reaping %s: %w", filepath.Base(dir), err))
			continue
		}
		reaped = append(reaped, entries...)
	}
	return reaped, errors.Join(errs...)
}

// reapOwner ends the processes before it removes what they use.
func reapOwner(ctx context.Context, dir string, entries []Entry) error {
	var o ownerRecord
	if err := readJSON(filepath.Join(dir, ownerFile), &o); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		ids := map[string]bool{}
		for _, e := range entries {
			ids[e.ID] = true
		}
		if err := endMarked(ctx, ids); err != nil {
			return err
		}
	}
	for _, parent := range o.Cgroups {
		if err := reapCgroups(ctx, parent); err != nil {
			return err
		}
	}
	return supervisor.RemoveTree(dir)
}

// reapCgroups removes a directory of cgroups, one per sandbox, with whatever
// still runs in them.
func reapCgroups(ctx context.Context, parent string) error {
	groups, err := os.ReadDir(parent)
	if err != nil {
		return nil //nolint:nilerr // it is not there
	}
	for _, group := range groups {
		if !group.IsDir() {
			continue
		}
		dir := filepath.Join(parent, group.Name())
		err := eventually(ctx, func() (bool, error) {
			for _, pid := range cgroupMembers(dir) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			err := os.Remove(dir)
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return removeCgroup(ctx, parent)
}

// endMarked kills the processes that carry the mark of one of the sandboxes and
// waits until they have ended. While they end they carry nothing any more, nor
// does one that is just becoming another program: it looks twice.
func endMarked(ctx context.Context, ids map[string]bool) error {
	killed := map[int]bool{}
	clean := 0
	return eventually(ctx, func() (bool, error) {
		maps.DeleteFunc(killed, func(pid int, _ bool) bool { return ended(pid) })
		for _, pid := range marked(ids) {
			killed[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if clean++; len(killed) > 0 {
			clean = 0
		}
		return clean == 2, fmt.Errorf("processes %v do not end", slices.Sorted(maps.Keys(killed)))
	})
}

// ended tells whether a process is no more, but for its parent to notice.
func ended(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // gone is ended
	// pid (name) state ...; the name may hold anything.
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(state) == 0 || state[0] == 'Z' || state[0] == 'X'
}

// marked finds the processes of sandboxes by their environment.
func marked(ids map[string]bool) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, or it is not ours
		}
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			id, ok := bytes.CutPrefix(entry, []byte(marker+"="))
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); ok && ids[string(id)] && err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
