package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// encode appends the body of a chat completions request to b. It does so by
// hand: the messages of a long episode are encoded again with each call.
func (c *Client) encode(b []byte, req *model.Request) ([]byte, error) {
	b = slices.Grow(b, bodySize(req))
	b = append(b, `{"model":`...)
	b = appendString(b, c.model)
	b = append(b, `,"messages":[`...)
	replayed := c.dialect.replayedFrom(req.Messages)
	for i := range req.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMessage(b, &req.Messages[i])
		b = c.dialect.appendReasoning(b, &req.Messages[i], i >= replayed)
		b = append(b, '}')
	}
	b = append(b, ']')
	b = appendTools(b, req.Tools)
	b, err := appendSampling(b, req)
	if err != nil {
		return nil, err
	}
	b = append(b, c.extra...)
	return append(b, '}'), nil
}

// replayedFrom is the first message whose reasoning may go back.
func (d *dialect) replayedFrom(messages []dataset.Message) int {
	if d.replays == "" {
		return len(messages)
	}
	for i, m := range slices.Backward(messages) {
		if m.Role == dataset.User {
			return i
		}
	}
	return 0
}

// appendReasoning writes what goes back of a reply's reasoning. What came as
// details goes back as it came, and always: providers sign it.
func (d *dialect) appendReasoning(b []byte, m *dataset.Message, recent bool) []byte {
	switch {
	case d.details && m.ReasoningSignature != "" && json.Valid([]byte(m.ReasoningSignature)):
		b = append(b, `,"reasoning_details":`...)
		return append(b, m.ReasoningSignature...)
	case recent && m.Reasoning != "" && len(m.ToolCalls) > 0 && m.Role == dataset.Assistant:
		b = appendKey(b, d.replays)
		return appendString(b, m.Reasoning)
	}
	return b
}

// bodySize is about what the body takes, so that it is allocated once.
func bodySize(req *model.Request) int {
	n := 512
	for i := range req.Messages {
		m := &req.Messages[i]
		n += 64 + len(m.Content) + len(m.Content)/16 + len(m.Parts)
		if m.Role == dataset.Assistant {
			n += len(m.Reasoning) + len(m.ReasoningSignature)
		}
		for _, call := range m.ToolCalls {
			n += 96 + len(call.ID) + len(call.Name) + len(call.Arguments)*9/8
		}
	}
	for _, t := range req.Tools {
		n += 96 + len(t.Name) + len(t.Description)*9/8 + len(t.Parameters)
	}
	return n
}

// appendMessage writes one message but for its reasoning and its end.
func appendMessage(b []byte, m *dataset.Message) []byte {
	b = append(b, `{"role":`...)
	b = appendString(b, string(m.Role))
	b = append(b, `,"content":`...)
	switch {
	case len(m.Parts) > 0:
		b = append(b, m.Parts...)
	case m.Content == "" && len(m.ToolCalls) > 0:
		b = append(b, "null"...)
	default:
		b = appendString(b, m.Content)
	}
	if m.Role == dataset.ToolRole {
		b = append(b, `,"tool_call_id":`...)
		b = appendString(b, m.ToolCallID)
	}
	if len(m.ToolCalls) > 0 {
		b = appendToolCalls(b, m.ToolCalls)
	}
	return b
}

func appendToolCalls(b []byte, calls []dataset.ToolCall) []byte {
	b = append(b, `,"tool_calls":[`...)
	for i := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = appendString(b, calls[i].ID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, calls[i].Name)
		b = append(b, `,"arguments":`...)
		b = appendString(b, model.SentArguments(&calls[i]))
		b = append(b, '}', '}')
	}
	return append(b, ']')
}

func appendTools(b []byte, tools []model.ToolSpec) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = appendString(b, tools[i].Name)
		b = append(b, `,"description":`...)
		b = appendString(b, tools[i].Description)
		if len(tools[i].Parameters) > 0 {
			b = append(b, `,"parameters":`...)
			b = append(b, tools[i].Parameters...)
		}
		b = append(b, '}', '}')
	}
	return append(b, ']')
}

// maxCompletionTokens is the newer name of max_tokens. As true among the extra
// parameters it makes max_tokens go out under this name; as a number it is
// sent instead of it.
const maxCompletionTokens = "max_completion_tokens"

func appendSampling(b []byte, req *model.Request) ([]byte, error) {
	s := &req.Sampling
	for _, p := range []struct {
		name  string
		value *float64
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}} {
		if p.value == nil {
			continue
		}
		if math.IsNaN(*p.value) || math.IsInf(*p.value, 0) {
			return nil, fmt.Errorf("%s is %v", p.name, *p.value)
		}
		b = appendKey(b, p.name)
		b = strconv.AppendFloat(b, *p.value, 'g', -1, 64)
	}
	newer, renamed := s.Extra[maxCompletionTokens]
	if s.MaxTokens != nil && (!renamed || newer == true) {
		name := "max_tokens"
		if renamed {
			name = maxCompletionTokens
		}
		b = appendKey(b, name)
		b = strconv.AppendInt(b, int64(*s.MaxTokens), 10)
	}
	return appendExtra(b, req)
}

// appendExtra writes the other parameters in the order of their names, so
// that equal requests are equal bytes.
func appendExtra(b []byte, req *model.Request) ([]byte, error) {
	extra := req.Sampling.Extra
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		value := extra[name]
		switch {
		case name == maxCompletionTokens && value == true:
			continue
		case name == "seed" && value == "episode":
			value = episodeSeed(req.Episode)
		}
		if err := allowed(name, value); err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("extra parameter %s: %w", name, err)
		}
		b = appendKey(b, name)
		b = append(b, text...)
	}
	return b, nil
}

// episodeSeed is the episode's seed in the 31 bits that servers take.
func episodeSeed(ep *dataset.Episode) int64 {
	if ep == nil {
		return 0
	}
	return ep.Seed & math.MaxInt32
}

// allowed refuses the parameters that are not the caller's to set.
func allowed(name string, value any) error {
	switch name {
	case "model", "messages", "tools", "temperature", "top_p", "max_tokens": // those of madeHere that have no value to look at
		return fmt.Errorf("extra parameter %s: has a key of its own in the config", name)
	case "stream", "stream_options":
		if value != false {
			return fmt.Errorf("extra parameter %s: replies are not streamed", name)
		}
	case "n":
		if text, _ := json.Marshal(value); string(text) != "1" {
			return errors.New("extra parameter n: one reply a call; samples are episodes of their own")
		}
	}
	return nil
}

func appendKey(b []byte, name string) []byte {
	b = append(b, ',')
	b = appendString(b, name)
	return append(b, ':')
}
