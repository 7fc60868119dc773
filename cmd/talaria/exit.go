package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/talaria-run/talaria/dataset"
)

// The exit codes, a contract with scripts. Where several hold, the first of
// this order counts.
const (
	exitUsage       = 2   // usage or config error; nothing was run or spent
	exitError       = 1   // an error stopped it
	exitInterrupted = 130 // SIGINT or SIGTERM; what finished is safe
	exitBudget      = 4   // finished early: a run budget was used up
	exitNoAnswer    = 5   // no episode ended as model
	exitFailures    = 3   // too large a share of infra, task and unscored episodes
	exitOK          = 0
)

// usageError is a mistake in the command line, the environment or the config:
// nothing was run or spent.
type usageError struct {
	command string // as typed, "talaria run"; empty if help on a command would not help
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usageErrorf(command, format string, args ...any) error {
	return &usageError{command: command, err: fmt.Errorf(format, args...)}
}

// exitCodeError ends the process with a code of its own: the run went as it
// should, but not to a full success.
type exitCodeError struct {
	code int
	err  error
}

func (e *exitCodeError) Error() string { return e.err.Error() }
func (e *exitCodeError) Unwrap() error { return e.err }

// exitCode maps the error of a command to the process's exit code.
func exitCode(err error) int {
	var usage *usageError
	var coded *exitCodeError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, dataset.ErrInterrupted):
		return exitInterrupted
	default:
		return exitError
	}
}

// report tells the user of err, once, and returns the exit code.
func (s *stdio) report(err error) int {
	code := exitCode(err)
	if err == nil {
		return code
	}
	if s.logJSON {
		s.log.Error("ended with an error", slog.String("error", err.Error()), slog.Int("exit_code", code))
		return code
	}
	s.err.printf("talaria: %v\n", err)
	if usage := (*usageError)(nil); errors.As(err, &usage) && usage.command != "" {
		s.err.printf("See '%s --help'.\n", usage.command)
	}
	return code
}
