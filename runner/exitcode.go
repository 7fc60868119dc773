package runner

import (
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// Exit codes of a run, in the order in which they are looked for.
const (
	CodeError       = 1   // an error stopped it
	CodeInterrupted = 130 // stopped by a person
	CodeEarly       = 4   // a run budget was used up
	CodeNoModel     = 5   // no episode ended as model
	CodeFailures    = 3   // too many infra, task and unscored episodes
	CodeOK          = 0
)

// ExitCode is the exit code of a run that ended with s and err. failOnError is
// the share of infra, task and unscored episodes above which a run counts as
// failed, limits.fail_on_error.
func ExitCode(s Summary, err error, failOnError float64) int {
	switch {
	case err != nil:
		return CodeError
	case s.Interrupted:
		return CodeInterrupted
	case s.Stopped != "":
		return CodeEarly
	case s.Total.Planned > 0 && s.Total.Episodes[dataset.OutcomeModel] == 0:
		return CodeNoModel
	case failedShare(s.Total.Tally) > failOnError:
		return CodeFailures
	default:
		return CodeOK
	}
}

// failedShare is the share of recorded episodes that say nothing about the
// model.
func failedShare(t store.Tally) float64 {
	n := t.Total()
	if n == 0 {
		return 0
	}
	failed := t.Episodes[dataset.OutcomeInfra] + t.Episodes[dataset.OutcomeTask] + t.Unscored
	return float64(failed) / float64(n)
}
