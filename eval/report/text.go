package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/talaria-run/talaria/eval/metric"
	"github.com/talaria-run/talaria/eval/table"
)

// grid is a table of the report on its way to a terminal.
type grid struct {
	title   string
	columns []table.Column
	rows    [][]any
}

// heads makes columns; names that begin with > are aligned to the right.
func heads(names ...string) []table.Column {
	columns := make([]table.Column, len(names))
	for i, n := range names {
		name, right := strings.CutPrefix(n, ">")
		columns[i] = table.Column{Name: name, Number: right}
	}
	return columns
}

func (r *Report) writeText(w io.Writer) error {
	labels := newLabels(r)
	grids := []grid{
		r.runGrid(), r.passGrid(labels), r.sourceGrid(labels), r.powerGrid(labels), r.costGrid(labels),
		r.outcomeGrid(labels), r.unscoredGrid(labels), r.failureGrid(labels), r.turnGrid(labels),
		r.toolGrid(labels), r.latencyGrid(labels), r.timeGrid(labels),
	}
	before := ""
	for _, g := range grids {
		if len(g.rows) == 0 {
			continue
		}
		if _, err := io.WriteString(w, before+g.title+"\n"); err != nil {
			return err
		}
		if err := table.Write(w, table.Table, g.columns, table.All(g.rows)); err != nil {
			return err
		}
		before = "\n"
	}
	_, err := io.WriteString(w, r.notes())
	return err
}

// labels name variants: by their name alone while that says which run and env it
// is.
type labels struct {
	runs map[string]string // by id, where there are several
	envs map[Key]string    // of variants whose name others of the run have too
}

func newLabels(r *Report) labels {
	l := labels{runs: map[string]string{}, envs: map[Key]string{}}
	first := map[Key]Variant{} // by run and name
	for _, v := range r.Variants {
		name := Key{RunID: v.RunID, Variant: v.Variant}
		other, again := first[name]
		if !again {
			first[name] = v
			continue
		}
		l.envs[other.Key], l.envs[v.Key] = other.Env, v.Env
	}
	if len(r.Runs) < 2 {
		return l
	}
	for _, run := range r.Runs {
		l.runs[run.RunID] = run.Name + " (" + short(run.RunID) + ")"
	}
	return l
}

func (l labels) of(k Key) string {
	if k == (Key{}) {
		return "all"
	}
	name := k.Variant
	if run, ok := l.runs[k.RunID]; ok {
		name = run + " " + name
	}
	if env, ok := l.envs[k]; ok {
		name += " (" + env + ")"
	}
	return name
}

const shortID = 8

func short(id string) string {
	if len(id) > shortID {
		return id[:shortID]
	}
	return id
}

func (r *Report) runGrid() grid {
	g := grid{title: "Runs", columns: heads("run", "id", "state", "created", "version", ">samples", ">planned")}
	for _, run := range r.Runs {
		g.rows = append(g.rows, []any{run.Name, run.RunID, run.State, instant(run.CreatedAt), run.Version, orDash(run.Samples, "%d"), orDash(run.Total, "%d")})
	}
	return g
}

// withTotal are the variants and, where there are several, their total.
func (r *Report) withTotal() []Variant {
	if len(r.Variants) == 1 {
		return r.Variants
	}
	return append(slices.Clip(r.Variants), r.Total)
}

func (r *Report) passGrid(l labels) grid {
	g := grid{title: "Passes and rewards", columns: heads("variant", ">episodes", ">scored", ">missing", ">truncated",
		">passed", ">pass rate", ">95 % interval", ">if missing fail/pass", ">mean reward", ">bounds")}
	for _, v := range r.withTotal() {
		g.rows = append(g.rows, []any{
			l.of(v.Key), v.Episodes, v.Scored, v.Missing.All(), v.Truncated, v.Passed,
			percent(v.PassRate), percents(v.PassRateCI95), percents(bounds(v, v.PassRateBounds)),
			orDash(v.RewardMean, "%.3f"), span(bounds(v, v.RewardBounds)),
		})
	}
	return g
}

// bounds are worth a place only where something is missing.
func bounds(v Variant, i *metric.Interval) *metric.Interval {
	if v.Missing.All() == 0 {
		return nil
	}
	return i
}

func (r *Report) costGrid(l labels) grid {
	g := grid{title: "Cost and tokens of all attempts", columns: heads("variant", ">attempts", ">cost", ">per pass",
		">input", ">cache read", ">cache write", ">output", ">judges and users")}
	for _, v := range r.withTotal() {
		t := v.Tokens
		g.rows = append(g.rows, []any{
			l.of(v.Key), v.Attempts, cost(v), money(v.CostPerPassUSD),
			t.Input, t.CacheRead, t.CacheWrite, t.Output, t.AuxInput + t.AuxOutput,
		})
	}
	return g
}

func cost(v Variant) string {
	if v.CostUSD == nil && v.CostKnownUSD > 0 {
		return fmt.Sprintf(">= $%.4f", v.CostKnownUSD)
	}
	return money(v.CostUSD)
}

// powerGrid has a column for k = 1, 2, 4, 8, ... and the largest.
func (r *Report) powerGrid(l labels) grid {
	ks := powersOf2(len(r.Total.PassAtK))
	g := grid{title: "Several samples: pass@k (any of k passes), pass^k (all of k pass)", columns: heads("variant")}
	if len(ks) < 2 {
		return g
	}
	for _, k := range ks {
		g.columns = append(g.columns, heads(fmt.Sprintf(">pass@%d", k))...)
	}
	for _, k := range ks {
		g.columns = append(g.columns, heads(fmt.Sprintf(">pass^%d", k))...)
	}
	for _, v := range r.withTotal() {
		row := []any{l.of(v.Key)}
		for _, powers := range [][]metric.Power{v.PassAtK, v.PassHatK} {
			for _, k := range ks {
				row = append(row, percent(at(powers, k)))
			}
		}
		g.rows = append(g.rows, row)
	}
	return g
}

func powersOf2(most int) []int {
	var ks []int
	for k := 1; k < most; k *= 2 {
		ks = append(ks, k)
	}
	if most > 0 {
		ks = append(ks, most)
	}
	return ks
}

func at(powers []metric.Power, k int) *float64 {
	if k > len(powers) {
		return nil
	}
	return powers[k-1].Value
}

func (r *Report) outcomeGrid(l labels) grid {
	g := grid{title: "How episodes ended", columns: heads("variant", "outcome", "exit reason", "truncated", ">episodes")}
	for _, o := range r.Outcomes {
		g.rows = append(g.rows, []any{l.of(o.Key), o.Outcome, o.ExitReason, yes(o.Truncated), o.Episodes})
	}
	return g
}

func (r *Report) failureGrid(l labels) grid {
	g := grid{title: "Failures by class, over all attempts", columns: heads("variant", "error class", "outcome", ">attempts", ">episodes", ">final", "examples", "message")}
	for _, f := range r.Failures {
		g.rows = append(g.rows, []any{l.of(f.Key), f.ErrorClass, f.Outcome, f.Attempts, f.Episodes, f.Final, shortIDs(f.Examples), orDash(f.Message, "%s")})
	}
	return g
}

func (r *Report) toolGrid(l labels) grid {
	g := grid{title: "Tools", columns: heads("variant", "tool", ">calls", ">errors", ">error rate", ">bad arguments", ">blocked", ">repaired", ">p50", ">p95", ">in all")}
	for _, t := range r.Tools {
		g.rows = append(g.rows, []any{
			l.of(t.Key), t.Tool, t.Calls, t.Errors, percent(&t.ErrorRate), t.SchemaErrors, t.Blocked, t.Repaired,
			millis(t.DurationMS.P50), millis(t.DurationMS.P95), whole(t.TotalMS),
		})
	}
	return g
}

func (r *Report) timeGrid(l labels) grid {
	g := grid{title: "Where the time of all attempts went", columns: heads("variant", ">attempts", ">queued", ">setup", ">model", ">throttled", ">tools", ">scoring", ">other", ">total")}
	for _, t := range r.Time {
		g.rows = append(g.rows, []any{
			l.of(t.Key), t.Attempts, whole(t.QueuedMS), whole(t.SetupMS), whole(t.ModelMS), whole(t.ThrottleMS),
			whole(t.ToolMS), whole(t.ScoreMS), whole(t.OtherMS), whole(t.TotalMS),
		})
	}
	return g
}

// notes say how to read what needs it.
func (r *Report) notes() string {
	var b strings.Builder
	if r.Total.IntervalMethod == metric.MethodClustered {
		b.WriteString("\nIntervals are Wilson's over the effective number of episodes, from standard errors clustered by task.\n")
	}
	if r.Total.Missing.All() > 0 {
		m := r.Total.Missing
		fmt.Fprintf(&b, "\nMissing are episodes without a reward: %d unscored, %d task, %d infra, %d budget, %d operator. "+
			"They are in no rate and in no mean.\n", m.Unscored, m.Task, m.Infra, m.Budget, m.Operator)
	}
	return b.String()
}

const dash = "-"

func orDash[T any](v *T, format string) string {
	if v == nil {
		return dash
	}
	return fmt.Sprintf(format, *v)
}

func percent(v *float64) string {
	if v == nil {
		return dash
	}
	return fmt.Sprintf("%.1f %%", *v*100)
}

func percents(i *metric.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.1f to %.1f %%", i.Low*100, i.High*100)
}

func span(i *metric.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.3f to %.3f", i.Low, i.High)
}

func money(v *float64) string {
	if v == nil {
		return dash
	}
	return fmt.Sprintf("$%.4f", *v)
}

func millis(v *float64) string {
	if v == nil {
		return dash
	}
	d := time.Duration(*v * float64(time.Millisecond))
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	default:
		return d.Round(time.Minute).String()
	}
}

func whole(ms int64) string {
	v := float64(ms)
	return millis(&v)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func instant(t *time.Time) string {
	if t == nil {
		return dash
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
