package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// reply is a response body as it came, before it is made sense of.
type reply struct {
	model       string
	fingerprint string
	upstream    string
	choices     int
	message     *message // of the first choice
	finish      string
	usage       *usage
	failure     []byte // the body's error member, nil if it has none
}

type message struct {
	content   string
	parts     json.RawMessage
	refusal   string
	reasoning string
	details   json.RawMessage // reasoning_details
	calls     []dataset.ToolCall
}

// decode reads a response body. A body that is not wholly valid JSON, or has
// a member of a type that cannot be read, is an error, whatever it says.
func decode(body []byte) (reply, error) {
	var r reply
	c := &cursor{data: body}
	c.object(func(key []byte) {
		switch string(key) {
		case "model":
			r.model = optionalText(c)
		case "system_fingerprint":
			r.fingerprint = optionalText(c)
		case "provider":
			r.upstream = optionalText(c)
		case "choices":
			r.decodeChoices(c)
		case "usage":
			r.usage = decodeUsage(c)
		case "error":
			if raw := c.raw(); string(raw) != "null" {
				r.failure = raw
			}
		default:
			c.skip()
		}
	})
	c.end()
	return r, c.err
}

func (r *reply) decodeChoices(c *cursor) {
	if skipNull(c) {
		return
	}
	r.choices = 0
	c.array(func() {
		r.choices++
		if r.choices > 1 {
			c.skip()
			return
		}
		c.object(func(key []byte) {
			switch string(key) {
			case "message":
				r.message = decodeMessage(c)
			case "finish_reason":
				r.finish = scalarText(c)
			default:
				c.skip()
			}
		})
	})
}

func decodeMessage(c *cursor) *message {
	if skipNull(c) {
		return nil
	}
	m := new(message)
	c.object(func(key []byte) {
		switch string(key) {
		case "content":
			m.decodeContent(c)
		case "refusal":
			m.refusal = optionalText(c)
		case "reasoning_content", "reasoning":
			if text := optionalText(c); text != "" {
				m.reasoning = text
			}
		case "reasoning_details":
			if raw := c.raw(); c.err == nil && raw[0] == '[' && len(raw) > len("[]") {
				m.details = bytes.Clone(raw)
			}
		case "tool_calls":
			m.calls = decodeToolCalls(c)
		default:
			c.skip()
		}
	})
	return m
}

// decodeContent reads text, null, or a list of parts whose text is joined.
func (m *message) decodeContent(c *cursor) {
	switch c.peek() {
	case '"':
		m.content = c.text()
	case '[':
		m.parts = append(m.parts[:0], c.raw()...)
		if c.err == nil {
			m.content = partsText(m.parts)
		}
	default:
		c.null()
	}
}

func partsText(parts json.RawMessage) string {
	var list []struct {
		Text    string `json:"text"`
		Summary string `json:"summary"` // of reasoning that is not shown
	}
	if json.Unmarshal(parts, &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range list {
		b.WriteString(cmp.Or(p.Text, p.Summary))
	}
	return b.String()
}

func decodeToolCalls(c *cursor) []dataset.ToolCall {
	if skipNull(c) {
		return nil
	}
	var calls []dataset.ToolCall
	c.array(func() {
		var call dataset.ToolCall
		c.object(func(key []byte) {
			switch string(key) {
			case "id":
				call.ID = optionalText(c)
			case "function":
				decodeFunction(c, &call)
			default:
				c.skip()
			}
		})
		calls = append(calls, call)
	})
	return calls
}

// decodeFunction keeps the arguments as the text that was sampled; some
// servers send them as an object instead, whose text is kept.
func decodeFunction(c *cursor, call *dataset.ToolCall) {
	c.object(func(key []byte) {
		switch string(key) {
		case "name":
			call.Name = optionalText(c)
		case "arguments":
			if c.peek() == '"' {
				call.Arguments = c.text()
			} else if !skipNull(c) {
				call.Arguments = string(c.raw())
			}
		default:
			c.skip()
		}
	})
}

// count reads a token counter: a number, or null for not reported. Negative
// ones count as 0, and one that is no int64 as not reported.
func count(c *cursor) *int64 {
	if skipNull(c) {
		return nil
	}
	text := string(c.number())
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) >= math.MaxInt64 {
			return nil
		}
		n = int64(f)
	}
	n = max(n, 0)
	return &n
}

func skipNull(c *cursor) bool {
	if c.peek() != 'n' {
		return false
	}
	c.null()
	return true
}

// null consumes null, or fails.
func (c *cursor) null() {
	if c.peek() != 'n' {
		c.fail("null")
		return
	}
	c.literal("null")
}

// optionalText reads a string; a value of another type reads as "".
func optionalText(c *cursor) string {
	if c.peek() == '"' {
		return c.text()
	}
	c.skip()
	return ""
}

// scalarText reads a string, or another scalar as its text; null is "".
func scalarText(c *cursor) string {
	if c.peek() == '"' {
		return c.text()
	}
	if skipNull(c) {
		return ""
	}
	return string(c.raw())
}

// finishReason normalises the finish reasons of the servers that speak this
// dialect. An unknown one is what the message looks like.
func finishReason(reason string, calls int) string {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return model.FinishLength
	case "content_filter", "safety", "refusal", "recitation", "prohibited_content", "blocklist":
		return model.FinishContentFilter
	}
	if calls > 0 {
		return model.FinishToolCalls
	}
	return model.FinishStop
}

// brokenOff tells whether a finish reason says that the server gave up.
func brokenOff(reason string) bool {
	switch strings.ToLower(reason) {
	case "error", "abort", "insufficient_system_resource":
		return true
	}
	return false
}

// policyMessage makes the reply's message. A call without an id gets one that
// is a function of callID and its place, so that its result can name it.
func (r *reply) policyMessage(callID string) (dataset.Message, error) {
	if r.choices == 0 {
		return dataset.Message{}, errors.New("no choices")
	}
	if r.message == nil {
		return dataset.Message{}, errors.New("a choice without message")
	}
	m := r.message
	if m.reasoning == "" {
		m.reasoning = partsText(m.details)
	}
	for i := range m.calls {
		if m.calls[i].ID == "" {
			m.calls[i].ID = "call_" + dataset.ID("call", callID, strconv.Itoa(i))[:24]
		}
	}
	msg := dataset.Message{
		Role: dataset.Assistant, Content: m.content, Parts: m.parts, Reasoning: m.reasoning, ReasoningSignature: string(m.details),
		ToolCalls: m.calls, FinishReason: finishReason(r.finish, len(m.calls)),
	}
	if m.refusal != "" && m.content == "" {
		msg.Content, msg.FinishReason = m.refusal, model.FinishContentFilter
	}
	return msg, nil
}
