package store

// The flat rows: one struct per table, one field per column, in the order in
// which the columns are written. A field's json name equals its Parquet column
// name, because the journal holds the same rows as JSON under the same names.
//
// Times are microseconds since the epoch in UTC. A pointer is a nullable
// column: nil is "not known" and never stands for zero. Strings tagged dict
// have few values; free text has neither statistics nor page bounds
// (see writerOptions), because statistics of strings are not truncated.

// AttemptRow is a row of the attempts table: one attempt that ended.
type AttemptRow struct {
	RunID           string  `parquet:"run_id,dict" json:"run_id"`
	EpisodeID       string  `parquet:"episode_id" json:"episode_id"`
	Attempt         int32   `parquet:"attempt" json:"attempt"`
	ParentEpisodeID *string `parquet:"parent_episode_id,optional" json:"parent_episode_id"`
	ReusedFrom      *string `parquet:"reused_from,optional" json:"reused_from"`

	TaskID     string  `parquet:"task_id" json:"task_id"`
	TaskHash   string  `parquet:"task_hash" json:"task_hash"`
	Occurrence int32   `parquet:"occurrence" json:"occurrence"`
	Dataset    string  `parquet:"dataset,dict" json:"dataset"`
	Split      *string `parquet:"split,optional,dict" json:"split"`
	GroupID    string  `parquet:"group_id" json:"group_id"`
	Sample     int32   `parquet:"sample" json:"sample"`
	Epoch      int32   `parquet:"epoch" json:"epoch"`

	Variant       string `parquet:"variant,dict" json:"variant"`
	VariantParams string `parquet:"variant_params,dict" json:"variant_params"`
	VariantHash   string `parquet:"variant_hash,dict" json:"variant_hash"`
	ScorerHash    string `parquet:"scorer_hash,dict" json:"scorer_hash"`
	ConfigHash    string `parquet:"config_hash,dict" json:"config_hash"`
	ContextHash   string `parquet:"context_hash,dict" json:"context_hash"`

	Env          string   `parquet:"env,dict" json:"env"`
	Agent        string   `parquet:"agent,dict" json:"agent"`
	Provider     string   `parquet:"provider,dict" json:"provider"`
	Model        string   `parquet:"model,dict" json:"model"`
	ModelServed  []string `parquet:"model_served,list" json:"model_served"`
	Fingerprints []string `parquet:"fingerprints,list" json:"fingerprints"`
	Upstream     []string `parquet:"upstream,list" json:"upstream"`

	Seed          int64    `parquet:"seed" json:"seed"`
	Temperature   *float64 `parquet:"temperature,optional" json:"temperature"`
	TopP          *float64 `parquet:"top_p,optional" json:"top_p"`
	MaxTokens     *int32   `parquet:"max_tokens,optional" json:"max_tokens"`
	SamplingExtra string   `parquet:"sampling_extra,dict" json:"sampling_extra"`

	Outcome    string   `parquet:"outcome,dict" json:"outcome"`
	ExitReason string   `parquet:"exit_reason,dict" json:"exit_reason"`
	Truncated  bool     `parquet:"truncated" json:"truncated"`
	ErrorClass *string  `parquet:"error_class,optional,dict" json:"error_class"`
	Error      *string  `parquet:"error,optional" json:"error"`
	Flags      []string `parquet:"flags,list" json:"flags"`
	Tags       []string `parquet:"tags,list" json:"tags"`

	Reward     *float64 `parquet:"reward,optional" json:"reward"`
	Passed     *bool    `parquet:"passed,optional" json:"passed"`
	RewardRule string   `parquet:"reward_rule,dict" json:"reward_rule"`
	PassRule   string   `parquet:"pass_rule,dict" json:"pass_rule"`
	Answer     *string  `parquet:"answer,optional" json:"answer"`

	Turns                int32 `parquet:"turns" json:"turns"`
	ToolCallCount        int32 `parquet:"tool_call_count" json:"tool_call_count"`
	ToolErrors           int32 `parquet:"tool_errors" json:"tool_errors"`
	Injected             int32 `parquet:"injected" json:"injected"`
	DiscardedGenerations int32 `parquet:"discarded_generations" json:"discarded_generations"`
	Requests             int32 `parquet:"requests" json:"requests"`

	InputTokens      int64  `parquet:"input_tokens" json:"input_tokens"`
	CacheReadTokens  int64  `parquet:"cache_read_tokens" json:"cache_read_tokens"`
	CacheWriteTokens int64  `parquet:"cache_write_tokens" json:"cache_write_tokens"`
	OutputTokens     int64  `parquet:"output_tokens" json:"output_tokens"`
	ReasoningTokens  *int64 `parquet:"reasoning_tokens,optional" json:"reasoning_tokens"`

	CostNanoUSD      *int64 `parquet:"cost_nanousd,optional" json:"cost_nanousd"`
	CostKnownNanoUSD int64  `parquet:"cost_known_nanousd" json:"cost_known_nanousd"`
	UnpricedCalls    int32  `parquet:"unpriced_calls" json:"unpriced_calls"`
	UnreportedCalls  int32  `parquet:"unreported_calls" json:"unreported_calls"`
	CostStatus       string `parquet:"cost_status,dict" json:"cost_status"` // known, partial, unknown
	PriceVersion     string `parquet:"price_version,dict" json:"price_version"`
	AuxInputTokens   int64  `parquet:"aux_input_tokens" json:"aux_input_tokens"`
	AuxOutputTokens  int64  `parquet:"aux_output_tokens" json:"aux_output_tokens"`
	AuxCostNanoUSD   *int64 `parquet:"aux_cost_nanousd,optional" json:"aux_cost_nanousd"`

	QueuedMS   int64 `parquet:"queued_ms" json:"queued_ms"`
	SetupMS    int64 `parquet:"setup_ms" json:"setup_ms"`
	ModelMS    int64 `parquet:"model_ms" json:"model_ms"`
	ThrottleMS int64 `parquet:"throttle_ms" json:"throttle_ms"`
	ToolMS     int64 `parquet:"tool_ms" json:"tool_ms"`
	ScoreMS    int64 `parquet:"score_ms" json:"score_ms"`
	WorkingMS  int64 `parquet:"working_ms" json:"working_ms"`
	TotalMS    int64 `parquet:"total_ms" json:"total_ms"`
	StartedAt  int64 `parquet:"started_at,timestamp(microsecond)" json:"started_at"`
	EndedAt    int64 `parquet:"ended_at,timestamp(microsecond)" json:"ended_at"`

	Toolsets      []string `parquet:"toolsets,list" json:"toolsets"`
	ToolsetsDrawn []string `parquet:"toolsets_drawn,list" json:"toolsets_drawn"`
	Tools         []string `parquet:"tools,list" json:"tools"`
	PromptHash    string   `parquet:"prompt_hash,dict" json:"prompt_hash"`
	ToolsHash     string   `parquet:"tools_hash,dict" json:"tools_hash"`
	CodeVersion   string   `parquet:"code_version,dict" json:"code_version"`

	SandboxBackend  *string  `parquet:"sandbox_backend,optional,dict" json:"sandbox_backend"`
	SandboxImage    *string  `parquet:"sandbox_image,optional,dict" json:"sandbox_image"`
	SandboxEnforced []string `parquet:"sandbox_enforced,list" json:"sandbox_enforced"`
	Extra           string   `parquet:"extra" json:"extra"` // JSON object
}

// TaskRow is a row of the tasks table: one dataset row used. Columns named in
// tasks.keep follow as meta_<name>, typed per part file; see Meta.
type TaskRow struct {
	RunID           string  `parquet:"run_id,dict" json:"run_id"`
	TaskID          string  `parquet:"task_id" json:"task_id"`
	TaskHash        string  `parquet:"task_hash" json:"task_hash"`
	Occurrence      int32   `parquet:"occurrence" json:"occurrence"`
	Dataset         string  `parquet:"dataset,dict" json:"dataset"`
	DatasetRevision *string `parquet:"dataset_revision,optional,dict" json:"dataset_revision"`
	Split           *string `parquet:"split,optional,dict" json:"split"`
	Input           string  `parquet:"input" json:"input"`
	Target          string  `parquet:"target" json:"target"`
	Params          string  `parquet:"params" json:"params"` // JSON object of the other columns

	// Meta is the kept columns, written as columns of their own.
	Meta map[string]any `parquet:"-" json:"meta,omitempty"`
}

// MessageRow is a row of the messages table.
type MessageRow struct {
	RunID              string  `parquet:"run_id,dict" json:"run_id"`
	EpisodeID          string  `parquet:"episode_id" json:"episode_id"`
	Attempt            int32   `parquet:"attempt" json:"attempt"`
	Position           int32   `parquet:"position" json:"position"`
	Turn               int32   `parquet:"turn" json:"turn"`
	Role               string  `parquet:"role,dict" json:"role"`
	Content            string  `parquet:"content" json:"content"`
	Parts              *string `parquet:"parts,optional" json:"parts"`
	Reasoning          *string `parquet:"reasoning,optional" json:"reasoning"`
	ReasoningSignature *string `parquet:"reasoning_signature,optional" json:"reasoning_signature"`
	ToolCallID         *string `parquet:"tool_call_id,optional" json:"tool_call_id"`
	ToolName           *string `parquet:"tool_name,optional,dict" json:"tool_name"`
	IsError            bool    `parquet:"is_error" json:"is_error"`
	Policy             bool    `parquet:"policy" json:"policy"`
	Agent              string  `parquet:"agent,dict" json:"agent"`
	InjectedBy         *string `parquet:"injected_by,optional,dict" json:"injected_by"`
	SpanID             *string `parquet:"span_id,optional" json:"span_id"`
	FinishReason       *string `parquet:"finish_reason,optional,dict" json:"finish_reason"`
	TruncatedBytes     int64   `parquet:"truncated_bytes" json:"truncated_bytes"`
	CreatedAt          int64   `parquet:"created_at,timestamp(microsecond)" json:"created_at"`
}

// ToolCallRow is a row of the tool_calls table.
type ToolCallRow struct {
	RunID            string  `parquet:"run_id,dict" json:"run_id"`
	EpisodeID        string  `parquet:"episode_id" json:"episode_id"`
	Attempt          int32   `parquet:"attempt" json:"attempt"`
	Position         int32   `parquet:"position" json:"position"`
	CallIndex        int32   `parquet:"call_index" json:"call_index"`
	ID               string  `parquet:"id" json:"id"`
	Name             string  `parquet:"name,dict" json:"name"`
	Arguments        string  `parquet:"arguments" json:"arguments"`
	ArgumentsCoerced *string `parquet:"arguments_coerced,optional" json:"arguments_coerced"`
	Repaired         bool    `parquet:"repaired" json:"repaired"`
	SchemaError      *string `parquet:"schema_error,optional" json:"schema_error"`
	BlockedBy        *string `parquet:"blocked_by,optional,dict" json:"blocked_by"`
	ResultPosition   *int32  `parquet:"result_position,optional" json:"result_position"`
	IsError          bool    `parquet:"is_error" json:"is_error"`
	ExitCode         *int32  `parquet:"exit_code,optional" json:"exit_code"`
	DurationMS       int64   `parquet:"duration_ms" json:"duration_ms"`
	SpanID           *string `parquet:"span_id,optional" json:"span_id"`
}

// SpanRow is a row of the spans table.
type SpanRow struct {
	RunID            string  `parquet:"run_id,dict" json:"run_id"`
	EpisodeID        string  `parquet:"episode_id" json:"episode_id"`
	Attempt          int32   `parquet:"attempt" json:"attempt"`
	SpanID           string  `parquet:"span_id" json:"span_id"`
	ParentID         *string `parquet:"parent_id,optional" json:"parent_id"`
	Kind             string  `parquet:"kind,dict" json:"kind"`
	Name             string  `parquet:"name,dict" json:"name"`
	Turn             int32   `parquet:"turn" json:"turn"`
	Agent            string  `parquet:"agent,dict" json:"agent"`
	StartUS          int64   `parquet:"start_us" json:"start_us"`
	DurationUS       int64   `parquet:"duration_us" json:"duration_us"`
	Status           string  `parquet:"status,dict" json:"status"`
	Retry            int32   `parquet:"retry" json:"retry"`
	ErrorClass       *string `parquet:"error_class,optional,dict" json:"error_class"`
	TTFTUS           *int64  `parquet:"ttft_us,optional" json:"ttft_us"`
	CallID           *string `parquet:"call_id,optional" json:"call_id"`
	RequestID        *string `parquet:"request_id,optional" json:"request_id"`
	ModelServed      *string `parquet:"model_served,optional,dict" json:"model_served"`
	PolicyVersion    *int64  `parquet:"policy_version,optional" json:"policy_version"`
	InputTokens      *int64  `parquet:"input_tokens,optional" json:"input_tokens"`
	CacheReadTokens  *int64  `parquet:"cache_read_tokens,optional" json:"cache_read_tokens"`
	CacheWriteTokens *int64  `parquet:"cache_write_tokens,optional" json:"cache_write_tokens"`
	OutputTokens     *int64  `parquet:"output_tokens,optional" json:"output_tokens"`
	CostNanoUSD      *int64  `parquet:"cost_nanousd,optional" json:"cost_nanousd"`
	Attrs            string  `parquet:"attrs" json:"attrs"` // JSON object
}

// RewardRow is a row of the rewards table: one value given.
type RewardRow struct {
	RunID           string   `parquet:"run_id,dict" json:"run_id"`
	EpisodeID       string   `parquet:"episode_id" json:"episode_id"`
	Attempt         int32    `parquet:"attempt" json:"attempt"`
	Name            string   `parquet:"name,dict" json:"name"`
	Revision        string   `parquet:"revision,dict" json:"revision"`
	Source          string   `parquet:"source,dict" json:"source"`
	Value           *float64 `parquet:"value,optional" json:"value"`
	Label           *string  `parquet:"label,optional,dict" json:"label"`
	Passed          *bool    `parquet:"passed,optional" json:"passed"`
	Weight          *float64 `parquet:"weight,optional" json:"weight"`
	Chosen          bool     `parquet:"chosen" json:"chosen"`
	Turn            *int32   `parquet:"turn,optional" json:"turn"`
	Explanation     *string  `parquet:"explanation,optional" json:"explanation"`
	ScorerHash      string   `parquet:"scorer_hash,dict" json:"scorer_hash"`
	JudgeModel      *string  `parquet:"judge_model,optional,dict" json:"judge_model"`
	JudgePromptHash *string  `parquet:"judge_prompt_hash,optional,dict" json:"judge_prompt_hash"`
	Raw             *string  `parquet:"raw,optional" json:"raw"`
	InputTokens     *int64   `parquet:"input_tokens,optional" json:"input_tokens"`
	OutputTokens    *int64   `parquet:"output_tokens,optional" json:"output_tokens"`
	CostNanoUSD     *int64   `parquet:"cost_nanousd,optional" json:"cost_nanousd"`
	Author          *string  `parquet:"author,optional,dict" json:"author"`
	CreatedAt       int64    `parquet:"created_at,timestamp(microsecond)" json:"created_at"`
}

// SequenceRow is a row of the sequences table: one uninterrupted context as
// the server tokenised it.
type SequenceRow struct {
	RunID            string            `parquet:"run_id,dict" json:"run_id"`
	EpisodeID        string            `parquet:"episode_id" json:"episode_id"`
	Attempt          int32             `parquet:"attempt" json:"attempt"`
	GroupID          string            `parquet:"group_id" json:"group_id"`
	TaskID           string            `parquet:"task_id" json:"task_id"`
	TaskHash         string            `parquet:"task_hash" json:"task_hash"`
	Epoch            int32             `parquet:"epoch" json:"epoch"`
	Sample           int32             `parquet:"sample" json:"sample"`
	Sequence         int32             `parquet:"sequence" json:"sequence"`
	ParentSequence   *int32            `parquet:"parent_sequence,optional" json:"parent_sequence"`
	Reason           string            `parquet:"reason,dict" json:"reason"`
	Agent            string            `parquet:"agent,dict" json:"agent"`
	Env              string            `parquet:"env,dict" json:"env"`
	Variant          string            `parquet:"variant,dict" json:"variant"`
	Model            string            `parquet:"model,dict" json:"model"`
	Reward           *float64          `parquet:"reward,optional" json:"reward"`
	Passed           *bool             `parquet:"passed,optional" json:"passed"`
	Outcome          string            `parquet:"outcome,dict" json:"outcome"`
	ExitReason       string            `parquet:"exit_reason,dict" json:"exit_reason"`
	Truncated        bool              `parquet:"truncated" json:"truncated"`
	TokenIDs         []int32           `parquet:"token_ids,list" json:"token_ids"`
	LossMask         []bool            `parquet:"loss_mask,list" json:"loss_mask"`
	Logprobs         []float32         `parquet:"logprobs,list" parquet-element:",split" json:"logprobs"`
	Turns            []SequenceTurnRow `parquet:"turns,list" json:"turns"`
	PolicyVersionMin *int64            `parquet:"policy_version_min,optional" json:"policy_version_min"`
	PolicyVersionMax *int64            `parquet:"policy_version_max,optional" json:"policy_version_max"`
	NTokens          int32             `parquet:"n_tokens" json:"n_tokens"`
	NPrompt          int32             `parquet:"n_prompt" json:"n_prompt"`
	NTrained         int32             `parquet:"n_trained" json:"n_trained"`
	History          string            `parquet:"history,dict" json:"history"`
	LogprobMode      string            `parquet:"logprob_mode,dict" json:"logprob_mode"`
	LogprobsExact    bool              `parquet:"logprobs_exact" json:"logprobs_exact"`
	Temperature      *float64          `parquet:"temperature,optional" json:"temperature"`
	Tokenizer        string            `parquet:"tokenizer,dict" json:"tokenizer"`
	TemplateHash     string            `parquet:"template_hash,dict" json:"template_hash"`
	Verdict          string            `parquet:"verdict,dict" json:"verdict"`
	VerdictDetail    *string           `parquet:"verdict_detail,optional" json:"verdict_detail"`
	RefLogprobs      []float32         `parquet:"ref_logprobs,list,optional" parquet-element:",split" json:"ref_logprobs"`
	TeacherK         *int32            `parquet:"teacher_k,optional" json:"teacher_k"`
	TeacherIDs       []int32           `parquet:"teacher_ids,list,optional" json:"teacher_ids"`
	TeacherLogprobs  []float32         `parquet:"teacher_logprobs,list,optional" parquet-element:",split" json:"teacher_logprobs"`
	RoutedExperts    []byte            `parquet:"routed_experts,optional" json:"routed_experts"`
}

// SequenceTurnRow is one sampled stretch of a sequence.
type SequenceTurnRow struct {
	Start         int32    `parquet:"start" json:"start"`
	End           int32    `parquet:"end" json:"end"`
	Position      int32    `parquet:"position" json:"position"`
	SpanID        string   `parquet:"span_id" json:"span_id"`
	PolicyVersion *int64   `parquet:"policy_version,optional" json:"policy_version"`
	FinishReason  string   `parquet:"finish_reason" json:"finish_reason"`
	Reward        *float64 `parquet:"reward,optional" json:"reward"`
}

// Rows is what one record or one part holds, by table.
type Rows struct {
	Attempts  []AttemptRow  `json:"attempts,omitempty"`
	Tasks     []TaskRow     `json:"tasks,omitempty"`
	Messages  []MessageRow  `json:"messages,omitempty"`
	ToolCalls []ToolCallRow `json:"tool_calls,omitempty"`
	Spans     []SpanRow     `json:"spans,omitempty"`
	Rewards   []RewardRow   `json:"rewards,omitempty"`
	Sequences []SequenceRow `json:"sequences,omitempty"`
}
