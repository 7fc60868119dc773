package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/model/endpoint"
)

// Dialect is a server's own way of speaking chat completions.
type Dialect string

// The dialects. OpenAI is every server that has none of its own.
const (
	OpenAI     Dialect = "openai"
	VLLM       Dialect = "vllm"
	SGLang     Dialect = "sglang"
	LlamaCpp   Dialect = "llamacpp"
	OpenRouter Dialect = "openrouter"
)

// dialect is what a Dialect stands for.
type dialect struct {
	// replays is the member in which the reasoning goes back of replies that
	// called tools, as long as the user has not spoken again; "": it does not.
	// That is where models go on thinking after a result; elsewhere they were
	// trained without it, and DeepSeek refuses it.
	replays string
	details bool // reasoning_details go back as they came
	bills   bool // usage.cost is what the call cost
	efforts []string
	effort  func(effort string) map[string]any // the members that ask for an effort
}

func dialectOf(name Dialect, host string) (dialect, error) {
	hosted := []string{"none", "minimal", "low", "medium", "high", "xhigh"}
	served := []string{"none", "low", "medium", "high"}
	switch name {
	case OpenAI, "":
		d := dialect{efforts: hosted, effort: plainEffort}
		if host == "deepseek.com" || strings.HasSuffix(host, ".deepseek.com") {
			d.replays = "reasoning_content"
		}
		return d, nil
	case VLLM:
		return dialect{replays: "reasoning", efforts: served, effort: templateEffort}, nil
	case SGLang:
		return dialect{replays: "reasoning_content", efforts: served, effort: templateEffort}, nil
	case LlamaCpp:
		return dialect{replays: "reasoning_content", efforts: served, effort: llamaEffort}, nil
	case OpenRouter:
		return dialect{replays: "reasoning", details: true, bills: true, efforts: hosted, effort: routedEffort}, nil
	}
	return dialect{}, fmt.Errorf("unknown dialect %q", name)
}

func plainEffort(effort string) map[string]any { return map[string]any{"reasoning_effort": effort} }

func routedEffort(effort string) map[string]any {
	return map[string]any{"reasoning": map[string]any{"effort": effort}}
}

// templateEffort turns thinking on or off in the chat template, by both names
// that models have for it, and names the effort for those that grade it.
func templateEffort(effort string) map[string]any {
	thinks := effort != "none"
	members := map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": thinks, "thinking": thinks}}
	if thinks {
		members["reasoning_effort"] = effort
	}
	return members
}

// llamaEffort is for a server that knows the effort as a variable of the
// template only.
func llamaEffort(effort string) map[string]any {
	if effort == "none" {
		return map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false}}
	}
	return map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": true, "reasoning_effort": effort}}
}

// extra is the end of every request: the members that ask for an effort, and
// the user's own.
func (d *dialect) extra(effort string, own map[string]any) ([]byte, error) {
	members := map[string]any{}
	if effort != "" {
		if !slices.Contains(d.efforts, effort) {
			return nil, &endpoint.OptionError{Option: endpoint.OptionEffort, Err: fmt.Errorf("%q is none of %s", effort, strings.Join(d.efforts, ", "))}
		}
		members = d.effort(effort)
	}
	for name, value := range own {
		_, taken := members[name]
		if taken || slices.Contains(madeHere(), name) {
			return nil, &endpoint.OptionError{Option: endpoint.OptionExtra, Key: name, Err: fmt.Errorf("%s is sent by talaria itself", name)}
		}
		members[name] = value
	}
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		text, err := json.Marshal(members[name])
		if err != nil {
			return nil, &endpoint.OptionError{Option: endpoint.OptionExtra, Key: name, Err: err}
		}
		b = append(appendKey(b, name), text...)
	}
	return b, nil
}

// madeHere are the members of a request that have a source of their own.
func madeHere() []string {
	return []string{
		"model", "messages", "tools", "temperature", "top_p", "max_tokens", maxCompletionTokens, "n", "stream", "stream_options",
	}
}
