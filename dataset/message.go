package dataset

import (
	"encoding/json"
	"time"
)

// Role of a message, as in OpenAI chat.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Who speaks in a message or pays for a call ([Message.Agent], [Call.Agent]).
const (
	AgentPolicy  = "policy"
	AgentUserSim = "user_sim"
	AgentChild   = "child"
	AgentJudge   = "judge"
)

// Message is one message of a conversation, in the shape of OpenAI chat.
//
// Policy tells whether the model under test sampled it. Everything else is
// context, which is never trained on.
type Message struct {
	Role               Role
	Content            string
	Parts              json.RawMessage // the content as JSON where it is not only text, else nil
	Reasoning          string
	ReasoningSignature string
	ToolCalls          []ToolCall
	ToolCallID         string // of a tool result: the id as the model gave it
	ToolName           string // of a tool result
	IsError            bool   // of a tool result
	Policy             bool
	Agent              string // AgentPolicy, ...; empty for system, user and tool messages of the env
	InjectedBy         string // nudge, repair, compaction, guardrail, ...; empty if not injected by the harness
	Turn               int    // 0 before the first model call, then the number of the call it belongs to
	SpanID             string // the span of the model or tool call that made it
	FinishReason       string // as normalised: stop, tool_calls, length, content_filter
	TruncatedBytes     int64  // bytes cut from Content, 0 if whole
	CreatedAt          time.Time
}

// ToolCall is one call that a model made and what came of it. Arguments is the
// raw text that the model sampled, which is the training target; Coerced is
// what ran where that differs.
//
// ID is as the model gave it. Ids repeat in real data: results are joined by
// position and index, never by id.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
	Coerced   string // JSON text, "" if unchanged
	Repaired  bool

	SchemaError    string // why the arguments did not fit the tool
	BlockedBy      string // who refused to run it
	ResultPosition int    // index in Trajectory.Messages of its result, 0 while there is none
	IsError        bool
	ExitCode       *int
	Duration       time.Duration
	SpanID         string
}
