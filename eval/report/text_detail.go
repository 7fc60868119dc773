package report

import (
	"fmt"
	"strings"

	"github.com/talaria-run/talaria/eval/metric"
)

// sourceGrid is for runs of several sources: of one it would repeat the passes.
func (r *Report) sourceGrid(l labels) grid {
	g := grid{title: "Passes by source of tasks", columns: heads("variant", "source", ">episodes", ">scored", ">missing",
		">passed", ">pass rate", ">95 % interval", ">if missing fail/pass", ">mean reward")}
	first := map[string]bool{}
	for _, s := range r.Sources {
		first[s.Dataset] = true
	}
	if len(first) < 2 {
		return g
	}
	for _, s := range r.Sources {
		var bounds *metric.Interval
		if s.Missing > 0 {
			bounds = s.PassRateBounds
		}
		g.rows = append(g.rows, []any{
			l.of(s.Key), s.Dataset, s.Episodes, s.Scored, s.Missing, s.Passed,
			percent(s.PassRate), percents(s.PassRateCI95), percents(bounds), orDash(s.RewardMean, "%.3f"),
		})
	}
	return g
}

func (r *Report) unscoredGrid(l labels) grid {
	g := grid{title: "Why episodes have no reward though the model ended them", columns: heads("variant", "reason", ">episodes", "examples")}
	for _, u := range r.Unscored {
		g.rows = append(g.rows, []any{l.of(u.Key), u.Reason, u.Episodes, shortIDs(u.Examples)})
	}
	return g
}

// shortIDs are the beginnings of episode ids, as 'talaria show' takes them.
func shortIDs(ids []string) string {
	cut := make([]string, len(ids))
	for i, id := range ids {
		cut[i] = short(id)
	}
	return strings.Join(cut, " ")
}

// latencyGrid has a line for each variant and part that takes any time.
func (r *Report) latencyGrid(l labels) grid {
	g := grid{title: "Latency of an episode that the model ended", columns: heads("variant", "part", ">p50", ">p95", ">p99", ">longest")}
	for _, t := range r.Latency {
		if t.Max == 0 {
			continue
		}
		g.rows = append(g.rows, []any{l.of(t.Key), t.What, millis(&t.P50), millis(&t.P95), millis(&t.P99), millis(&t.Max)})
	}
	return g
}

func (r *Report) turnGrid(l labels) grid {
	g := grid{title: "Turns of an episode that the model ended", columns: heads("variant", ">mean", ">p50", ">p95", ">most", ">tool calls", ">replies thrown away")}
	for _, t := range r.Turns {
		g.rows = append(g.rows, []any{
			l.of(t.Key), fmt.Sprintf("%.2f", t.Mean), fmt.Sprintf("%.0f", t.P50), fmt.Sprintf("%.0f", t.P95), t.Max,
			fmt.Sprintf("%.2f", t.ToolCalls), t.Discarded,
		})
	}
	return g
}
