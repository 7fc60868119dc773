package lab

import "encoding/json"

// request is what the lab reads of a chat completions request.
type request struct {
	Model               string        `json:"model"`
	Messages            []wireMessage `json:"messages"`
	Tools               []wireTool    `json:"tools"`
	MaxTokens           *int64        `json:"max_tokens"`
	MaxCompletionTokens *int64        `json:"max_completion_tokens"`
	Stream              bool          `json:"stream"`

	context int64 // how long the prompt may be, where the request says
	cuts    bool  // a prompt that is longer is cut without a word
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type wireTool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// completion is a chat completions response.
type completion struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"`
	Created           int64    `json:"created"`
	Model             string   `json:"model"`
	Choices           []choice `json:"choices"`
	Usage             *Usage   `json:"usage,omitempty"`
	SystemFingerprint string   `json:"system_fingerprint"`
	Provider          string   `json:"provider,omitempty"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      wireReply `json:"message"`
	FinishReason string    `json:"finish_reason"`
}

type wireReply struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"` // or, by the server's ways:
	Reasoning        string     `json:"reasoning,omitempty"`
	ReasoningDetails []detail   `json:"reasoning_details,omitempty"`
	ToolCalls        []wireCall `json:"tool_calls,omitempty"`
}

type detail struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Signature string `json:"signature"`
}

// Usage is what a request used, as the response reports it.
type Usage struct {
	PromptTokens            int64             `json:"prompt_tokens"` // cached ones included
	CompletionTokens        int64             `json:"completion_tokens"`
	TotalTokens             int64             `json:"total_tokens"`
	PromptTokensDetails     PromptDetails     `json:"prompt_tokens_details"`
	CompletionTokensDetails CompletionDetails `json:"completion_tokens_details"`
	Cost                    json.Number       `json:"cost,omitempty"` // in dollars, of a server that names it
}

// PromptDetails splits the prompt's tokens.
type PromptDetails struct {
	CachedTokens int64 `json:"cached_tokens"`
}

// CompletionDetails splits the completion's tokens.
type CompletionDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

type wireError struct {
	Error struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    string `json:"code"`
	} `json:"error"`
}

// promptTokens counts what a message takes: its text and four for its frame.
func (m *wireMessage) promptTokens() int64 {
	n := 4 + tokens(string(m.Content)) + tokens(m.ToolCallID)
	for _, c := range m.ToolCalls {
		n += 4 + tokens(c.Function.Name) + tokens(c.Function.Arguments)
	}
	return n
}

// promptTokens counts the prompt, and how much of it the cache would hold: all
// up to the last reply that the model gave.
func (r *request) promptTokens() (total, cached int64) {
	for _, t := range r.Tools {
		total += 8 + tokens(t.Function.Name) + tokens(t.Function.Description) + tokens(string(t.Function.Parameters))
	}
	for i := range r.Messages {
		if r.Messages[i].Role == "assistant" {
			cached = total
		}
		total += r.Messages[i].promptTokens()
	}
	return total, cached
}

// toolTurns counts the replies that called tools.
func (r *request) toolTurns() int {
	n := 0
	for i := range r.Messages {
		if len(r.Messages[i].ToolCalls) > 0 {
			n++
		}
	}
	return n
}

func (r *request) offers(tool string) bool {
	for i := range r.Tools {
		if r.Tools[i].Function.Name == tool {
			return true
		}
	}
	return false
}

// maxTokens is the most that the reply may have, 0 for no bound.
func (r *request) maxTokens() int64 {
	for _, limit := range []*int64{r.MaxCompletionTokens, r.MaxTokens} {
		if limit != nil {
			return *limit
		}
	}
	return 0
}
