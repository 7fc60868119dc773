// Package envtest is the conformance suite of the contract of package env.
// Every env runs it in one test:
//
//	envtest.Run(t, envtest.Case{
//		New:      func() (env.Factory, error) { return answer.New(setup) },
//		Episodes: episodes,
//	})
package envtest

import (
	"context"
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// Case is an env under test.
type Case struct {
	// New makes a fresh factory; the suite closes it.
	New func() (env.Factory, error)
	// Episodes are played by the suite: at least one, and Reset succeeds with
	// each. Two of different tasks show what is shared by mistake.
	Episodes []dataset.Episode
	// Broken are episodes of tasks that are at fault themselves: Reset fails
	// with an error that wraps [dataset.ErrTask].
	Broken []dataset.Episode
	// Reply is what the suite says after having heard the messages; default is
	// the text "42".
	Reply func(ep dataset.Episode, heard []dataset.Message) string
	// Steps bounds the number of replies; an env that is not done by then is
	// closed as a limit would. Default 8.
	Steps int
}

func (c *Case) applyDefaults() {
	if c.Reply == nil {
		c.Reply = func(dataset.Episode, []dataset.Message) string { return "42" }
	}
	if c.Steps == 0 {
		c.Steps = 8 // enough for a short dialogue, and cheap in a sandbox
	}
}

// check is one rule of the contract; the error says how it is broken.
type check struct {
	name string
	run  func(context.Context, Case) error
}

func checks() []check {
	return []check{
		{"plays each episode well formed", wellFormed},
		{"equal seeds give equal episodes", deterministic},
		{"episodes at the same time do not disturb each other", concurrent},
		{"closes without a reset", closesUnused},
		{"closes in the middle, after its context was cancelled", closesCancelled},
		{"a cancelled reset is nobody's fault", cancelledReset},
		{"a broken task is at fault itself", brokenTask},
	}
}

// Run checks that the env keeps the contract: each rule in a subtest. Run it
// with the race detector, too.
func Run(t *testing.T, c Case) {
	t.Helper()
	c.applyDefaults()
	if len(c.Episodes) == 0 {
		t.Fatal("envtest: a case needs at least one episode")
	}
	for _, ch := range checks() {
		t.Run(ch.name, func(t *testing.T) {
			if err := ch.run(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
}
