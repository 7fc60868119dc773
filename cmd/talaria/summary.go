package main

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/metric"
	"github.com/talaria-run/talaria/eval/table"
)

// summaryRow is one line of the table at a run's end: a variant, or all.
type summaryRow struct {
	Name    string
	Planned int // episodes; 0: as many as have a row
	store.Tally
}

// writeSummary prints a line for each row. What is not known is a dash, and
// outcomes that nobody had have no column.
func writeSummary(w io.Writer, rows []summaryRow) error {
	columns := summaryColumns(rows)
	heads := make([]table.Column, len(columns))
	cells := make([][]any, len(rows))
	for i, c := range columns {
		heads[i] = table.Column{Name: c.name, Number: i > 0}
		for j := range rows {
			cells[j] = append(cells[j], c.text(&rows[j]))
		}
	}
	return table.Write(w, table.Table, heads, table.All(cells))
}

type summaryColumn struct {
	name string
	text func(*summaryRow) string
}

func summaryColumns(rows []summaryRow) []summaryColumn {
	columns := []summaryColumn{
		{"variant", func(r *summaryRow) string { return r.Name }},
		{"episodes", func(r *summaryRow) string { return comma(r.Total()) }},
	}
	for _, o := range shownOutcomes() {
		columns = append(columns, countColumn(string(o), rows, func(r *summaryRow) int { return r.Episodes[o] })...)
	}
	columns = append(columns, countColumn("truncated", rows, func(r *summaryRow) int { return r.Truncated })...)
	columns = append(columns, countColumn("unscored", rows, func(r *summaryRow) int { return r.Unscored })...)
	return append(columns,
		summaryColumn{"reward", rewardText},
		summaryColumn{"passed", passedText},
		summaryColumn{"tokens in", func(r *summaryRow) string { return amount(r.Usage.Total() - r.Usage.Output) }},
		summaryColumn{"out", func(r *summaryRow) string { return amount(r.Usage.Output) }},
		summaryColumn{"cost", func(r *summaryRow) string { return costText(r.Tally) }},
	)
}

// countColumn is a column of counts, or none if all are zero.
func countColumn(name string, rows []summaryRow, of func(*summaryRow) int) []summaryColumn {
	for i := range rows {
		if of(&rows[i]) > 0 {
			return []summaryColumn{{name, func(r *summaryRow) string { return comma(of(r)) }}}
		}
	}
	return nil
}

func rewardText(r *summaryRow) string {
	if r.Scored == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", r.RewardSum/float64(r.Scored))
}

// passedText is the observed share of passes and, where rewards are missing,
// the bounds between which it would lie with them.
func passedText(r *summaryRow) string {
	if r.Scored == 0 {
		return "-"
	}
	text := fmt.Sprintf("%.1f%%", 100*float64(r.Passed)/float64(r.Scored))
	planned := max(r.Planned, r.Total())
	if bounds, ok := metric.Bound(float64(r.Passed), r.Scored, planned, 0, 1); ok && planned > r.Scored {
		text += fmt.Sprintf(" [%.1f%%, %.1f%%]", 100*bounds.Low, 100*bounds.High)
	}
	return text
}

// comma is n with thousands separated.
func comma(n int) string { return humanize.Comma(int64(n)) }
