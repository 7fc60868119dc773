// Package terminal is the env of tasks that are solved by commands: each
// attempt gets a fresh sandbox with the task's files in its working directory,
// and a script of the task judges the state that the agent leaves there. The
// tasks come with a folder in Harbor layout: environment/ for the agent, tests/
// for the verifier, solution/ and wrong/ for audits. [New] is its
// [env.Constructor]; [Scripted] plays a script of the task instead of an agent.
//
// # The verifier
//
// When the agent is done, all its processes are killed, whatever it put where
// the verifier's files belong is removed, tests/ is uploaded, and
// tests/test.sh is run by bash (by sh where there is no bash) in the working
// directory: with the environment that the sandbox began with, a home and a
// temporary directory of its own, and these variables:
//
//	TESTS   where tests/ lies: /tests, where the sandbox has its own file system
//	LOGS    where $LOGS/verifier/reward.json or reward.txt is expected: /logs
//
// A sandbox that has no file system of its own keeps both in a directory of the
// host, so a script should use the variables. The exit code decides nothing.
// reward.json holds a number, or an object of numbers of which "reward" is the
// score; if there is none, reward.txt holds a number. What a verifier runs of
// the agent's programs runs with the verifier's rights: a careful one writes
// the reward last.
package terminal

import (
	"context"
	"errors"
	"fmt"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

var _ env.Constructor = New

// params are the env's keys in the config.
type params struct {
	// HostEnv names the variables of the host that tasks may have by templates
	// such as ${NAME}.
	HostEnv []string `yaml:"host_env" json:"host_env"`
}

// New makes the factory. It needs Setup.Prompt and Setup.Backend.
//
// A task's own limits go before those of Setup.Spec, except that the shorter
// time limit of a command holds, and that a task may ask to be offline but not
// for a network.
func New(setup env.Setup) (env.Factory, error) {
	if setup.Prompt == nil {
		return nil, errors.New("env terminal: no prompt")
	}
	if setup.Backend == nil {
		return nil, errors.New("env terminal: no sandbox backend")
	}
	f := factory{setup: setup}
	if setup.Decode != nil {
		if err := setup.Decode(&f.params); err != nil {
			return nil, fmt.Errorf("env terminal: %w", err)
		}
	}
	return f, nil
}

type factory struct {
	setup  env.Setup
	params params
	choose func(dataset.Task) string // see Scripted; nil: none
}

func (f factory) New() (env.Env, error)     { return &world{factory: f}, nil }
func (factory) Close(context.Context) error { return nil }

// taskError blames the task.
func taskError(ep dataset.Episode, format string, args ...any) error {
	return fmt.Errorf("%w: task %q: %w", dataset.ErrTask, ep.Task.ID, fmt.Errorf(format, args...))
}
