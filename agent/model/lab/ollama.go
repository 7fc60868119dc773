package lab

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ollamaProtocol is Ollama's own.
func ollamaProtocol() protocol {
	return protocol{
		read: readOllama, write: (*Script).ollamaBody,
		refuse: func(_, message string) any { return map[string]string{"error": message} },
	}
}

type ollamaRequest struct {
	Model    string          `json:"model"`
	Messages []ollamaMessage `json:"messages"`
	Tools    []wireTool      `json:"tools"`
	Stream   *bool           `json:"stream"`
	Truncate *bool           `json:"truncate"`
	Options  struct {
		NumPredict *int64 `json:"num_predict"`
		NumCtx     int64  `json:"num_ctx"`
	} `json:"options"`
}

type ollamaMessage struct {
	Role       string       `json:"role"`
	Content    string       `json:"content"`
	Thinking   string       `json:"thinking,omitempty"`
	ToolCalls  []ollamaCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// readOllama makes a chat of the request: replies are streamed unless it says
// otherwise, and long prompts cut. Calls and results without ids belong
// together in their order.
func readOllama(body []byte) (*request, error) {
	var in ollamaRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	req := &request{
		Model: in.Model, Tools: in.Tools, MaxTokens: in.Options.NumPredict,
		Stream: in.Stream == nil || *in.Stream, context: in.Options.NumCtx, cuts: in.Truncate == nil || *in.Truncate,
	}
	called, answered := 0, 0
	for _, m := range in.Messages {
		out := wireMessage{Role: m.Role, Content: encode(m.Content), ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			called++
			out.ToolCalls = append(out.ToolCalls, wireCall{
				ID: numbered(c.ID, called), Function: wireFunction{Name: c.Function.Name, Arguments: string(c.Function.Arguments)},
			})
		}
		if m.Role == "tool" {
			answered++
			out.ToolCallID = numbered(m.ToolCallID, answered)
		}
		req.Messages = append(req.Messages, out)
	}
	return req, nil
}

func numbered(id string, n int) string {
	if id != "" {
		return id
	}
	return "#" + strconv.Itoa(n)
}

type ollamaReply struct {
	Model        string         `json:"model"`
	CreatedAt    time.Time      `json:"created_at"`
	Message      *ollamaMessage `json:"message,omitempty"`
	Done         bool           `json:"done"`
	DoneReason   string         `json:"done_reason"`
	PromptTokens int64          `json:"prompt_eval_count,omitempty"`
	OutputTokens int64          `json:"eval_count,omitempty"`
}

// ollamaBody is an answer that was made whole. Arguments that are not JSON are
// a text there: the protocol has no other place for them.
func (s *Script) ollamaBody(c completion) any {
	out := ollamaReply{Model: c.Model, CreatedAt: time.Unix(c.Created, 0).UTC(), Done: true, DoneReason: "stop"}
	if c.Usage != nil {
		out.PromptTokens, out.OutputTokens = c.Usage.PromptTokens, c.Usage.CompletionTokens
	}
	if len(c.Choices) == 0 {
		return out
	}
	if c.Choices[0].FinishReason == "length" {
		out.DoneReason = "length"
	}
	m := c.Choices[0].Message
	out.Message = &ollamaMessage{Role: m.Role, Content: *m.Content, Thinking: m.ReasoningContent}
	for _, call := range m.ToolCalls {
		made := ollamaCall{ID: call.ID}
		made.Function.Name, made.Function.Arguments = call.Function.Name, json.RawMessage(call.Function.Arguments)
		if !json.Valid(made.Function.Arguments) {
			made.Function.Arguments = encode(call.Function.Arguments)
		}
		out.Message.ToolCalls = append(out.Message.ToolCalls, made)
	}
	return out
}

func (s *Server) serveTags(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		Name  string `json:"name"`
		Model string `json:"model"`
	}
	list := struct {
		Models []entry `json:"models"`
	}{[]entry{}}
	for _, name := range s.script.Models {
		list.Models = append(list.Models, entry{name, name})
	}
	writeJSON(w, list)
}
