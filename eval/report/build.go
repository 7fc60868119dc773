package report

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/talaria-run/talaria/eval/metric"
	"github.com/talaria-run/talaria/eval/query"
)

// Build computes the tables of all runs that db reads.
func Build(ctx context.Context, db *query.DB) (*Report, error) {
	t, err := load(ctx, db)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Runs:        nonNil(t.runs),
		RewardRange: rewardRange(t.summaries),
		Variants:    []Variant{},
		Sources:     sources(t.cells),
		Unscored:    nonNil(t.unscored),
		Turns:       nonNil(t.turns),
		Latency:     nonNil(t.latency),
		Outcomes:    nonNil(t.outcomes),
		Failures:    nonNil(t.failures),
		Tools:       tools(t.tools),
		Time:        times(t.ledgers),
	}
	for _, s := range t.summaries {
		if s.IsGrandTotal { // there is one, whatever there is else
			r.Total = variant(s, t.cells, total(t.ledgers), r.RewardRange)
			continue
		}
		v := variant(s, cellsOf(t.cells, s.Key), ledgerOf(t.ledgers, s.Key), r.RewardRange)
		v.Env, v.Model, v.Params = s.Env, s.Model, json.RawMessage(cmp.Or(s.Params, "null"))
		r.Variants = append(r.Variants, v)
	}
	return r, nil
}

func nonNil[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}

// rewardRange is 0 to 1, widened to what was observed anywhere: variants are
// compared, so a missing reward may be anything that any of them got.
func rewardRange(summaries []summary) metric.Interval {
	r := metric.Interval{Low: 0, High: 1}
	for _, s := range summaries {
		if s.Lowest != nil {
			r.Low, r.High = min(r.Low, *s.Lowest), max(r.High, *s.Highest)
		}
	}
	return r
}

// variant computes a row from the groups and the ledger of a variant, or of
// all of them.
func variant(s summary, cells []cell, l ledger, missing metric.Interval) Variant {
	v := Variant{
		Key:       s.Key,
		Params:    json.RawMessage("null"),
		Episodes:  s.Episodes,
		Missing:   Missing{Task: s.Task, Infra: s.Infra, Budget: s.Budget, Operator: s.Operator, Unscored: s.Unscored},
		Truncated: s.Truncated,
		WorkingMS: Quantiles{P50: s.WorkingP50, P95: s.WorkingP95},
		TotalMS:   Quantiles{P50: s.TotalP50, P95: s.TotalP95},
	}
	v.rates(cells, missing)
	v.spend(l)
	return v
}

// rates sets everything about passes and rewards. Values are clustered by
// task; pass@k is per group.
func (v *Variant) rates(cells []cell, missing metric.Interval) {
	passes, rewards := map[taskKey]*metric.Cluster{}, map[taskKey]*metric.Cluster{}
	groups := make([]metric.Counts, len(cells))
	sum := 0.0
	for i, c := range cells {
		key := taskKey{c.TaskID, c.Occurrence}
		add(passes, key, c.Scored, float64(c.Passed))
		add(rewards, key, c.Scored, c.Sum)
		groups[i] = metric.Counts{N: c.N, Scored: c.Scored, Passed: c.Passed}
		v.Scored, v.Passed, sum = v.Scored+c.Scored, v.Passed+c.Passed, sum+c.Sum
	}
	if rate, ok := metric.PassRate(values(passes)); ok {
		v.PassRate, v.PassRateStdErr, v.PassRateCI95 = &rate.Value, &rate.StdErr, &rate.Interval
		v.IntervalMethod = rate.Method
	}
	if mean, se, ok := metric.Mean(values(rewards)); ok {
		v.RewardMean, v.RewardStdErr = &mean, &se
	}
	v.PassRateBounds = bound(float64(v.Passed), v.Scored, v.Episodes, metric.Interval{Low: 0, High: 1})
	v.RewardBounds = bound(sum, v.Scored, v.Episodes, missing)
	v.PassAtK = metric.Powers(groups, metric.PassAtK)
	v.PassHatK = metric.Powers(groups, metric.PassHatK)
}

// taskKey identifies a task: variants and runs of the same task share it.
type taskKey struct {
	id         string
	occurrence int
}

func add(clusters map[taskKey]*metric.Cluster, key taskKey, n int, sum float64) {
	c, ok := clusters[key]
	if !ok {
		c = &metric.Cluster{}
		clusters[key] = c
	}
	c.N += n
	c.Sum += sum
}

// values are the clusters in the order of their keys, so that sums come out the
// same every time.
func values(clusters map[taskKey]*metric.Cluster) []metric.Cluster {
	keys := slices.SortedFunc(maps.Keys(clusters), func(a, b taskKey) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.occurrence, b.occurrence))
	})
	all := make([]metric.Cluster, len(keys))
	for i, k := range keys {
		all[i] = *clusters[k]
	}
	return all
}

func bound(sum float64, scored, n int, missing metric.Interval) *metric.Interval {
	interval, ok := metric.Bound(sum, scored, n, missing.Low, missing.High)
	if !ok {
		return nil
	}
	return &interval
}

const nano = 1e9

// spend sets everything about attempts, cost and tokens.
func (v *Variant) spend(l ledger) {
	v.Attempts = l.Attempts
	v.CostKnownUSD = float64(l.KnownNano) / nano
	v.UnpricedCalls, v.UnreportedCalls = l.Unpriced, l.Unreported
	v.Tokens = Tokens{
		Input: l.Input, CacheRead: l.CacheRead, CacheWrite: l.CacheWrite, Output: l.Output,
		AuxInput: l.AuxInput, AuxOutput: l.AuxOutput,
	}
	if !l.Complete {
		return
	}
	cost := v.CostKnownUSD
	v.CostUSD = &cost
	if v.Passed > 0 {
		perPass := cost / float64(v.Passed)
		v.CostPerPassUSD = &perPass
	}
}

func cellsOf(cells []cell, key Key) []cell {
	var own []cell
	for _, c := range cells {
		if c.Key == key {
			own = append(own, c)
		}
	}
	return own
}

func ledgerOf(ledgers []ledger, key Key) ledger {
	for _, l := range ledgers {
		if l.Key == key {
			return l
		}
	}
	return ledger{}
}

func total(ledgers []ledger) ledger {
	sum := ledger{Complete: true}
	for _, l := range ledgers {
		sum.Complete = sum.Complete && l.Complete
		sum.Attempts += l.Attempts
		sum.KnownNano += l.KnownNano
		sum.Unpriced += l.Unpriced
		sum.Unreported += l.Unreported
		sum.Input += l.Input
		sum.CacheRead += l.CacheRead
		sum.CacheWrite += l.CacheWrite
		sum.Output += l.Output
		sum.AuxInput += l.AuxInput
		sum.AuxOutput += l.AuxOutput
	}
	return sum
}

func times(ledgers []ledger) []Time {
	all := make([]Time, len(ledgers))
	for i, l := range ledgers {
		known := l.Setup + l.Model + l.Throttle + l.Tool + l.Score
		all[i] = Time{
			Key: l.Key, Attempts: l.Attempts,
			QueuedMS: l.Queued, SetupMS: l.Setup, ModelMS: l.Model, ThrottleMS: l.Throttle,
			ToolMS: l.Tool, ScoreMS: l.Score, OtherMS: max(0, l.Total-known), TotalMS: l.Total,
		}
	}
	return all
}

func tools(rows []toolRow) []Tool {
	all := make([]Tool, len(rows))
	for i, row := range rows {
		all[i] = row.Tool
		all[i].DurationMS = Quantiles{P50: row.P50, P95: row.P95}
	}
	return all
}
