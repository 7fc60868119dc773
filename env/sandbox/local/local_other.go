//go:build !linux

package local

import (
	"context"
	"runtime"

	"github.com/talaria-run/talaria/env/sandbox"
)

// Backend does not exist on this system: [New] returns none.
type Backend struct{ sandbox.Backend }

// New returns a [sandbox.UnavailableError].
func New(context.Context, Options) (*Backend, error) { return nil, unavailable() }

func unavailable() error {
	return &sandbox.UnavailableError{
		Backend: Name,
		Reason:  "it needs Linux and this is " + runtime.GOOS,
		Fix:     "run talaria in a Linux machine or container",
	}
}

// Probe tells that the backend needs Linux.
func Probe(context.Context, Options) []Finding {
	return []Finding{{Name: Name, Detail: unavailable().Error(), Fix: "run talaria in a Linux machine or container"}}
}

// List finds nothing, for there is nothing.
func List(Options) ([]Entry, error) { return nil, nil }

// Reap finds nothing, for there is nothing.
func Reap(context.Context, Options) ([]Entry, error) { return nil, nil }
