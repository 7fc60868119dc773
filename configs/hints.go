package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// foreign maps words that people bring from other harnesses to ours.
func foreign(word string) (ours string, ok bool) {
	ours, ok = map[string]string{
		"epochs": "samples", "n_attempts": "samples", "num_trials": "samples", "trials": "samples",
		"rollouts_per_example": "samples", "num_rollouts": "samples", "group_size": "samples",
		"repeats": "samples", "num_repeats": "samples", "n_samples": "samples", "num_samples": "samples", "n": "samples",

		"max_connections": "limits.concurrency.requests", "num_concurrent": "limits.concurrency.requests",
		"provider_limit": "limits.concurrency.requests", "rate_limit": "limits.requests_per_minute",
		"rpm": "limits.requests_per_minute", "max_requests_per_minute": "limits.requests_per_minute",
		"tpm":         "limits.tokens_per_minute",
		"max_samples": "limits.concurrency.episodes", "max_tasks": "limits.concurrency.episodes",
		"max_concurrent": "limits.concurrency.episodes", "max_concurrency": "limits.concurrency.episodes",
		"n_concurrent_trials": "limits.concurrency.episodes", "max_num_workers": "limits.concurrency.episodes",
		"num_workers": "limits.concurrency.episodes", "workers": "limits.concurrency.episodes",

		"max_turns": "limits.episode.turns", "max_steps": "limits.episode.turns", "step_limit": "limits.episode.turns",
		"max_iterations": "limits.episode.turns", "turn_limit": "limits.episode.turns", "message_limit": "limits.episode.turns",
		"timeout": "limits.episode.time", "time_limit": "limits.episode.time", "working_limit": "limits.episode.time",
		"token_limit": "limits.episode.tokens", "cost_limit": "limits.episode.cost_usd",
		"budget": "limits.run.cost_usd", "max_cost": "limits.run.cost_usd",
		"max_retries": "limits.retries", "retry_on_error": "limits.retries.infra", "num_retries": "limits.retries.requests",

		"dataset": "tasks", "datasets": "tasks", "task": "tasks", "taskset": "tasks", "data": "tasks",
		"sample_fields": "tasks.columns", "shuffle_seed": "seed", "random_seed": "seed",
		"metadata": "tasks.keep", "max_examples": "tasks.limit", "num_examples": "tasks.limit",
		"fewshot": "few_shot", "num_fewshot": "few_shot.n", "fewshot_as_multiturn": "few_shot",
		"environment": "env", "env_id": "env.name", "env_name": "env.name",
		"solver": "agent", "harness": "agent", "policy": "agent",
		"models": "sweep (agent.model: [...])", "model_name": "agent.model", "provider": "agent.model",
		"model_base_url": "agent.base_url", "api_base": "agent.base_url", "endpoint": "agent.base_url",
		"tools": "agent.toolsets", "system_message": "agent.system_prompt", "system": "agent.system_prompt",
		"reasoning_effort": "agent.reasoning.effort", "num_ctx": "agent.sampling.num_ctx",
		"sampling_args": "agent.sampling", "generation_kwargs": "agent.sampling", "gen_kwargs": "agent.sampling",
		"generation_config": "agent.sampling", "max_completion_tokens": "agent.sampling.max_tokens",
		"max_new_tokens": "agent.sampling.max_tokens",
		"scorer":         "score", "scorers": "score", "metric": "score", "metrics": "score", "reward": "score", "rewards": "score",
		"verifier": "score", "rubric": "score", "rubrics": "score",
		"log_dir": "out", "output_dir": "out", "output_path": "out", "jobs_dir": "out", "results_dir": "out",
		"grid": "sweep", "matrix": "sweep", "variants": "sweep", "description": "note",
	}[word]
	return ours, ok
}

// unknownKey says what is probably meant by a key that no config has.
func unknownKey(key, name string, siblings []string) string {
	known := knownKeys()
	if ours, ok := foreign(strings.ToLower(name)); ok && ours != key {
		return "unknown key; here it is called " + ours
	}
	if near := nearest(name, siblings); near != "" {
		return fmt.Sprintf("unknown key; did you mean %s?", near)
	}
	if full := elsewhere(name, known); full != "" {
		return fmt.Sprintf("unknown key; did you mean %s?", full)
	}
	return "unknown key; known here are " + strings.Join(siblings, ", ")
}

// nearest is the candidate that a typo most likely stands for, "" if none is
// near enough.
func nearest(name string, candidates []string) string {
	limit := 1 // edits that a typo of this length may need; two make a transposition
	if len(name) > 3 {
		limit = 2
	}
	best, bestDistance := "", limit+1
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// elsewhere finds the one key that has the name as its last part.
func elsewhere(name string, known []string) string {
	var found []string
	for _, k := range known {
		if strings.HasSuffix(k, "."+name) || k == name {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, " or ")
}

// knownKeys lists every key with its parents, without list indices.
func knownKeys() []string {
	var keys []string
	for _, l := range leaves(reflect.TypeFor[Run](), "") {
		if l.field.rest {
			continue
		}
		parts := strings.Split(l.key, ".")
		for i := range parts {
			if k := strings.Join(parts[:i+1], "."); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// secretKey reports whether a key's name says that its value is a secret.
func secretKey(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	switch name {
	case "api_key", "apikey", "token", "secret", "password", "passwd", "authorization",
		"access_token", "auth_token", "bearer_token", "private_key", "client_secret":
		return true
	}
	return strings.HasSuffix(name, "_api_key") || strings.HasSuffix(name, "_password") || strings.HasSuffix(name, "_secret")
}

// checkSecrets reports keys that look like secrets, wherever they stand; names
// of columns are free.
func (d *document) checkSecrets(v *value, key string) {
	for i, e := range v.items {
		d.checkSecrets(e, fmt.Sprintf("%s.%d", key, i))
	}
	for _, e := range slices.Clone(v.entries) {
		child := join(key, e.key)
		last := e.key[strings.LastIndex(e.key, ".")+1:] // a swept key is dotted
		if secretKey(last) {
			d.add(e.at, child, "a secret has no place in a config; put it into an environment variable "+
				"and name that in agent.api_key_env, or into a file and name that in agent.api_key_file")
			v.remove(e.key) // it is reported once
			continue
		}
		if e.key != "columns" {
			d.checkSecrets(e.value, child)
		}
	}
}
