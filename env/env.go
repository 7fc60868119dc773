// Package env is the contract between the harness and a world that an agent
// acts in: it gives the first messages and the tools, reacts to replies, and
// may score what was done.
//
// An implementation provides a [Constructor]; its [Factory] makes one [Env]
// per attempt. The conformance suite is env/envtest. Errors of an Env are
// infrastructure failures unless they wrap [dataset.ErrTask]; a failing tool is
// no error but text for the model.
package env

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env/sandbox"
)

// Env is one world for one attempt. The harness calls Reset once, then Step
// for each reply without tool calls until a Result is Done, then Close, which
// is called always, even after a panic, and with a context that outlives the
// episode's deadline. One goroutine uses an Env value at a time.
type Env interface {
	// Reset makes the world for ep and returns the first messages.
	Reset(ctx context.Context, ep dataset.Episode) ([]dataset.Message, error)
	// Step reacts to a reply without tool calls.
	Step(ctx context.Context, reply dataset.Message) (Result, error)
	// Close releases the world. It is called exactly once.
	Close(ctx context.Context) error
}

// Result is how a world reacts to a reply: messages for the model, or the end.
// A Result that is not Done carries at least one message.
type Result struct {
	Messages []dataset.Message
	Done     bool
	Rewards  []dataset.Reward
}

// Factory makes Envs and owns what they share. One factory serves one env of
// one variant; New may be called from several goroutines at once. Close is
// called once, after every Env is closed.
type Factory interface {
	New() (Env, error)
	Close(ctx context.Context) error
}

// Tooled is an Env with tools of its own, asked for after Reset. A name that
// clashes with a tool of the config is a config error.
type Tooled interface{ Tools() []Tool }

// Sandboxed is an Env in which commands run. It is asked for after Reset; the
// sandbox is the env's to close, and lives until then. Nil: there is none.
type Sandboxed interface{ Sandbox() sandbox.Sandbox }

// Scored is an Env whose score needs the live world: Score runs before Close.
// An error that wraps [dataset.ErrTask] ends the attempt as the task's fault.
type Scored interface {
	Score(ctx context.Context, tr *dataset.Trajectory) ([]dataset.Reward, error)
}

// Tool is something that a model may call. Parameters is a JSON schema of an
// object. Call may run in several goroutines at once, for several episodes;
// what fails within the tool is a ToolResult with IsError, an error of Call is
// a failure of the harness and ends the attempt.
//
// A tool that acts in the env's sandbox has Bind in place of Call: bound to a
// sandbox, it is a Call that serves one attempt and may keep its state.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
	Call        ToolCall
	Bind        func(sandbox.Sandbox) ToolCall
}

// ToolCall runs a tool with arguments that are a JSON object.
type ToolCall func(ctx context.Context, args json.RawMessage) (ToolResult, error)

// ToolResult is what the model reads of a call. Done ends the episode, with
// Answer as its final answer if that is set.
type ToolResult struct {
	Content   string
	Omitted   int64  // bytes of what there was to read that Content leaves out
	IsError   bool   // what was asked for was not done
	BlockedBy string // who refused to do it, where it was refused
	ExitCode  *int
	Done      bool
	Answer    *string
}

// Setup is what a Constructor gets.
type Setup struct {
	// Prompt renders the first messages of a task from the config's template
	// and few-shot examples.
	Prompt func(dataset.Task) ([]dataset.Message, error)
	// Decode decodes the env's parameters from the config strictly: an unknown
	// key is an error with file, line and suggestion.
	Decode func(into any) error
	// Backend starts sandboxes with Spec, to which the env adds what its tasks
	// ask for; nil where the config's env needs none. The factory does not
	// close it.
	Backend sandbox.Backend
	Spec    sandbox.Spec
	// LookupEnv gives an env the variables of the host that the config allows
	// its tasks to have; nil: there are none.
	LookupEnv func(name string) (value string, ok bool)
}

// Constructor makes the Factory of one variant.
type Constructor func(Setup) (Factory, error)

// Registry maps an env's name in the config to its constructor.
type Registry map[string]Constructor

// Names of the registered envs, sorted.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r)) }
