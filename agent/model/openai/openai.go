// Package openai talks to servers of the OpenAI chat completions dialect:
// OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, and gateways.
//
// [New] makes a [Client] for one model of one endpoint; clients of one
// endpoint share a transport made by [NewTransport]. A Client does one try per
// Generate: retries, limits and prices are wrappers of package model.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// Options of a Client. BaseURL and Model are required.
type Options struct {
	BaseURL string // as in "https://api.openai.com/v1", without /chat/completions
	Model   string
	APIKey  string // "": none is sent
	// Transport carries the requests; all clients of one endpoint share one.
	// Nil makes one with NewTransport(Ceiling, nil).
	Transport http.RoundTripper
	Ceiling   int // requests in flight that an own transport is made for; default 64
	// Silence ends a try when no byte has come for so long. Replies are not
	// streamed, so it bounds how long a model may think; default 10m.
	Silence time.Duration
	// MaxResponse bounds a response body in bytes; default 64 MiB, what an
	// episode may hold.
	MaxResponse int64
	UserAgent   string // default "talaria"
}

func (o *Options) applyDefaults() {
	o.Ceiling = cmp.Or(o.Ceiling, 64)
	o.Silence = cmp.Or(o.Silence, 10*time.Minute)
	o.MaxResponse = cmp.Or(o.MaxResponse, 64<<20)
	o.UserAgent = cmp.Or(o.UserAgent, "talaria")
}

// Client is a [model.Model]: one model of one endpoint.
type Client struct {
	url       *url.URL // of chat completions
	model     string
	key       string
	transport http.RoundTripper
	silence   time.Duration
	limit     int64
	agent     []string // header values, shared by all requests
	bearer    []string // nil without a key
	json      []string
	buffers   sync.Pool // of *[]byte: response bodies while they are decoded
}

var _ model.Model = (*Client)(nil)

// New checks the options; it opens no connection.
func New(o Options) (*Client, error) {
	o.applyDefaults()
	endpoint, err := endpointURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.Model == "" {
		return nil, errors.New("model name is empty")
	}
	if err := checkKey(o.APIKey, endpoint); err != nil {
		return nil, err
	}
	c := &Client{
		url: endpoint, model: o.Model, key: o.APIKey, transport: o.Transport,
		silence: o.Silence, limit: o.MaxResponse,
		agent: []string{o.UserAgent}, json: []string{"application/json"},
	}
	if c.transport == nil {
		c.transport = NewTransport(o.Ceiling, nil)
	}
	if o.APIKey != "" {
		c.bearer = []string{"Bearer " + o.APIKey}
	}
	return c, nil
}

// CloseIdleConnections closes what the client's transport keeps open for
// further calls.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

const completions = "/chat/completions"

func endpointURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("base_url is not a URL") // the error of url.Parse repeats it, with a password
	}
	switch {
	case u.User != nil:
		return nil, errors.New("base_url holds a user or password: give the key by api_key_env or api_key_file")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, fmt.Errorf("base_url %q: want http://host/path or https://host/path", base)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("base_url %q: want neither query nor fragment", base)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), completions):
		return nil, fmt.Errorf("base_url %q: leave out %s", base, completions)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("base_url %q: port %s is not between 1 and 65535", base, port)
		}
	}
	u.Path = strings.TrimRight(u.Path, "/") + completions
	u.RawPath = ""
	return u, nil
}

func checkKey(key string, endpoint *url.URL) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the API key for %s holds a space, a line break or another character that no key has", endpoint.Host)
	}
	return nil
}

// Generate does one try.
func (c *Client) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	body, err := c.encode(&req)
	if err != nil {
		return model.Response{}, &model.Error{Class: model.ClassFormat, Fatal: true, Err: err}
	}
	var resp model.Response
	failed := c.exchange(ctx, req.CallID, body, func(a answer) *model.Error {
		var failed *model.Error
		resp, failed = c.read(req.CallID, a)
		return failed
	})
	if failed == nil {
		return resp, nil
	}
	if failed.Sent && resp.Usage == nil {
		resp.Unreported = 1
	}
	return resp, failed
}

// read makes sense of a whole answer. With an error the response holds what
// the answer told nevertheless.
func (c *Client) read(callID string, a answer) (model.Response, *model.Error) {
	resp := model.Response{RequestID: requestID(a.header)}
	if a.status < 200 || a.status > 299 {
		r := readRefusal(a.body[:min(len(a.body), maxErrorBody)])
		if promptFiltered(a.status, r) {
			resp.Message = dataset.Message{Role: dataset.Assistant, FinishReason: model.FinishContentFilter}
			return resp, nil
		}
		return resp, c.httpError(a.status, a.header, r)
	}
	r, err := decode(a.body)
	if err != nil {
		return resp, c.badResponse(a, err)
	}
	resp.ModelServed, resp.Fingerprint, resp.Upstream = r.model, r.fingerprint, r.upstream
	resp.Usage = r.usage.tokens()
	if r.failure != nil && r.choices == 0 {
		return resp, c.failureInside(r.failure)
	}
	if brokenOff(r.finish) {
		err := fmt.Errorf("the server broke off with finish reason %q", c.short(r.finish))
		return resp, &model.Error{Class: model.ClassServer, Status: a.status, Retryable: true, Sent: true, Err: err}
	}
	resp.Message, err = r.policyMessage(callID)
	if err != nil {
		return resp, c.badResponse(a, err)
	}
	if resp.Usage == nil {
		resp.Unreported = 1 // paid for, and nobody can say how much
	}
	return resp, nil
}

// badResponse is a success that cannot be read: the model has replied, and may
// be paid for it.
func (c *Client) badResponse(a answer, err error) *model.Error {
	if strings.HasPrefix(strings.TrimSpace(string(a.body[:min(len(a.body), 64)])), "<") {
		err = fmt.Errorf("%s instead of JSON: does base_url point at the API?", c.short(pageText(string(a.body))))
	}
	return &model.Error{Class: model.ClassBadResponse, Status: a.status, Retryable: true, Sent: true, Err: fmt.Errorf("reading the reply: %w", err)}
}

// failureInside is an error that came with status 200, as gateways send it.
func (c *Client) failureInside(raw []byte) *model.Error {
	r, _ := readErrorMember(raw)
	status := http.StatusBadGateway
	for word := range strings.FieldsSeq(r.code) {
		if n, err := strconv.Atoi(word); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	e := classify(status, r)
	e.Err = errors.New(cmp.Or(c.short(r.message), "an error without a message"))
	return e
}

func requestID(h http.Header) string {
	return cmp.Or(h.Get("X-Request-Id"), h.Get("Request-Id"))
}
