package report

import "github.com/talaria-run/talaria/eval/metric"

// Source is how one variant did on one source of tasks.
type Source struct {
	Key
	Dataset        string           `json:"dataset"`
	Episodes       int              `json:"episodes"`
	Scored         int              `json:"scored"`
	Missing        int              `json:"missing"`
	Passed         int              `json:"passed"`
	PassRate       *float64         `json:"pass_rate"`
	PassRateCI95   *metric.Interval `json:"pass_rate_ci95"`
	PassRateBounds *metric.Interval `json:"pass_rate_bounds"`
	RewardMean     *float64         `json:"reward_mean"`
}

// Latency is how long one part of an episode takes, over the current attempts
// of outcome model, in milliseconds. Queued and throttled are waiting, which
// working leaves out.
type Latency struct {
	Key
	What string  `json:"what"` // working, model, tools, setup, scoring, queued, throttled, total
	P50  float64 `json:"p50_ms"`
	P95  float64 `json:"p95_ms"`
	P99  float64 `json:"p99_ms"`
	Max  float64 `json:"max_ms"`
}

// Turns is how many model calls and tool calls an episode takes, over the
// current attempts of outcome model.
type Turns struct {
	Key
	Mean      float64 `json:"mean"`
	P50       float64 `json:"p50"`
	P95       float64 `json:"p95"`
	Max       int     `json:"max"`
	ToolCalls float64 `json:"tool_calls_mean"`
	Discarded int     `json:"discarded"` // replies that were thrown away: empty ones, arguments that are no JSON
}

// Unscored counts the episodes of outcome model without a reward, by why they
// have none.
type Unscored struct {
	Key
	Reason   string   `json:"reason"`
	Episodes int      `json:"episodes"`
	Examples []string `json:"examples"` // ids, the first few
}

const latencySQL = `
WITH parts AS (
  SELECT run_id, variant, variant_hash, unnest(range(8)) AS place,
    unnest(['working', 'model', 'tools', 'setup', 'scoring', 'queued', 'throttled', 'total']) AS what,
    unnest([working_ms, model_ms, tool_ms, setup_ms, score_ms, queued_ms, throttle_ms, total_ms]) AS ms
  FROM episodes WHERE outcome = 'model'
)
SELECT run_id, variant, variant_hash, what, quantile_cont(ms, 0.5) AS p50_ms, quantile_cont(ms, 0.95) AS p95_ms,
  quantile_cont(ms, 0.99) AS p99_ms, max(ms)::DOUBLE AS max_ms
FROM parts
GROUP BY run_id, variant, variant_hash, place, what
ORDER BY run_id, variant, variant_hash, place`

const turnsSQL = `
SELECT run_id, variant, variant_hash, avg(turns) AS mean, quantile_cont(turns, 0.5) AS p50, quantile_cont(turns, 0.95) AS p95,
  max(turns) AS max, avg(tool_call_count) AS tool_calls_mean, sum(discarded_generations)::BIGINT AS discarded
FROM episodes
WHERE outcome = 'model'
GROUP BY run_id, variant, variant_hash
ORDER BY run_id, variant, variant_hash`

// The error of the attempt says what a scorer lacked; where it is about
// something else, or there is none, the span of the scoring or the reward does.
const unscoredSQL = `
WITH failed AS (
  SELECT run_id, episode_id, attempt, min(attrs::JSON ->> '$.error') AS error
  FROM spans WHERE kind = 'score' AND status <> 'ok' GROUP BY ALL
), said AS (
  SELECT run_id, episode_id, attempt, min(explanation) AS explanation
  FROM rewards WHERE value IS NULL AND explanation <> '' GROUP BY ALL
)
SELECT e.run_id, e.variant, e.variant_hash,
  coalesce(f.error, e.error, s.explanation, 'no scorer gave a value') AS reason,
  count(*) AS episodes, list_sort(list(e.episode_id))[:3] AS examples
FROM episodes e
LEFT JOIN failed f ON f.run_id = e.run_id AND f.episode_id = e.episode_id AND f.attempt = e.attempt
LEFT JOIN said s ON s.run_id = e.run_id AND s.episode_id = e.episode_id AND s.attempt = e.attempt
WHERE e.outcome = 'model' AND e.reward IS NULL
GROUP BY e.run_id, e.variant, e.variant_hash, reason
ORDER BY e.run_id, e.variant, e.variant_hash, episodes DESC, reason`

// sources are the rows of each variant and source, in the order of the cells.
func sources(cells []cell) []Source {
	type key struct {
		Key
		dataset string
	}
	groups := map[key][]cell{}
	var order []key
	for _, c := range cells {
		k := key{c.Key, c.Dataset}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], c)
	}
	all := make([]Source, len(order))
	for i, k := range order {
		var v Variant
		for _, c := range groups[k] {
			v.Episodes += c.N
		}
		v.rates(groups[k], metric.Interval{Low: 0, High: 1})
		all[i] = Source{
			Key: k.Key, Dataset: k.dataset, Episodes: v.Episodes, Scored: v.Scored, Missing: v.Episodes - v.Scored,
			Passed: v.Passed, PassRate: v.PassRate, PassRateCI95: v.PassRateCI95, PassRateBounds: v.PassRateBounds,
			RewardMean: v.RewardMean,
		}
	}
	return all
}
