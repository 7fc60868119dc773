package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// SchemaVersion is the version of the recorded tables. It rises when a column
// is added; rows of every older version stay readable.
const SchemaVersion = 1

// States of a run ([Run.State]).
const (
	StateRunning     = "running"
	StateComplete    = "complete"
	StateInterrupted = "interrupted"
	StateFailed      = "failed"
	StateStopped     = "stopped" // a run budget was used up
)

// Names within a run directory.
const (
	runFile      = "run.json"
	manifestFile = "manifest.jsonl"
	lockFile     = "lock"
	journalDir   = "journal"
	blobDir      = "blobs"
	tmpSuffix    = ".tmp"
)

// ErrNotRun is returned for a directory that holds no run.
var ErrNotRun = errors.New("not a run directory")

// ErrLocked is returned when another Store has the run open. The text that
// wraps it names the owner's process and host.
var ErrLocked = errors.New("another process writes this run")

// Run is run.json: what is known of a run besides its rows.
type Run struct {
	SchemaVersion int             `json:"schema_version"`
	RunID         string          `json:"run_id"`
	Name          string          `json:"name"`
	Tags          []string        `json:"tags,omitempty"`
	Note          string          `json:"note,omitempty"`
	State         string          `json:"state"`
	CreatedAt     time.Time       `json:"created_at"`
	EndedAt       *time.Time      `json:"ended_at"`
	Config        json.RawMessage `json:"config"` // as resolved
	ConfigPath    string          `json:"config_path,omitempty"`
	IdentityHash  string          `json:"identity_hash"`
	ConfigHash    string          `json:"config_hash"`
	Seed          int64           `json:"seed"`
	Samples       int             `json:"samples"`
	Total         int             `json:"total"` // episodes planned, 0 if not known beforehand
	Shard         string          `json:"shard,omitempty"`

	Datasets []Fingerprint `json:"datasets"` // what the latest invocation read
	// EarlierDatasets are what invocations before it read, where that differs.
	EarlierDatasets []DatasetChange   `json:"earlier_datasets,omitempty"`
	Variants        []dataset.Variant `json:"variants"`
	Version         string            `json:"version"`
	Commit          string            `json:"commit"`
	Go              string            `json:"go"`
	Host            string            `json:"host"`
	Invocations     []Invocation      `json:"invocations"`
	Merged          []MergedRun       `json:"merged,omitempty"` // the runs that this one was merged from
}

// MergedRun is a run as it was when it was merged into another.
type MergedRun struct {
	RunID     string     `json:"run_id"`
	Name      string     `json:"name"`
	Dir       string     `json:"dir"` // as it was named
	Shard     string     `json:"shard,omitempty"`
	State     string     `json:"state"`
	Total     int        `json:"total"`
	CreatedAt time.Time  `json:"created_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Host      string     `json:"host"`
}

// Fingerprint is what a source's file was when the run was made.
type Fingerprint struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Revision string `json:"revision,omitempty"` // the commit of a dataset on a hub
	Source   string `json:"source,omitempty"`   // the path in the config, where it is another one
}

// DatasetChange is a dataset as it was until an invocation found another one.
type DatasetChange struct {
	Until        time.Time     `json:"until"` // when that invocation began
	Datasets     []Fingerprint `json:"datasets"`
	ChangedTasks int           `json:"changed_tasks"` // recorded ones whose content is another one now
	MissingTasks int           `json:"missing_tasks"` // recorded ones that are not there any more, or are not chosen
}

// Invocation is one process that worked on the run.
type Invocation struct {
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"` // nil while it runs, and if it was killed
	Host      string     `json:"host"`
	PID       int        `json:"pid"`
	Version   string     `json:"version"`
	ExitCode  *int       `json:"exit_code"`
}

// ReadRun reads run.json of the run in dir. A directory without one gives
// [ErrNotRun].
func ReadRun(dir string) (Run, error) { return readRun(osFS{}, dir) }

func readRun(fsys FS, dir string) (Run, error) {
	var run Run
	path := filepath.Join(dir, runFile)
	b, err := readFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return run, fmt.Errorf("%s: %w: it has no %s", dir, ErrNotRun, runFile)
	}
	if err != nil {
		return run, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(b, &run); err != nil {
		return run, &DamageError{Path: path, Err: err, Advice: "restore it from a copy"}
	}
	if run.SchemaVersion > SchemaVersion {
		return run, fmt.Errorf("%s: its schema version is %d and this release reads up to %d: use a newer release",
			path, run.SchemaVersion, SchemaVersion)
	}
	return run, nil
}

// Writer tells whether a process has the run in dir open to write it, and which.
// The error is about file systems that cannot tell.
func Writer(dir string) (owner string, writing bool, err error) {
	return osFS{}.Locked(filepath.Join(dir, lockFile))
}

func writeRun(fsys FS, dir string, run Run) error {
	path := filepath.Join(dir, runFile)
	b, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := replaceFile(fsys, path, append(b, '\n')); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
