package query

// derived are the views over the recorded tables. Names that begin with an
// underscore are steps on the way.
func derived() []view {
	return []view{
		{"_current", currentSQL},
		{"_tree", treeSQL},
		{"_scores", scoresSQL},
		{"_spent", spentSQL},
		{"episodes", episodesSQL},
		{"children", childrenSQL},
		{"sequences", sequencesSQL},
		{"tasks", tasksSQL},
		{"task_stats", taskStatsSQL},
		{"groups", groupsSQL},
	}
}

// The number of each episode's current attempt.
const currentSQL = `
SELECT run_id, episode_id,
  coalesce(max(attempt) FILTER (outcome NOT IN ('infra', 'operator')), max(attempt)) AS attempt,
  count(*) AS attempt_count
FROM all_attempts
WHERE parent_episode_id IS NULL
GROUP BY run_id, episode_id`

// Each delegated episode with the episode at the root of its tree.
const treeSQL = `
WITH RECURSIVE edges AS (
  SELECT DISTINCT run_id, episode_id, parent_episode_id FROM all_attempts WHERE parent_episode_id IS NOT NULL
), up AS (
  SELECT run_id, episode_id, parent_episode_id AS root_episode_id FROM edges
  UNION
  SELECT up.run_id, up.episode_id, edges.parent_episode_id
  FROM up JOIN edges ON edges.run_id = up.run_id AND edges.episode_id = up.root_episode_id
)
SELECT up.* FROM up ANTI JOIN edges ON edges.run_id = up.run_id AND edges.episode_id = up.root_episode_id`

// Each attempt's reward: the latest chosen one that has a value and was given
// after the attempt ended, else the one that it ended with; nothing unless the
// outcome is the model's.
const scoresSQL = `
WITH latest AS (
  SELECT a.run_id, a.episode_id, a.attempt,
    any_value(a.outcome) AS outcome, any_value(a.reward) AS at_run, any_value(a.passed) AS passed_at_run,
    max_by({'value': r.value, 'passed': r.passed},
      {'at': r.created_at, 'revision': r.revision, 'name': r.name, 'value': r.value}) AS late
  FROM all_attempts a
  LEFT JOIN all_rewards r
    ON r.run_id = a.run_id AND r.episode_id = a.episode_id AND r.attempt = a.attempt
    AND r.chosen AND r.value IS NOT NULL AND (a.reward IS NULL OR r.created_at > a.ended_at)
  GROUP BY a.run_id, a.episode_id, a.attempt
)
SELECT run_id, episode_id, attempt,
  CASE WHEN outcome = 'model' THEN coalesce(late.value, at_run) END AS reward,
  CASE WHEN outcome <> 'model' THEN NULL
    WHEN late.value IS NOT NULL THEN coalesce(late.passed, late.value >= 1)
    WHEN at_run IS NOT NULL THEN coalesce(passed_at_run, at_run >= 1) END AS passed
FROM latest`

// What each episode cost with all its attempts and delegated episodes.
const spentSQL = `
SELECT a.run_id, coalesce(t.root_episode_id, a.episode_id) AS episode_id,
  sum(a.cost_known_nanousd + coalesce(a.aux_cost_nanousd, 0))::BIGINT AS known,
  bool_and(a.cost_nanousd IS NOT NULL
    AND (a.aux_cost_nanousd IS NOT NULL OR a.aux_input_tokens + a.aux_output_tokens = 0)) AS complete
FROM all_attempts a LEFT JOIN _tree t ON t.run_id = a.run_id AND t.episode_id = a.episode_id
GROUP BY ALL`

const episodesSQL = `
SELECT a.* REPLACE (s.reward AS reward, s.passed AS passed),
  a.reward AS reward_at_run,
  c.attempt_count,
  a.cost_nanousd / 1e9 AS cost_usd,
  CASE WHEN p.complete THEN p.known END AS tree_cost_nanousd,
  CASE WHEN p.complete THEN p.known / 1e9 END AS tree_cost_usd,
  p.known / 1e9 AS tree_cost_known_usd
FROM all_attempts a
JOIN _current c ON c.run_id = a.run_id AND c.episode_id = a.episode_id AND c.attempt = a.attempt
LEFT JOIN _scores s ON s.run_id = a.run_id AND s.episode_id = a.episode_id AND s.attempt = a.attempt
LEFT JOIN _spent p ON p.run_id = a.run_id AND p.episode_id = a.episode_id`

// The delegated episodes of the attempts in "episodes".
const childrenSQL = `
SELECT a.* REPLACE (s.reward AS reward, s.passed AS passed),
  t.root_episode_id,
  a.reward AS reward_at_run,
  a.cost_nanousd / 1e9 AS cost_usd
FROM all_attempts a
JOIN _tree t ON t.run_id = a.run_id AND t.episode_id = a.episode_id
JOIN _current c ON c.run_id = a.run_id AND c.episode_id = t.root_episode_id AND c.attempt = a.attempt
LEFT JOIN _scores s ON s.run_id = a.run_id AND s.episode_id = a.episode_id AND s.attempt = a.attempt`

const sequencesSQL = `
SELECT q.* REPLACE (s.reward AS reward, s.passed AS passed)
FROM all_sequences q
JOIN _current c ON c.run_id = q.run_id AND c.episode_id = q.episode_id AND c.attempt = q.attempt
LEFT JOIN _scores s ON s.run_id = q.run_id AND s.episode_id = q.episode_id AND s.attempt = q.attempt`

const tasksSQL = `
SELECT DISTINCT ON (run_id, task_id, occurrence) * FROM all_tasks`

// rate is over the episodes with a reward; rate_min and rate_max are what it
// would be were every episode without one a failure, or a pass.
const taskStatsSQL = `
SELECT run_id, task_id, occurrence, variant, variant_hash,
  count(*) AS n,
  count(reward) AS scored,
  count(*) - count(reward) AS missing,
  count(*) FILTER (passed) AS passes,
  count(*) FILTER (passed) / nullif(count(reward), 0) AS rate,
  count(*) FILTER (passed) / count(*) AS rate_min,
  (count(*) FILTER (passed) + count(*) - count(reward)) / count(*) AS rate_max,
  avg(reward) AS reward_mean,
  CASE WHEN count(tree_cost_nanousd) = count(*) THEN sum(tree_cost_nanousd) / 1e9 END AS cost_usd
FROM episodes
GROUP BY run_id, task_id, occurrence, variant, variant_hash`

// complete: every sample of the group has a reward. std is the sample standard
// deviation, null for fewer than two rewards.
const groupsSQL = `
SELECT e.run_id, e.group_id, any_value(e.task_id) AS task_id, any_value(e.occurrence) AS occurrence, e.epoch,
  e.variant, e.variant_hash,
  count(*) AS n,
  count(e.reward) AS scored,
  count(*) FILTER (e.passed) AS passes,
  avg(e.reward) AS mean,
  stddev_samp(e.reward) AS std,
  stddev_pop(e.reward) AS std_pop,
  min(e.reward) AS reward_min,
  max(e.reward) AS reward_max,
  count(e.reward) = coalesce(any_value(r.samples), max(count(*)) OVER (PARTITION BY e.run_id)) AS complete,
  min(e.reward) = max(e.reward) AS zero_variance,
  CASE WHEN count(e.tree_cost_nanousd) = count(*) THEN sum(e.tree_cost_nanousd) / 1e9 END AS cost_usd
FROM episodes e LEFT JOIN runs r ON r.run_id = e.run_id
GROUP BY e.run_id, e.group_id, e.epoch, e.variant, e.variant_hash`
