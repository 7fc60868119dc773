package source

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Network modes of a task.
const (
	networkPublic    = "public"
	networkNone      = "no-network"
	networkAllowlist = "allowlist"
)

// modernise puts what is said by old names under the new ones.
func (d *harborTask) modernise() {
	if d.SchemaVersion == "" {
		d.SchemaVersion = d.Version
	}
	e := &d.Environment
	if e.MemoryMB == nil {
		e.MemoryMB = oldSize(e.Memory)
	}
	if e.StorageMB == nil {
		e.StorageMB = oldSize(e.Storage)
	}
	if e.NetworkMode == "" && e.AllowInternet != nil && !*e.AllowInternet {
		e.NetworkMode = networkNone
	}
}

// oldSize is a size such as 2G in megabytes; NaN where it is none.
func oldSize(s string) *float64 {
	if s == "" {
		return nil
	}
	units := map[string]float64{"": 1, "k": 1.0 / 1024, "m": 1, "g": 1 << 10, "t": 1 << 20}
	mb := math.NaN()
	if m := regexp.MustCompile(`^(?i)\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*$`).FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err == nil {
			mb = n * units[strings.ToLower(m[2])]
		}
	}
	return &mb
}

// validate tells the first thing that is wrong with the task's settings.
func (d *harborTask) validate() error {
	if d.SchemaVersion != "" && !regexp.MustCompile(`^1\.\d+$`).MatchString(d.SchemaVersion) {
		return d.bad("schema_version", "%q is not a schema known here: 1.0 to 1.4", d.SchemaVersion)
	}
	if err := d.validateNumbers(); err != nil {
		return err
	}
	if err := d.validateWords(); err != nil {
		return err
	}
	for _, hook := range d.Verifier.Collect {
		if strings.TrimSpace(hook.Command) == "" {
			return d.bad("verifier.collect", "a hook without a command")
		}
	}
	return d.readRequires()
}

// bad is an error about a key.
func (d *harborTask) bad(key, format string, args ...any) error {
	line := d.places[key]
	if line == 0 {
		line = d.places[oldName(key)]
	}
	return RowError{Line: line, Reason: key + ": " + fmt.Sprintf(format, args...)}
}

func oldName(key string) string {
	return map[string]string{
		"schema_version":           "version",
		"environment.memory_mb":    "environment.memory",
		"environment.storage_mb":   "environment.storage",
		"environment.network_mode": "environment.allow_internet",
	}[key]
}

// maxNumber bounds seconds and megabytes: what is beyond is a slip of the pen.
const maxNumber = 1e9

// number is a setting that may be missing, and its key.
type number struct {
	key   string
	value *float64
}

func (d *harborTask) validateNumbers() error {
	e := d.Environment
	positive := make([]number, 0, 6+len(d.Verifier.Collect))
	positive = append(positive,
		number{"agent.timeout_sec", d.Agent.TimeoutSec},
		number{"verifier.timeout_sec", d.Verifier.TimeoutSec},
		number{"environment.build_timeout_sec", e.BuildTimeoutSec},
		number{"environment.cpus", e.CPUs},
		number{"environment.memory_mb", e.MemoryMB},
		number{"environment.storage_mb", e.StorageMB},
	)
	for _, hook := range d.Verifier.Collect {
		positive = append(positive, number{"verifier.collect.timeout_sec", hook.TimeoutSec})
	}
	for _, n := range positive {
		if n.value != nil && !(*n.value > 0 && *n.value <= maxNumber) {
			return d.bad(n.key, "it must be a number above 0 and at most 1e9")
		}
	}
	return nil
}

func (d *harborTask) validateWords() error {
	modes := []string{"", networkPublic, networkNone, networkAllowlist}
	for _, w := range []struct {
		key, value string
		allowed    []string
	}{
		{"multi_step_reward_strategy", d.StepReward, []string{"", "mean", "final"}},
		{"environment.os", d.Environment.OS, []string{"", "linux", "windows"}},
		{"environment.network_mode", d.Environment.NetworkMode, modes},
		{"agent.network_mode", d.Agent.NetworkMode, modes},
		{"verifier.network_mode", d.Verifier.NetworkMode, modes},
		{"verifier.environment_mode", d.Verifier.EnvironmentMode, []string{"", "shared", "separate"}},
	} {
		if !slices.Contains(w.allowed, w.value) {
			return d.bad(w.key, "%q is none of %s", w.value, strings.Join(w.allowed[1:], ", "))
		}
	}
	if dir := d.Environment.Workdir; dir != "" && !path.IsAbs(dir) {
		return d.bad("environment.workdir", "%q must be absolute", dir)
	}
	return nil
}

// readRequires reads which programs the task needs, a key of our own: with it a
// task tells that they will do in place of its image.
func (d *harborTask) readRequires() error {
	value, ok := d.Metadata["requires"]
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	d.requires = []string{}
	for _, e := range list {
		name, isText := e.(string)
		ok = ok && isText && name != "" && !strings.ContainsAny(name, "/\\")
		d.requires = append(d.requires, name)
	}
	if !ok {
		return d.bad("metadata.requires", `it must list names of programs, such as ["git"]`)
	}
	return nil
}

// unable tells what keeps this machine from running the task without an image;
// "" if nothing does.
func (f taskFolder) unable(d *harborTask) string {
	e := d.Environment
	for _, c := range []struct {
		holds  bool
		reason string
	}{
		{len(d.Steps) > 0, "it has several steps"},
		{e.OS == "windows", "it needs Windows"},
		{e.DockerImage != "", "it needs the image " + e.DockerImage},
		{f.composes(), "it needs the services of its docker-compose file"},
		{
			f.exists("environment/Dockerfile") && d.requires == nil,
			`it needs the image of its Dockerfile; if programs of this machine do instead, say so in [metadata], such as requires = ["python3"]`,
		},
		{value(e.GPUs) > 0 || len(e.GPUTypes) > 0, "it needs a GPU"},
		{len(e.TPU) > 0, "it needs a TPU"},
		{
			slices.Contains([]string{e.NetworkMode, d.Agent.NetworkMode, d.Verifier.NetworkMode}, networkAllowlist),
			"it needs a network with a list of allowed hosts",
		},
		{len(e.MCPServers) > 0, "it needs MCP servers"},
		{e.SkillsDir != "", "it brings skills for its agent"},
		{len(e.Healthcheck) > 0, "it waits for a service of its image"},
		{d.Agent.User != nil || d.Verifier.User != nil || d.hooksElsewhere(), "it needs certain users or services"},
		{
			d.Verifier.EnvironmentMode == "separate" || len(d.Verifier.Environment) > 0 && d.Verifier.EnvironmentMode == "",
			"it is verified in an environment of its own",
		},
	} {
		if c.holds {
			return c.reason
		}
	}
	return missingProgram(d.requires)
}

func (d *harborTask) hooksElsewhere() bool {
	return slices.ContainsFunc(d.Verifier.Collect, func(h harborHook) bool {
		return h.User != nil || h.Service != "" && h.Service != "main"
	})
}

func (f taskFolder) exists(name string) bool {
	_, err := fs.Stat(f.fsys, name)
	return err == nil
}

func (f taskFolder) composes() bool {
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"} {
		if f.exists("environment/" + name) {
			return true
		}
	}
	return false
}
