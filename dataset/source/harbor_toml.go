package source

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/talaria-run/talaria/dataset"
)

// harborTask is a task.toml of schema 1.4. Where only the presence of a key
// matters, its value is not looked into.
type harborTask struct {
	SchemaVersion string            `toml:"schema_version"`
	Version       string            `toml:"version"` // the old name of SchemaVersion
	Origin        any               `toml:"source"`
	StepReward    string            `toml:"multi_step_reward_strategy"`
	Artifacts     any               `toml:"artifacts"`
	Task          harborAbout       `toml:"task"`
	Metadata      map[string]any    `toml:"metadata"`
	Agent         harborAgent       `toml:"agent"`
	Verifier      harborVerifier    `toml:"verifier"`
	Environment   harborEnvironment `toml:"environment"`
	Solution      harborSolution    `toml:"solution"`
	Steps         []map[string]any  `toml:"steps"`
	places        map[string]int    // lines of keys
	requires      []string          // of Metadata; nil where it says nothing
}

type harborAbout struct {
	Name        string         `toml:"name"`
	Version     any            `toml:"version"`
	Description string         `toml:"description"`
	Authors     []harborAuthor `toml:"authors"`
	Keywords    []string       `toml:"keywords"`
}

type harborAuthor struct {
	Name  string `toml:"name"`
	Email string `toml:"email"`
}

type harborNetwork struct {
	NetworkMode  string   `toml:"network_mode"`
	AllowedHosts []string `toml:"allowed_hosts"`
}

type harborAgent struct {
	TimeoutSec *float64 `toml:"timeout_sec"`
	User       any      `toml:"user"`
	harborNetwork
}

type harborVerifier struct {
	TimeoutSec      *float64          `toml:"timeout_sec"`
	Env             map[string]string `toml:"env"`
	User            any               `toml:"user"`
	EnvironmentMode string            `toml:"environment_mode"`
	Environment     map[string]any    `toml:"environment"`
	Collect         []harborHook      `toml:"collect"`
	harborNetwork
}

type harborHook struct {
	Command    string   `toml:"command"`
	Service    string   `toml:"service"`
	TimeoutSec *float64 `toml:"timeout_sec"`
	User       any      `toml:"user"`
}

type harborEnvironment struct {
	BuildTimeoutSec *float64          `toml:"build_timeout_sec"`
	DockerImage     string            `toml:"docker_image"`
	OS              string            `toml:"os"`
	CPUs            *float64          `toml:"cpus"`
	MemoryMB        *float64          `toml:"memory_mb"`
	StorageMB       *float64          `toml:"storage_mb"`
	GPUs            *float64          `toml:"gpus"`
	GPUTypes        []string          `toml:"gpu_types"`
	TPU             map[string]any    `toml:"tpu"`
	MCPServers      []map[string]any  `toml:"mcp_servers"`
	Env             map[string]string `toml:"env"`
	SkillsDir       string            `toml:"skills_dir"`
	Workdir         string            `toml:"workdir"`
	Healthcheck     map[string]any    `toml:"healthcheck"`
	Memory          string            `toml:"memory"`         // the old form of MemoryMB
	Storage         string            `toml:"storage"`        // the old form of StorageMB
	AllowInternet   *bool             `toml:"allow_internet"` // the old form of NetworkMode
	harborNetwork
}

type harborSolution struct {
	Env map[string]string `toml:"env"`
}

// parseHarbor decodes a task.toml and checks it. Its error is a [RowError]
// without a file.
func parseHarbor(text []byte) (*harborTask, error) {
	doc := &harborTask{}
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(doc); err != nil {
		return nil, tomlError(err)
	}
	doc.places = places(text)
	doc.modernise()
	return doc, doc.validate()
}

// tomlError is an error of the TOML library as the error of a row.
func tomlError(err error) error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return RowError{Line: line, Reason: fmt.Sprintf(
			"unknown key %s; it is not in schema 1.4 of task.toml, and notes of your own belong under [metadata]",
			strings.Join(first.Key(), "."))}
	}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := at.Position()
		reason := strings.TrimPrefix(at.Error(), "toml: ")
		if key := strings.Join(at.Key(), "."); key != "" {
			reason = key + ": " + reason
		}
		return RowError{Line: line, Reason: reason}
	}
	return RowError{Reason: err.Error()}
}

// places are the lines of all keys of a document that is known to be valid. A
// key within a list of tables has no index; the first one counts.
func places(text []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(text)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.Comment {
			continue
		}
		key, line := "", 0
		for it := e.Key(); it.Next(); {
			n := it.Node()
			key = dotted(key, string(n.Data))
			line = p.Shape(n.Raw).Start.Line
		}
		if e.Kind == unstable.KeyValue {
			key = dotted(table, key)
		} else {
			table = key
		}
		if _, ok := lines[key]; !ok {
			lines[key] = line
		}
	}
	return lines
}

func dotted(parent, key string) string {
	if parent == "" {
		return key
	}
	return parent + "." + key
}

// params is what the task's env needs to know.
func (d *harborTask) params() dataset.TerminalParams {
	e := d.Environment
	params := dataset.TerminalParams{
		Workdir: e.Workdir, Env: e.Env,
		Memory: megabytes(e.MemoryMB), Storage: megabytes(e.StorageMB), CPUs: value(e.CPUs),
		AgentTimeoutSec:    value(d.Agent.TimeoutSec),
		VerifierTimeoutSec: value(d.Verifier.TimeoutSec), VerifierEnv: d.Verifier.Env,
		SolutionEnv: d.Solution.Env,
	}
	for _, mode := range []string{e.NetworkMode, d.Agent.NetworkMode} {
		if mode == networkNone {
			params.Network = networkNone
		}
	}
	for _, hook := range d.Verifier.Collect {
		params.Collect = append(params.Collect, dataset.TerminalHook{Command: hook.Command, TimeoutSec: value(hook.TimeoutSec)})
	}
	return params
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

func megabytes(p *float64) int64 { return int64(value(p) * (1 << 20)) }
