package query

// About says of each view that people look at what a row of it is, in the order
// in which to look.
func About() []ViewInfo {
	return []ViewInfo{
		{"episodes", "episode: its current attempt with reward, cost and tokens; begin here"},
		{"messages", "message of the current attempts"},
		{"tool_calls", "tool call of the current attempts"},
		{"spans", "model call, tool call or pause of the current attempts, with times and tokens"},
		{"rewards", "value that a scorer gave to a current attempt"},
		{"sequences", "token sequence of a current attempt, where they are recorded"},
		{"tasks", "task"},
		{"task_stats", "task and variant: passes, rate, bounds, cost"},
		{"groups", "group of samples: mean, deviation, cost"},
		{"runs", "run: state, config, host, version, tags"},
		{"children", "delegated episode"},
		{"all_attempts", "attempt that is recorded: retries and interrupted ones too"},
		{"all_messages", "message of all attempts"},
		{"all_tool_calls", "tool call of all attempts"},
		{"all_spans", "span of all attempts"},
		{"all_rewards", "reward of all attempts"},
		{"all_sequences", "sequence of all attempts"},
		{"all_tasks", "task as often as it was recorded"},
	}
}

// ViewInfo is a view and what it has a row for.
type ViewInfo struct{ Name, Row string }
