package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

type statusOptions struct {
	Run    string
	Format string
}

func newStatusCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "Tells how far a run is and what it cost, also while another process writes it.",
		UsageText: "talaria status runs/quickstart-20260102-030405-1a2b",
		ArgsUsage: "RUN",
		Flags:     []cli.Flag{choiceFlag("format", "print as `FORMAT`", "table", "json")},
		Action: func(c *cli.Context) error {
			return runStatus(c.Context, statusOptions{Run: c.Args().First(), Format: c.String("format")}, std)
		},
	}
}

// runStatus reads manifest, footers and journal; it needs no SQL.
func runStatus(_ context.Context, opts statusOptions, std *stdio) error {
	views, done, err := openViews([]string{opts.Run})
	if err != nil {
		return err
	}
	defer done()
	index, err := views[0].Index()
	if err != nil {
		return err
	}
	run := views[0].Run
	if _, writing, err := store.Writer(opts.Run); err == nil { // else run.json is all there is to know
		run.State = stateNow(run.State, writing)
	}
	s := statusOf(run, index.Tallies())
	if s.State == store.StateRunning {
		s.Live = readLive(opts.Run, time.Now())
	}
	if opts.Format == "json" {
		return json.NewEncoder(std.out).Encode(s)
	}
	return s.print(std)
}

// runStatus is how a run stands. Its JSON keeps its meaning between releases.
type statusReport struct {
	RunID     string          `json:"run_id"`
	Name      string          `json:"name"`
	Shard     string          `json:"shard,omitempty"` // of the plan, "i/n"; Planned is of the shard
	State     string          `json:"state"`
	StartedAt time.Time       `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at"`
	Episodes  int             `json:"episodes"` // with a row
	Planned   int             `json:"planned"`  // 0 if not known
	Variants  []statusVariant `json:"variants"`
	Live      *liveReport     `json:"live,omitempty"` // of the process that writes the run
}

type statusVariant struct {
	Variant     string                  `json:"variant"`
	Episodes    int                     `json:"episodes"`
	Outcomes    map[dataset.Outcome]int `json:"outcomes"`
	Scored      int                     `json:"scored"`
	Passed      int                     `json:"passed"`
	Unscored    int                     `json:"unscored"`
	Truncated   int                     `json:"truncated"`
	MeanReward  *float64                `json:"mean_reward"` // over the scored ones
	Attempts    int                     `json:"attempts"`
	InputTokens int64                   `json:"input_tokens"` // cache reads and writes included
	OutTokens   int64                   `json:"output_tokens"`
	CostKnown   int64                   `json:"cost_known_nanousd"`
	CostUnknown int                     `json:"cost_unknown_attempts"`
	Unreported  int                     `json:"unreported_calls"`

	tally store.Tally
}

// stateNow is the state of a run whose last invocation left recorded, which it
// could not if it was killed or found no space on the disk.
func stateNow(recorded string, writing bool) string {
	switch {
	case writing:
		return store.StateRunning
	case recorded == store.StateRunning:
		return store.StateInterrupted
	default:
		return recorded
	}
}

func statusOf(run store.Run, tallies []store.Tally) statusReport {
	s := statusReport{
		RunID: run.RunID, Name: run.Name, Shard: run.Shard, State: run.State,
		StartedAt: run.CreatedAt, EndedAt: run.EndedAt, Planned: run.Total, Variants: []statusVariant{},
	}
	byHash := map[string]store.Tally{}
	for _, t := range tallies {
		byHash[t.VariantHash] = t
	}
	names := map[string]int{} // variant's name to its place in s.Variants
	for _, v := range run.Variants {
		t, ok := byHash[v.Hash]
		if !ok {
			t = store.Tally{VariantHash: v.Hash, Episodes: map[dataset.Outcome]int{}}
		}
		if i, again := names[v.Name]; again { // the same variant for another source
			s.Variants[i].tally.Add(t)
			continue
		}
		names[v.Name] = len(s.Variants)
		s.Variants = append(s.Variants, statusVariant{Variant: v.Name, tally: t})
	}
	for i := range s.Variants {
		s.Variants[i].fill()
		s.Episodes += s.Variants[i].Episodes
	}
	if s.Planned > 0 {
		s.Planned = max(s.Planned, s.Episodes) // the last invocation may have planned fewer than it found
	}
	return s
}

func (v *statusVariant) fill() {
	t := v.tally
	v.Episodes, v.Outcomes = t.Total(), t.Episodes
	v.Scored, v.Passed, v.Unscored, v.Truncated = t.Scored, t.Passed, t.Unscored, t.Truncated
	v.Attempts = t.Attempts
	v.InputTokens, v.OutTokens = t.Usage.Total()-t.Usage.Output, t.Usage.Output
	v.CostKnown, v.CostUnknown, v.Unreported = t.CostKnown, t.CostUnknown, t.Unreported
	if t.Scored > 0 {
		mean := t.RewardSum / float64(t.Scored)
		v.MeanReward = &mean
	}
}

func (s statusReport) print(std *stdio) error {
	of := ""
	if s.Planned > 0 {
		of = " of " + comma(s.Planned)
	}
	ended := ""
	if s.EndedAt != nil {
		ended = ", ended " + s.EndedAt.UTC().Format(time.DateTime) + " UTC"
	}
	shard := ""
	if s.Shard != "" {
		shard = ", shard " + s.Shard
	}
	_, err := fmt.Fprintf(std.out, "%s%s: %s, %s%s episodes; started %s UTC%s\n",
		s.Name, shard, s.State, comma(s.Episodes), of, s.StartedAt.UTC().Format(time.DateTime), ended)
	if err != nil {
		return err
	}
	if err := s.Live.print(std); err != nil {
		return err
	}
	rows := make([]summaryRow, 0, len(s.Variants)+1)
	all := summaryRow{Name: "all", Tally: store.Tally{Episodes: map[dataset.Outcome]int{}}}
	for _, v := range s.Variants {
		rows = append(rows, summaryRow{Name: v.Variant, Tally: v.tally})
		all.Add(v.tally)
	}
	if len(rows) > 1 {
		rows = append(rows, all)
	}
	return writeSummary(std.out, slices.Clip(rows))
}

// print tells what the table does not: what is in flight, and what bounds it.
func (r *liveReport) print(std *stdio) error {
	if r == nil {
		return nil
	}
	p := progressState{Done: r.Done, Total: r.Total, InFlight: r.InFlight, Rate: r.PerSecond, ETA: time.Duration(r.ETA * float64(time.Second))}
	if _, err := fmt.Fprintln(std.out, strings.Join(head(p), ", ")); err != nil {
		return err
	}
	for _, e := range r.Endpoints {
		if _, err := fmt.Fprintf(std.out, "%s: %s\n", e.Endpoint, e.text()); err != nil {
			return err
		}
	}
	return nil
}
