package lab

import (
	"strconv"
	"strings"
)

// answer makes the reply to a request: a function of the script, the request,
// its call id and how often that was seen.
func (s *Script) answer(req *request, callID string, seen int) completion {
	r := s.draws("answer", callID, seen)
	turn := req.toolTurns()
	out := wireReply{Role: "assistant", ReasoningContent: prose(r, s.ReasoningBytes)}
	text, finish := prose(r, s.ReplyBytes), "stop"
	switch {
	case turn < s.Turns && req.offers(s.Tool.Name):
		finish = "tool_calls"
		out.ToolCalls = []wireCall{{
			ID: "call_" + strconv.FormatUint(r.Uint64(), 36), Type: "function",
			Function: wireFunction{Name: s.Tool.Name, Arguments: fill(s.Tool.Arguments, r, turn, len(req.Messages))},
		}}
	case s.Answer != "":
		text = fill(s.Answer, r, turn, len(req.Messages))
	}
	out.Content = &text
	usage := s.usage(req, &out)
	if limit := req.maxTokens(); limit > 0 && usage.CompletionTokens > limit {
		finish = cutTo(&out, limit)
		usage = s.usage(req, &out)
	}
	return completion{
		ID: "chatcmpl-" + strconv.FormatUint(r.Uint64(), 36), Object: "chat.completion",
		Model: req.Model, SystemFingerprint: "lab-" + strconv.FormatInt(s.Seed, 10), Usage: &usage,
		Choices: []choice{{Message: out, FinishReason: finish}},
	}
}

// cutTo cuts the reply to limit tokens, as a server does at max_tokens.
func cutTo(out *wireReply, limit int64) (finish string) {
	out.ToolCalls = nil
	out.ReasoningContent = cutText(out.ReasoningContent, limit)
	text := cutText(*out.Content, limit-tokens(out.ReasoningContent))
	out.Content = &text
	return "length"
}

func cutText(text string, limit int64) string {
	return strings.ToValidUTF8(text[:min(int64(len(text)), max(limit, 0)*4)], "")
}

func (s *Script) usage(req *request, out *wireReply) Usage {
	reasoning := tokens(out.ReasoningContent)
	completion := reasoning + tokens(*out.Content)
	for _, c := range out.ToolCalls {
		completion += tokens(c.Function.Name) + tokens(c.Function.Arguments)
	}
	prompt, cached := req.promptTokens()
	if req.cuts && req.context > 0 {
		prompt, cached = min(prompt, req.context), min(cached, req.context)
	}
	return Usage{
		PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion,
		PromptTokensDetails:     PromptDetails{CachedTokens: cached},
		CompletionTokensDetails: CompletionDetails{ReasoningTokens: reasoning},
	}
}
