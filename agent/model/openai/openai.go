// Package openai talks to servers that speak OpenAI's chat completions: OpenAI
// itself, vLLM, SGLang, llama.cpp, OpenRouter, and others. Where they differ, a
// [Dialect] tells how.
//
// [New] makes a [Client] for one model of one endpoint; clients of one
// endpoint share a transport made by [endpoint.NewTransport]. A Client does one try per
// Generate: retries, limits and prices are wrappers of package model.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/dataset"
)

// Options of a Client. BaseURL and Model are required.
type Options struct {
	endpoint.Options
	Model   string
	Dialect Dialect // default OpenAI
	// Effort is how much the model is to reason, in the dialect's own way; ""
	// leaves it to the server. See [Efforts].
	Effort string
	// Extra are further members of each request's body. One that the client
	// sends itself is an error.
	Extra map[string]any
}

// Client is a [model.Model]: one model of one endpoint.
type Client struct {
	at      *endpoint.Endpoint
	url     *url.URL // of chat completions
	model   string
	dialect dialect
	extra   []byte // ends every request: ,"key":value for each member
}

var _ model.Model = (*Client)(nil)

// New checks the options; it opens no connection.
func New(o Options) (*Client, error) {
	if strings.HasSuffix(strings.TrimRight(o.BaseURL, "/"), completions) {
		return nil, fmt.Errorf("base_url %q: leave out %s", o.BaseURL, completions)
	}
	if o.Model == "" {
		return nil, errors.New("model name is empty")
	}
	at, err := endpoint.New(o.Options)
	if err != nil {
		return nil, err
	}
	c := &Client{at: at, url: at.At(completions), model: o.Model}
	if c.dialect, err = dialectOf(o.Dialect, c.url.Hostname()); err != nil {
		return nil, err
	}
	if c.extra, err = c.dialect.extra(o.Effort, o.Extra); err != nil {
		return nil, err
	}
	return c, nil
}

// CloseIdleConnections closes what the client's transport keeps open for
// further calls.
func (c *Client) CloseIdleConnections() { c.at.CloseIdleConnections() }

const completions = "/chat/completions"

// Generate does one try.
func (c *Client) Generate(ctx context.Context, req model.Request) (resp model.Response, err error) {
	failed := c.at.Post(ctx, c.url, req.CallID,
		func(b []byte) ([]byte, error) { return c.encode(b, &req) },
		func(a endpoint.Answer) *model.Error { return c.read(req.CallID, a, &resp) })
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
func (c *Client) read(callID string, a endpoint.Answer, resp *model.Response) *model.Error {
	resp.RequestID = a.RequestID()
	if !a.OK() {
		failed, filtered := c.at.Refused(a)
		if filtered {
			resp.Message = dataset.Message{Role: dataset.Assistant, FinishReason: model.FinishContentFilter}
		}
		return failed
	}
	r, err := decode(a.Body)
	if err != nil {
		return c.at.Unreadable(a, err)
	}
	resp.ModelServed, resp.Fingerprint, resp.Upstream = r.model, r.fingerprint, r.upstream
	resp.Usage = r.usage.tokens()
	if cost := r.usage.nanoUSD(); cost != nil && c.dialect.bills {
		resp.CostNanoUSD, resp.PriceVersion = cost, model.PriceReported
	}
	switch {
	case r.failure != nil && r.choices == 0:
		return c.at.Inside(r.failure)
	case brokenOff(r.finish):
		return c.at.BrokeOff(a, r.finish)
	}
	resp.Message, err = r.policyMessage(callID)
	if err != nil {
		return c.at.Unreadable(a, err)
	}
	if resp.Usage == nil {
		resp.Unreported = 1 // paid for, and nobody can say how much
	}
	return nil
}
