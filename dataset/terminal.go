package dataset

// TerminalParams is what [Task.Params] of a terminal task holds as JSON: what
// the world of the task is like and how its state is verified. The names are
// those of a Harbor task.toml. Zero values: the task does not say.
type TerminalParams struct {
	Workdir string `json:"workdir,omitempty"` // absolute: where the agent begins and the verifier runs
	Network string `json:"network,omitempty"` // "no-network": the task wants to be offline
	// Env is the environment of all commands. Values are templates: ${NAME} and
	// ${NAME:-default} stand for a variable of the host.
	Env     map[string]string `json:"env,omitempty"`
	Memory  int64             `json:"memory,omitempty"`  // bytes
	Storage int64             `json:"storage,omitempty"` // bytes
	CPUs    float64           `json:"cpus,omitempty"`    // asked for, not enforced

	AgentTimeoutSec    float64           `json:"agent_timeout_sec,omitempty"`
	VerifierTimeoutSec float64           `json:"verifier_timeout_sec,omitempty"`
	VerifierEnv        map[string]string `json:"verifier_env,omitempty"` // templates
	// Collect are commands that run between the agent and the verifier.
	Collect     []TerminalHook    `json:"collect,omitempty"`
	SolutionEnv map[string]string `json:"solution_env,omitempty"` // templates

	// Metadata is what the task tells of itself, without what is mapped or
	// kept.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// TerminalHook is a command of a task.
type TerminalHook struct {
	Command    string  `json:"command"`
	TimeoutSec float64 `json:"timeout_sec,omitempty"`
}
