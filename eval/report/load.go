package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/talaria-run/talaria/eval/query"
)

// cell is how the samples of one group came out.
type cell struct {
	Key
	Dataset    string  `json:"dataset"`
	TaskID     string  `json:"task_id"`
	Occurrence int     `json:"occurrence"`
	N          int     `json:"n"`
	Scored     int     `json:"scored"`
	Passed     int     `json:"passed"`
	Sum        float64 `json:"sum"`
}

const cellsSQL = `
SELECT run_id, variant, variant_hash, min(dataset) AS dataset, task_id, occurrence,
  count(*) AS n, count(reward) AS scored, count(*) FILTER (passed) AS passed, coalesce(sum(reward), 0) AS sum
FROM episodes
GROUP BY run_id, variant, variant_hash, task_id, occurrence, group_id
ORDER BY ALL`

// summary is what is counted over the episodes of a variant, or of all.
type summary struct {
	Key
	Env          string   `json:"env"`
	Model        string   `json:"model"`
	Params       string   `json:"params"`
	Episodes     int      `json:"episodes"`
	Task         int      `json:"task"`
	Infra        int      `json:"infra"`
	Budget       int      `json:"budget"`
	Operator     int      `json:"operator"`
	Unscored     int      `json:"unscored"`
	Truncated    int      `json:"truncated"`
	Lowest       *float64 `json:"lowest"`
	Highest      *float64 `json:"highest"`
	WorkingP50   *float64 `json:"working_p50"`
	WorkingP95   *float64 `json:"working_p95"`
	TotalP50     *float64 `json:"total_p50"`
	TotalP95     *float64 `json:"total_p95"`
	IsGrandTotal bool     `json:"is_grand_total"`
}

const summariesSQL = `
SELECT coalesce(run_id, '') AS run_id, coalesce(variant, '') AS variant, coalesce(variant_hash, '') AS variant_hash,
  grouping(run_id, variant, variant_hash) > 0 AS is_grand_total,
  coalesce(min(env), '') AS env, coalesce(min(model), '') AS model, coalesce(min(variant_params), '') AS params,
  count(*) AS episodes,
  count(*) FILTER (outcome = 'task') AS task,
  count(*) FILTER (outcome = 'infra') AS infra,
  count(*) FILTER (outcome = 'budget') AS budget,
  count(*) FILTER (outcome = 'operator') AS operator,
  count(*) FILTER (outcome = 'model' AND reward IS NULL) AS unscored,
  count(*) FILTER (truncated) AS truncated,
  min(reward) AS lowest, max(reward) AS highest,
  quantile_cont(working_ms, 0.5) FILTER (outcome = 'model') AS working_p50,
  quantile_cont(working_ms, 0.95) FILTER (outcome = 'model') AS working_p95,
  quantile_cont(total_ms, 0.5) FILTER (outcome = 'model') AS total_p50,
  quantile_cont(total_ms, 0.95) FILTER (outcome = 'model') AS total_p95
FROM episodes
GROUP BY GROUPING SETS ((run_id, variant, variant_hash), ())
ORDER BY is_grand_total, run_id, variant, variant_hash`

// ledger is what the attempts of a variant used: every attempt of every
// episode, delegated ones under the variant of the episode at their root.
type ledger struct {
	Key
	Attempts   int   `json:"attempts"`
	KnownNano  int64 `json:"known_nano"`
	Complete   bool  `json:"complete"`
	Unpriced   int64 `json:"unpriced"`
	Unreported int64 `json:"unreported"`
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
	AuxInput   int64 `json:"aux_input"`
	AuxOutput  int64 `json:"aux_output"`
	Queued     int64 `json:"queued"`
	Setup      int64 `json:"setup"`
	Model      int64 `json:"model"`
	Throttle   int64 `json:"throttle"`
	Tool       int64 `json:"tool"`
	Score      int64 `json:"score"`
	Total      int64 `json:"total"`
}

const ledgersSQL = `
WITH a AS (
  SELECT e.variant, e.variant_hash, a.* EXCLUDE (variant, variant_hash), t.root_episode_id IS NULL AS own
  FROM all_attempts a
  LEFT JOIN _tree t ON t.run_id = a.run_id AND t.episode_id = a.episode_id
  JOIN episodes e ON e.run_id = a.run_id AND e.episode_id = coalesce(t.root_episode_id, a.episode_id)
)
SELECT run_id, variant, variant_hash,
  count(*) FILTER (own) AS attempts,
  sum(cost_known_nanousd + coalesce(aux_cost_nanousd, 0))::BIGINT AS known_nano,
  bool_and(cost_nanousd IS NOT NULL AND (aux_cost_nanousd IS NOT NULL OR aux_input_tokens + aux_output_tokens = 0)) AS complete,
  sum(unpriced_calls)::BIGINT AS unpriced, sum(unreported_calls)::BIGINT AS unreported,
  sum(input_tokens)::BIGINT AS input, sum(cache_read_tokens)::BIGINT AS cache_read,
  sum(cache_write_tokens)::BIGINT AS cache_write, sum(output_tokens)::BIGINT AS output,
  sum(aux_input_tokens)::BIGINT AS aux_input, sum(aux_output_tokens)::BIGINT AS aux_output,
  coalesce(sum(queued_ms) FILTER (own), 0)::BIGINT AS queued, coalesce(sum(setup_ms) FILTER (own), 0)::BIGINT AS setup,
  coalesce(sum(model_ms) FILTER (own), 0)::BIGINT AS model, coalesce(sum(throttle_ms) FILTER (own), 0)::BIGINT AS throttle,
  coalesce(sum(tool_ms) FILTER (own), 0)::BIGINT AS tool, coalesce(sum(score_ms) FILTER (own), 0)::BIGINT AS score,
  coalesce(sum(total_ms) FILTER (own), 0)::BIGINT AS total
FROM a
GROUP BY run_id, variant, variant_hash
ORDER BY run_id, variant, variant_hash`

const outcomesSQL = `
SELECT run_id, variant, variant_hash, outcome, exit_reason, truncated, count(*) AS episodes
FROM episodes
GROUP BY ALL
ORDER BY run_id, variant, variant_hash, episodes DESC, exit_reason`

const failuresSQL = `
SELECT a.run_id, a.variant, a.variant_hash, a.error_class, a.outcome,
  count(*) AS attempts, count(DISTINCT a.episode_id) AS episodes, count(*) FILTER (a.attempt = c.attempt) AS final,
  min(a.error) AS message, list_sort(list_distinct(list(a.episode_id)))[:3] AS examples
FROM all_attempts a JOIN _current c ON c.run_id = a.run_id AND c.episode_id = a.episode_id
WHERE a.error_class IS NOT NULL
GROUP BY a.run_id, a.variant, a.variant_hash, a.error_class, a.outcome
ORDER BY a.run_id, a.variant, a.variant_hash, attempts DESC, a.error_class, a.outcome`

// toolRow is a Tool with its quantiles side by side.
type toolRow struct {
	Tool
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
}

const toolsSQL = `
SELECT e.run_id, e.variant, e.variant_hash, t.name AS tool,
  count(*) AS calls,
  count(*) FILTER (t.is_error) AS errors,
  count(*) FILTER (t.is_error) / count(*) AS error_rate,
  count(t.schema_error) AS schema_errors,
  count(t.blocked_by) AS blocked,
  count(*) FILTER (t.repaired) AS repaired,
  sum(t.duration_ms)::BIGINT AS total_ms,
  quantile_cont(t.duration_ms, 0.5) AS p50,
  quantile_cont(t.duration_ms, 0.95) AS p95
FROM tool_calls t
JOIN episodes e ON e.run_id = t.run_id AND e.episode_id = t.episode_id
GROUP BY e.run_id, e.variant, e.variant_hash, t.name
ORDER BY e.run_id, e.variant, e.variant_hash, calls DESC, tool`

const runsSQL = `
SELECT run_id, name, state, strftime(created_at, '%Y-%m-%dT%H:%M:%S.%fZ') AS created_at,
  strftime(ended_at, '%Y-%m-%dT%H:%M:%S.%fZ') AS ended_at, version, samples, total
FROM runs
ORDER BY runs.created_at, name, run_id`

// tables is everything that a report is computed from.
type tables struct {
	runs      []Run
	cells     []cell
	summaries []summary
	ledgers   []ledger
	outcomes  []Outcome
	failures  []Failure
	tools     []toolRow
	unscored  []Unscored
	turns     []Turns
	latency   []Latency
}

func load(ctx context.Context, db *query.DB) (t tables, err error) {
	read := func(name string, into func() error) {
		if err != nil {
			return
		}
		if err = into(); err != nil {
			err = fmt.Errorf("reading %s for the report: %w", name, err)
		}
	}
	read("runs", func() (err error) { t.runs, err = query.Select[Run](ctx, db, runsSQL); return })
	read("groups", func() (err error) { t.cells, err = query.Select[cell](ctx, db, cellsSQL); return })
	read("episodes", func() (err error) { t.summaries, err = query.Select[summary](ctx, db, summariesSQL); return })
	read("attempts", func() (err error) { t.ledgers, err = query.Select[ledger](ctx, db, ledgersSQL); return })
	read("outcomes", func() (err error) { t.outcomes, err = query.Select[Outcome](ctx, db, outcomesSQL); return })
	read("failures", func() (err error) { t.failures, err = query.Select[Failure](ctx, db, failuresSQL); return })
	read("tool calls", func() (err error) { t.tools, err = query.Select[toolRow](ctx, db, toolsSQL); return })
	read("rewards", func() (err error) { t.unscored, err = query.Select[Unscored](ctx, db, unscoredSQL); return })
	read("turns", func() (err error) { t.turns, err = query.Select[Turns](ctx, db, turnsSQL); return })
	read("times", func() (err error) { t.latency, err = query.Select[Latency](ctx, db, latencySQL); return })
	t.sort()
	return t, err
}

// sort puts the rows of each table into the order of the runs. The order
// within a run stays.
func (t *tables) sort() {
	place := map[string]int{}
	for i, r := range t.runs {
		place[r.RunID] = i
	}
	sortRows(t.cells, place, func(c cell) Key { return c.Key })
	sortRows(t.summaries, place, func(s summary) Key { return s.Key })
	sortRows(t.ledgers, place, func(l ledger) Key { return l.Key })
	sortRows(t.outcomes, place, func(o Outcome) Key { return o.Key })
	sortRows(t.failures, place, func(f Failure) Key { return f.Key })
	sortRows(t.tools, place, func(t toolRow) Key { return t.Key })
	sortRows(t.unscored, place, func(u Unscored) Key { return u.Key })
	sortRows(t.turns, place, func(t Turns) Key { return t.Key })
	sortRows(t.latency, place, func(l Latency) Key { return l.Key })
}

func sortRows[T any](rows []T, place map[string]int, key func(T) Key) {
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(place[key(a).RunID], place[key(b).RunID]) })
}
