package dataset

import "errors"

// Outcome is whose doing the end of an attempt was.
type Outcome string

// The outcomes. Only OutcomeModel is the policy's own doing; the others never
// count as a failure of the model.
const (
	OutcomeModel    Outcome = "model"    // answered, gave up, refused, or ran into an episode limit
	OutcomeTask     Outcome = "task"     // reset, verifier or env at fault
	OutcomeInfra    Outcome = "infra"    // provider, sandbox, network or disk, after retries
	OutcomeBudget   Outcome = "budget"   // the run's budget was used up, or the group was stopped
	OutcomeOperator Outcome = "operator" // stopped by a person, or killed
)

// ExitReason labels how an attempt ended. Each attempt has exactly one.
type ExitReason string

// The exit reasons. [ExitReason.Outcome] maps each to its outcome.
const (
	ExitAnswered      ExitReason = "answered"            // a final text reply
	ExitSubmitted     ExitReason = "submitted"           // a tool ended the episode with an answer
	ExitEnvDone       ExitReason = "env_done"            // the env ended the episode
	ExitGaveUp        ExitReason = "gave_up"             // the policy said that it gives up
	ExitRefused       ExitReason = "refused"             // content filter or refusal
	ExitEmpty         ExitReason = "empty_response"      // nothing to act on, after the retries allowed
	ExitInvalidTools  ExitReason = "invalid_tool_calls"  // unknown tools three times in a row
	ExitCutArguments  ExitReason = "truncated_arguments" // a tool call that ends in the middle
	ExitLength        ExitReason = "length"              // the reply hit the output cap
	ExitContextFull   ExitReason = "context_full"
	ExitGuardrail     ExitReason = "guardrail_halt"
	ExitTurnLimit     ExitReason = "turn_limit"
	ExitTokenLimit    ExitReason = "token_limit"
	ExitCostLimit     ExitReason = "cost_limit"
	ExitTimeLimit     ExitReason = "time_limit"
	ExitBytesLimit    ExitReason = "bytes_limit"
	ExitResetError    ExitReason = "reset_error"    // the task could not be set up and is at fault
	ExitEnvError      ExitReason = "env_error"      // the env is at fault in the middle
	ExitVerifierError ExitReason = "verifier_error" // the task's own verifier is at fault
	ExitEnvPanic      ExitReason = "env_panic"
	ExitToolPanic     ExitReason = "tool_panic"
	ExitProviderError ExitReason = "provider_error" // retries exhausted, or not retryable
	ExitInfraError    ExitReason = "infra_error"    // any other failure around the episode
	ExitPanic         ExitReason = "panic"          // in the harness itself
	ExitRunBudget     ExitReason = "run_budget"
	ExitGroupStopped  ExitReason = "group_stopped"
	ExitInterrupted   ExitReason = "interrupted" // cut off by shutdown
	ExitKilled        ExitReason = "killed"      // the process died; written when the run is opened again
)

// Outcome of an exit reason; an unknown one is OutcomeInfra, so that it can
// never pass for the model's doing.
func (r ExitReason) Outcome() Outcome {
	switch r {
	case ExitAnswered, ExitSubmitted, ExitEnvDone, ExitGaveUp, ExitRefused, ExitEmpty,
		ExitInvalidTools, ExitCutArguments, ExitLength, ExitContextFull, ExitGuardrail,
		ExitTurnLimit, ExitTokenLimit, ExitCostLimit, ExitTimeLimit, ExitBytesLimit:
		return OutcomeModel
	case ExitResetError, ExitEnvError, ExitVerifierError, ExitEnvPanic, ExitToolPanic:
		return OutcomeTask
	case ExitRunBudget, ExitGroupStopped:
		return OutcomeBudget
	case ExitInterrupted, ExitKilled:
		return OutcomeOperator
	default:
		return OutcomeInfra
	}
}

// Truncated reports whether the reason is a limit that cut the episode short:
// the state it left is scored all the same.
func (r ExitReason) Truncated() bool {
	switch r {
	case ExitTurnLimit, ExitTokenLimit, ExitCostLimit, ExitTimeLimit, ExitBytesLimit,
		ExitLength, ExitContextFull, ExitCutArguments:
		return true
	default:
		return false
	}
}

// Flags of an attempt.
const (
	FlagUnscored     = "unscored"      // a scorer failed: the reward is null and resume scores again
	FlagStoppedEarly = "stopped_early" // the group was stopped
	FlagRepaired     = "repaired"
	FlagQuarantined  = "quarantined" // a token sequence is not fit for training
	FlagNeedsWorld   = "needs_world" // unscored, and only a new attempt can score it
)

// ErrTask marks an error as the task's own fault. Env errors that wrap it end
// the attempt as [OutcomeTask]; all others are infra.
var ErrTask = errors.New("task at fault")

// Causes with which contexts are cancelled; compare with [context.Cause].
var (
	ErrInterrupted = errors.New("interrupted")        // stopped by a person
	ErrRunBudget   = errors.New("run budget used up") // cost, tokens or time of the whole run
	ErrEpisodeTime = errors.New("episode time limit")
)
