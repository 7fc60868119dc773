// Package ollama talks to an Ollama server through its own /api/chat. Its
// OpenAI-compatible path cuts prompts that do not fit without a word, and does
// not take the size of the context. Here a prompt that does not fit is an
// error of class context_overflow, and a reply that does not is cut.
//
// A [Client] does one try per Generate: retries, limits and prices are wrappers
// of package model.
package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/dataset"
)

// Options of a Client. BaseURL and Model are required; BaseURL may end in /v1
// or /api.
type Options struct {
	endpoint.Options
	Model string
	// Effort is how much the model is to think: none, low, medium or high; ""
	// leaves it to the server.
	Effort string
	// Extra are further members of each request's body, such as keep_alive. One
	// that the client sends itself is an error.
	Extra map[string]any
}

// Client is a [model.Model]: one model of one server.
type Client struct {
	at    *endpoint.Endpoint
	url   *url.URL
	model string
	extra map[string]any // think among them
}

var _ model.Model = (*Client)(nil)

// New checks the options; it opens no connection.
func New(o Options) (*Client, error) {
	if o.Model == "" {
		return nil, errors.New("model name is empty")
	}
	at, err := endpoint.New(o.Options)
	if err != nil {
		return nil, err
	}
	extra, err := extraMembers(o.Effort, o.Extra)
	if err != nil {
		return nil, err
	}
	return &Client{at: at, url: at.At("/api/chat", "/v1", "/api"), model: o.Model, extra: extra}, nil
}

func extraMembers(effort string, own map[string]any) (map[string]any, error) {
	members := map[string]any{}
	switch effort {
	case "":
	case "none":
		members["think"] = false
	case "low", "medium", "high":
		members["think"] = effort
	default:
		return nil, &endpoint.OptionError{Option: endpoint.OptionEffort, Err: fmt.Errorf("%q is none of none, low, medium, high", effort)}
	}
	for name, value := range own {
		_, taken := members[name]
		if taken || slices.Contains([]string{"model", "messages", "tools", "options", "stream", "truncate", "shift"}, name) {
			return nil, &endpoint.OptionError{Option: endpoint.OptionExtra, Key: name, Err: fmt.Errorf("%s is sent by talaria itself", name)}
		}
		members[name] = value
	}
	return members, nil
}

// CloseIdleConnections closes what the client's transport keeps open for
// further calls.
func (c *Client) CloseIdleConnections() { c.at.CloseIdleConnections() }

// Generate does one try.
func (c *Client) Generate(ctx context.Context, req model.Request) (resp model.Response, err error) {
	failed := c.at.Post(ctx, c.url, req.CallID,
		func(b []byte) ([]byte, error) { return c.encode(b, &req) },
		func(a endpoint.Answer) *model.Error { return c.read(&req, a, &resp) })
	if failed == nil {
		return resp, nil
	}
	if failed.Sent && resp.Usage == nil {
		resp.Unreported = 1
	}
	return resp, failed
}

// read makes sense of a whole answer. With an error resp holds what the answer
// told nevertheless.
func (c *Client) read(req *model.Request, a endpoint.Answer, resp *model.Response) *model.Error {
	resp.RequestID = a.RequestID()
	if !a.OK() {
		failed, filtered := c.at.Refused(a)
		if filtered {
			resp.Message = dataset.Message{Role: dataset.Assistant, FinishReason: model.FinishContentFilter}
		}
		return failed
	}
	var r reply
	if err := json.Unmarshal(a.Body, &r); err != nil {
		return c.at.Unreadable(a, err)
	}
	resp.ModelServed, resp.Usage = r.Model, r.usage()
	switch {
	case len(r.Error) > 0:
		return c.at.Inside(r.Error)
	case !r.Done:
		return c.at.Unreadable(a, errors.New("the reply is not done"))
	case r.DoneReason == "load" || r.DoneReason == "unload":
		return c.at.BrokeOff(a, r.DoneReason)
	case r.Message == nil:
		return c.at.Unreadable(a, errors.New("no message"))
	}
	if err := r.truncated(req); err != nil {
		return &model.Error{Class: model.ClassContextOverflow, Status: a.Status, Sent: true, Err: err}
	}
	resp.Message = r.policyMessage(req.CallID)
	if resp.Usage == nil {
		resp.Unreported = 1 // it ran, and nobody can say how much
	}
	return nil
}

// truncated is for servers that do not know the member truncate and cut a
// prompt without a word: one that fills the context leaves no room for a reply,
// so it was cut.
func (r *reply) truncated(req *model.Request) error {
	size := contextSize(req.Sampling)
	if size == 0 || r.PromptTokens == nil || *r.PromptTokens < size {
		return nil
	}
	return fmt.Errorf("the prompt fills the context of %d tokens and was cut by the server: raise agent.sampling.num_ctx", size)
}

// contextSize is num_ctx, 0 where it is the server's own.
func contextSize(s dataset.Sampling) int64 {
	switch n := s.Extra["num_ctx"].(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	case json.Number:
		size, _ := n.Int64() // 0 if it is none
		return size
	}
	return 0
}

func finishReason(done string, calls int) string {
	switch {
	case strings.EqualFold(done, "length"):
		return model.FinishLength
	case calls > 0:
		return model.FinishToolCalls
	}
	return model.FinishStop
}
