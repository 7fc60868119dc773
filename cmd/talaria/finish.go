package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// finish closes the run, prints the summary, and says how it ended.
func (s *session) finish(dir string, st *store.Store, summary runner.Summary, runErr error) error {
	code := runner.ExitCode(summary, runErr, s.cfg.Limits.FailOnError)
	runErr = errors.Join(runErr, st.UpdateRun(func(r *store.Run) {
		now := time.Now().UTC()
		r.State, r.EndedAt = stateOf(code), &now
		last := &r.Invocations[len(r.Invocations)-1]
		last.EndedAt, last.ExitCode = &now, &code
	}))
	if err := st.Close(); !errors.Is(runErr, err) { // one failure is told once
		runErr = errors.Join(runErr, err)
	}
	if err := s.print(dir, summary, st.Run().Variants); err != nil {
		runErr = errors.Join(runErr, fmt.Errorf("printing the summary: %w", err))
	}
	if runErr != nil {
		return fmt.Errorf("%w\nwhat finished is safe in %s: once it is mended, 'talaria resume %s' goes on", runErr, dir, dir)
	}
	if code == runner.CodeOK {
		return nil
	}
	return &exitCodeError{code: code, err: errors.New(s.ending(code, dir, summary))}
}

func stateOf(code int) string {
	switch code {
	case runner.CodeInterrupted:
		return store.StateInterrupted
	case runner.CodeEarly:
		return store.StateStopped
	case runner.CodeError:
		return store.StateFailed
	default:
		return store.StateComplete
	}
}

// ending is why the exit code is not zero, and what to do.
func (s *session) ending(code int, dir string, summary runner.Summary) string {
	t := summary.Total
	switch code {
	case runner.CodeInterrupted:
		return fmt.Sprintf("interrupted: what finished is safe, 'talaria resume %s' goes on", dir)
	case runner.CodeEarly:
		return fmt.Sprintf("the run's budget of %s is used up: raise limits.run.%s and go on with 'talaria resume %s --set limits.run.%s=...'",
			summary.Stopped, budgetKey(summary.Stopped), dir, budgetKey(summary.Stopped))
	case runner.CodeNoModel:
		return fmt.Sprintf("no episode ended as the model's own doing: 'talaria report %s' tells why, '%s' tries again", dir, again(dir, t.Tally))
	default:
		failed := t.Episodes[dataset.OutcomeInfra] + t.Episodes[dataset.OutcomeTask] + t.Unscored
		return fmt.Sprintf("%d of %d episodes ended as infra or task or could not be scored, more than limits.fail_on_error allows (%g): 'talaria report %s' tells why, '%s' tries again",
			failed, t.Total(), s.cfg.Limits.FailOnError, dir, again(dir, t.Tally))
	}
}

// again is the command that tries the failed episodes again: those that have
// used up their retries need a fresh allowance.
func again(dir string, t store.Tally) string {
	var failed []string
	for _, o := range []dataset.Outcome{dataset.OutcomeInfra, dataset.OutcomeTask} {
		if t.Episodes[o] > 0 {
			failed = append(failed, string(o))
		}
	}
	if len(failed) == 0 {
		return "talaria resume " + dir
	}
	return "talaria resume " + dir + " --retry " + strings.Join(failed, ",")
}

func budgetKey(stop runner.Stop) string {
	if stop == runner.StopCost {
		return "cost_usd"
	}
	return string(stop)
}

// print writes the summary table and the directory to stdout.
func (s *session) print(dir string, summary runner.Summary, recorded []dataset.Variant) error {
	rows := summaryRows(summary, recorded)
	if len(rows) > 1 {
		rows = append(rows, summaryRow{Name: "all", Planned: summary.Total.Planned, Tally: summary.Total.Tally})
	}
	if err := writeSummary(s.std.out, rows); err != nil {
		return err
	}
	for _, line := range remarks(s.shard, summary) {
		if _, err := fmt.Fprintln(s.std.out, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(s.std.out, "%s\n", dir)
	return err
}

// summaryRows is a row for each variant of the plan and for each that only
// earlier invocations ran: under the name that it was recorded with, marked
// where a variant of the plan has that name too.
func summaryRows(summary runner.Summary, recorded []dataset.Variant) []summaryRow {
	rows := make([]summaryRow, 0, len(summary.Variants)+1) // with room for the sum
	place, planned := map[string]int{}, map[string]bool{}
	for _, v := range summary.Variants {
		name := v.Name
		planned[name] = name != ""
		if name == "" {
			name = recordedName(v.Hashes[0], recorded)
		}
		if v.Name == "" && planned[name] {
			name += " (before)"
		}
		if i, again := place[name]; again {
			rows[i].Add(v.Tally)
			continue
		}
		place[name] = len(rows)
		rows = append(rows, summaryRow{Name: name, Planned: v.Planned, Tally: v.Tally})
	}
	return rows
}

func recordedName(hash string, recorded []dataset.Variant) string {
	for _, v := range recorded {
		if v.Hash == hash {
			return v.Name
		}
	}
	return "unknown variant " + hash
}

// remarks are what the table does not show.
func remarks(shard runner.Shard, summary runner.Summary) []string {
	var lines []string
	if !shard.Whole() {
		lines = append(lines, fmt.Sprintf("this is shard %s of the plan", shard))
	}
	if n := summary.SkippedRows; n > 0 {
		lines = append(lines, plural(n, "bad row of the dataset was", "bad rows of the dataset were")+" skipped")
	}
	if n := summary.Rescored; n > 0 {
		lines = append(lines, plural(n, "attempt was", "attempts were")+" scored again, without a model call")
	}
	return lines
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return comma(n) + " " + many
}
