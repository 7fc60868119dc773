package lab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// chatProtocol is OpenAI's chat completions.
func chatProtocol() protocol {
	return protocol{read: readChat, write: (*Script).chatBody, refuse: openAIError}
}

func readChat(body []byte) (*request, error) {
	req := new(request)
	return req, json.Unmarshal(body, req)
}

func openAIError(code, message string) any {
	var body wireError
	body.Error.Message, body.Error.Type, body.Error.Code = message, "lab_error", code
	return body
}

// chatBody gives the answer the ways of the server.
func (s *Script) chatBody(c completion) any {
	c.Choices = slices.Clone(c.Choices)
	for i := range c.Choices {
		m := &c.Choices[i].Message
		switch s.Server {
		case ServerVLLM:
			m.Reasoning, m.ReasoningContent = m.ReasoningContent, ""
		case ServerOpenRouter:
			m.Reasoning, m.ReasoningContent = m.ReasoningContent, ""
			if m.Reasoning != "" {
				m.ReasoningDetails = []detail{{Type: "reasoning.text", Text: m.Reasoning, Signature: "sig-" + c.ID}}
			}
		}
	}
	if s.Server == ServerOpenRouter {
		c.Provider = "lab-upstream"
		if c.Usage != nil {
			usage := *c.Usage
			usage.Cost = dollars(usage.nanoUSD())
			c.Usage = &usage
		}
	}
	return c
}

// nanoUSD is what a server that names the cost charges: $0.30 and $1.50 per
// million tokens.
func (u *Usage) nanoUSD() int64 { return u.PromptTokens*300 + u.CompletionTokens*1500 }

// dollars is an amount in all its digits.
func dollars(nanoUSD int64) json.Number {
	return json.Number(fmt.Sprintf("%d.%09d", nanoUSD/1e9, nanoUSD%1e9))
}

// breakArguments cuts the end off the arguments of each call.
func (c *completion) breakArguments() {
	calls := c.Choices[0].Message.ToolCalls
	for i := range calls {
		if text := &calls[i].Function.Arguments; len(*text) > 0 {
			*text = (*text)[:len(*text)-1]
		}
	}
}

// checkTools refuses tools as servers do that were started without what they
// need. Others answer, and call none.
func (s *Server) checkTools(req *request) (status int, code, message string) {
	if !s.script.NoTools || len(req.Tools) == 0 {
		return 0, "", ""
	}
	switch s.script.Server {
	case ServerVLLM:
		return http.StatusBadRequest, "BadRequestError",
			`"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`
	case ServerLlamaCpp:
		return http.StatusInternalServerError, "server_error", "tools param requires --jinja flag"
	case ServerOllama:
		return http.StatusBadRequest, "invalid_request_error", req.Model + " does not support tools"
	}
	req.Tools = nil
	return 0, "", ""
}

// checkLength refuses a prompt that is too long, or cuts it where the protocol
// has it so.
func (s *Server) checkLength(req *request) (status int, code, message string) {
	limit := req.context
	if limit == 0 {
		limit = s.script.ContextTokens
	}
	total, _ := req.promptTokens()
	switch {
	case limit == 0 || total <= limit:
		return 0, "", ""
	case req.cuts:
		req.context = limit
		return 0, "", ""
	}
	return http.StatusBadRequest, "context_length_exceeded",
		"the prompt of " + strconv.FormatInt(total, 10) + " tokens exceeds the context length of " + strconv.FormatInt(limit, 10)
}

// textProtocol is OpenAI's completions: a text goes on.
func textProtocol() protocol {
	return protocol{read: readText, write: (*Script).textBody, refuse: openAIError}
}

// readText reads the prompt as the one message of a chat.
func readText(body []byte) (*request, error) {
	in := struct {
		*request
		Prompt json.RawMessage `json:"prompt"`
	}{request: new(request)}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	in.Messages, in.Tools = nil, nil
	if len(in.Prompt) > 0 {
		in.Messages = []wireMessage{{Role: "user", Content: in.Prompt}}
	}
	return in.request, nil
}

type textChoice struct {
	Index        int    `json:"index"`
	Text         string `json:"text"`
	FinishReason string `json:"finish_reason"`
}

func (s *Script) textBody(c completion) any {
	choices := make([]textChoice, len(c.Choices))
	for i, each := range c.Choices {
		choices[i] = textChoice{Index: i, Text: *each.Message.Content, FinishReason: each.FinishReason}
	}
	c.Object = "text_completion"
	return struct {
		completion
		Choices []textChoice `json:"choices"`
	}{c, choices}
}
