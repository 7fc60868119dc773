package ollama

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// message is a message of a request or of a reply.
type message struct {
	Role      string   `json:"role"`
	Content   string   `json:"content"`
	Images    []string `json:"images,omitempty"` // base64
	Thinking  string   `json:"thinking,omitempty"`
	ToolCalls []call   `json:"tool_calls,omitempty"`
	ToolName  string   `json:"tool_name,omitempty"`
	CallID    string   `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string   `json:"id,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type reply struct {
	Model        string          `json:"model"`
	Message      *message        `json:"message"`
	Done         bool            `json:"done"`
	DoneReason   string          `json:"done_reason"`
	PromptTokens *int64          `json:"prompt_eval_count"`
	OutputTokens *int64          `json:"eval_count"`
	Error        json.RawMessage `json:"error"`
}

// usage is nil unless the reply has been made to its end. The server leaves a
// count of 0 out.
func (r *reply) usage() *dataset.Usage {
	if r.PromptTokens == nil && r.OutputTokens == nil {
		return nil
	}
	count := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return max(*n, 0)
	}
	return &dataset.Usage{Input: count(r.PromptTokens), Output: count(r.OutputTokens)}
}

// policyMessage makes the reply's message. Calls without ids get ones that are
// functions of callID and their place.
func (r *reply) policyMessage(callID string) dataset.Message {
	m := dataset.Message{
		Role: dataset.Assistant, Content: r.Message.Content, Reasoning: r.Message.Thinking,
		FinishReason: finishReason(r.DoneReason, len(r.Message.ToolCalls)),
	}
	for i, c := range r.Message.ToolCalls {
		id := c.ID
		if id == "" {
			id = "call_" + dataset.ID("call", callID, strconv.Itoa(i))[:24]
		}
		m.ToolCalls = append(m.ToolCalls, dataset.ToolCall{ID: id, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
	}
	return m
}

// encode appends the body of a request to b. Equal requests are equal bytes: the
// encoder sorts the names.
func (c *Client) encode(b []byte, req *model.Request) ([]byte, error) {
	body := maps.Clone(c.extra)
	body["model"], body["stream"] = c.model, false
	body["truncate"], body["shift"] = false, false // an error in place of a prompt that was cut, an end in place of one that moves
	messages := make([]message, len(req.Messages))
	for i := range req.Messages {
		var err error
		if messages[i], err = sent(&req.Messages[i]); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	body["messages"] = messages
	if len(req.Tools) > 0 {
		body["tools"] = tools(req.Tools)
	}
	options, err := options(req)
	if err != nil {
		return nil, err
	}
	if len(options) > 0 {
		body["options"] = options
	}
	text, err := json.Marshal(body)
	return append(b, text...), err
}

func tools(specs []model.ToolSpec) []any {
	list := make([]any, len(specs))
	for i, s := range specs {
		f := map[string]any{"name": s.Name, "description": s.Description}
		if len(s.Parameters) > 0 {
			f["parameters"] = s.Parameters
		}
		list[i] = map[string]any{"type": "function", "function": f}
	}
	return list
}

// options are the sampling under the names of this server.
func options(req *model.Request) (map[string]any, error) {
	s := &req.Sampling
	options := map[string]any{}
	for name, value := range s.Extra {
		switch {
		case name == "seed" && value == "episode":
			value = episodeSeed(req.Episode)
		case name == "max_completion_tokens" && value == true:
			continue
		case name == "max_completion_tokens":
			name = "num_predict"
		}
		options[name] = value
	}
	for name, value := range map[string]*float64{"temperature": s.Temperature, "top_p": s.TopP} {
		if value == nil {
			continue
		}
		if math.IsNaN(*value) || math.IsInf(*value, 0) {
			return nil, fmt.Errorf("%s is %v", name, *value)
		}
		options[name] = *value
	}
	if _, own := options["num_predict"]; s.MaxTokens != nil && !own {
		options["num_predict"] = *s.MaxTokens
	}
	return options, nil
}

func episodeSeed(ep *dataset.Episode) int64 {
	if ep == nil {
		return 0
	}
	return ep.Seed & math.MaxInt32
}

// sent is a message as the server takes it. Thinking goes back with calls,
// where the model goes on thinking after the results.
func sent(m *dataset.Message) (message, error) {
	out := message{Role: string(m.Role), Content: m.Content, ToolName: m.ToolName, CallID: m.ToolCallID}
	if len(m.Parts) > 0 {
		if err := out.takeParts(m.Parts); err != nil {
			return out, err
		}
	}
	if len(m.ToolCalls) > 0 {
		out.Thinking = m.Reasoning
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		out.ToolCalls = append(out.ToolCalls, call{ID: c.ID, Function: function{Name: c.Name, Arguments: object(model.SentArguments(c))}})
	}
	return out, nil
}

// object is arguments as the server takes them: an object. What is none is
// sent as its only member.
func object(arguments string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) == nil && members != nil {
		return json.RawMessage(arguments)
	}
	wrapped, _ := json.Marshal(map[string]json.RawMessage{"arguments": json.RawMessage(arguments)}) // it is JSON
	return wrapped
}
