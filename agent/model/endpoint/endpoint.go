// Package endpoint is what all providers over HTTP share: one endpoint with its
// tuned connections, one exchange at a time that tells whether the request had
// left, and what an HTTP error means.
//
// An [Endpoint] does one try per Post: retries, limits and prices are wrappers
// of package model.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/agent/model"
)

// Options of an Endpoint. BaseURL is required.
type Options struct {
	BaseURL string // as in "https://api.openai.com/v1", without the path of a call
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

// Endpoint is a server and how it is reached. It is safe for concurrent use.
type Endpoint struct {
	base      *url.URL
	key       string
	transport http.RoundTripper
	silence   time.Duration
	limit     int64
	agent     []string // header values, shared by all requests
	bearer    []string // nil without a key
	json      []string
	buffers   sync.Pool // of *[]byte: requests until they have left, responses while they are decoded
}

// New checks the options; it opens no connection.
func New(o Options) (*Endpoint, error) {
	o.applyDefaults()
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := checkKey(o.APIKey, base); err != nil {
		return nil, err
	}
	e := &Endpoint{
		base: base, key: o.APIKey, transport: o.Transport, silence: o.Silence, limit: o.MaxResponse,
		agent: []string{o.UserAgent}, json: []string{"application/json"},
	}
	if e.transport == nil {
		e.transport = NewTransport(o.Ceiling, nil)
	}
	if o.APIKey != "" {
		e.bearer = []string{"Bearer " + o.APIKey}
	}
	return e, nil
}

// CloseIdleConnections closes what the endpoint's transport keeps open for
// further calls.
func (e *Endpoint) CloseIdleConnections() {
	if t, ok := e.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func parseBase(base string) (*url.URL, error) {
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
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("base_url %q: port %s is not between 1 and 65535", base, port)
		}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

func checkKey(key string, base *url.URL) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the API key for %s holds a space, a line break or another character that no key has", base.Host)
	}
	return nil
}

// At is the address of a path beneath the base URL. One of the suffixes that
// the base URL ends in is left out first.
func (e *Endpoint) At(path string, without ...string) *url.URL {
	u := *e.base
	for _, suffix := range without {
		if rest, found := strings.CutSuffix(u.Path, suffix); found {
			u.Path = rest
			break
		}
	}
	u.Path += path
	return &u
}

// Answer is an HTTP response, read whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// OK tells whether the status is a success.
func (a Answer) OK() bool { return a.Status >= 200 && a.Status <= 299 }

// RequestID is the server's name of the request, "" if it gave none.
func (a Answer) RequestID() string {
	return cmp.Or(a.Header.Get("X-Request-Id"), a.Header.Get("Request-Id"))
}

// errSilent is the cause with which a try ends when nothing comes.
var errSilent = errors.New("the server is silent")

// Encoder appends the body of a request to b. It is called again when the
// request has to be sent anew, and then gives the same.
type Encoder func(b []byte) ([]byte, error)

// Post sends a body to one of the endpoint's addresses and calls read with the
// whole answer, whose body is valid until read returns. Without an answer, the
// error tells why and whether the request had left. It is nil only if read
// returned nil.
func (e *Endpoint) Post(ctx context.Context, at *url.URL, callID string, encode Encoder, read func(Answer) *model.Error) *model.Error {
	body := &outgoing{encode: encode}
	if err := body.fill(e.buffer()); err != nil {
		return &model.Error{Class: model.ClassFormat, Fatal: true, Err: err}
	}
	return e.exchange(ctx, body, func(ctx context.Context) *http.Request {
		return e.newRequest(ctx, at, callID, body)
	}, read)
}

// outgoing is the body of a request. The zero value is none.
type outgoing struct {
	encode Encoder
	size   int
	// buffer is the endpoint's again once the connection has taken the body: a
	// reply may take minutes to come.
	buffer atomic.Pointer[[]byte]
	sent   atomic.Bool // the connection has taken all of it: the server may act on it
}

func (o *outgoing) fill(buffer *[]byte) (err error) {
	*buffer, err = o.encode(*buffer)
	o.size = len(*buffer)
	o.buffer.Store(buffer)
	return err
}

func (o *outgoing) reader() io.ReadCloser {
	return io.NopCloser(bytes.NewReader(*o.buffer.Load()))
}

// again is the body for another connection. The transport begins anew when it
// found a kept connection dead before it wrote a byte, or an HTTP/2 server did
// not take the request.
func (o *outgoing) again() (io.ReadCloser, error) {
	o.sent.Store(false)
	b, err := o.encode(nil)
	return io.NopCloser(bytes.NewReader(b)), err
}

// Get reads one of the endpoint's addresses, as Post does.
func (e *Endpoint) Get(ctx context.Context, at *url.URL, read func(Answer) *model.Error) *model.Error {
	return e.exchange(ctx, new(outgoing), func(ctx context.Context) *http.Request {
		req := &http.Request{
			Method: http.MethodGet, URL: at, Host: at.Host, Header: e.header(""),
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		}
		return req.WithContext(ctx)
	}, read)
}

func (e *Endpoint) exchange(
	ctx context.Context, body *outgoing, request func(context.Context) *http.Request, read func(Answer) *model.Error,
) *model.Error {
	tryCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(e.silence, func() { cancel(errSilent) })
	defer silence.Stop()

	traced := httptrace.WithClientTrace(tryCtx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			body.sent.Store(w.Err == nil)
			if w.Err == nil {
				e.release(body.buffer.Swap(nil))
			}
		},
	})
	resp, err := e.transport.RoundTrip(request(traced))
	if err != nil {
		return e.lost(ctx, tryCtx, err, body.sent.Load())
	}
	defer resp.Body.Close()
	buf := e.buffer()
	defer e.release(buf)
	*buf, err = readAll(resp.Body, *buf, e.limit, func() { silence.Reset(e.silence) })
	switch {
	case err == nil:
		return read(Answer{resp.StatusCode, resp.Header, *buf})
	case resp.StatusCode < 200 || resp.StatusCode > 299: // the status alone says that it is refused
		return read(Answer{resp.StatusCode, resp.Header, nil})
	default:
		return e.lost(ctx, tryCtx, err, true)
	}
}

// newRequest builds the request by hand: http.NewRequest parses the address
// each time. Its body is one of those that the transport knows to be in memory,
// or it would send the headers ahead of it.
func (e *Endpoint) newRequest(ctx context.Context, at *url.URL, callID string, body *outgoing) *http.Request {
	header := e.header(callID)
	header["Content-Type"] = e.json
	req := &http.Request{
		Method: http.MethodPost, URL: at, Host: at.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: body.reader(), ContentLength: int64(body.size), GetBody: body.again,
	}
	return req.WithContext(ctx)
}

func (e *Endpoint) header(callID string) http.Header {
	header := http.Header{"Accept": e.json, "User-Agent": e.agent}
	if e.bearer != nil {
		header["Authorization"] = e.bearer
	}
	if callID != "" {
		header["X-Client-Request-Id"] = []string{callID}
	}
	return header
}

// maxKept is the largest buffer that is kept for the next request or response.
const maxKept = 1 << 20

func (e *Endpoint) buffer() *[]byte {
	if b, ok := e.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, 8<<10)
	return &b
}

func (e *Endpoint) release(b *[]byte) {
	if b == nil || cap(*b) > maxKept {
		return
	}
	*b = (*b)[:0]
	e.buffers.Put(b)
}

// readAll reads r to its end into buf and calls alive after each read that
// brought something.
func readAll(r io.Reader, buf []byte, limit int64, alive func()) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return buf, &tooLargeError{limit}
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		case n > 0:
			alive()
		}
	}
}

type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string { return fmt.Sprintf("more than %d bytes", e.limit) }

// lost classifies the end of a try that got no whole answer.
func (e *Endpoint) lost(ctx, tryCtx context.Context, err error, sent bool) *model.Error {
	lost := &model.Error{Sent: sent}
	var tooLarge *tooLargeError
	switch {
	case ctx.Err() != nil:
		lost.Class, lost.Err = model.ClassCancelled, fmt.Errorf("waiting for the reply: %w", context.Cause(ctx))
		return lost
	case errors.Is(context.Cause(tryCtx), errSilent):
		lost.Class, lost.Retryable = model.ClassTimeout, true
		lost.Err = fmt.Errorf("%w for %v", errSilent, e.silence)
		return lost
	case errors.As(err, &tooLarge):
		lost.Class = model.ClassBadResponse
	case errors.Is(err, io.ErrUnexpectedEOF):
		lost.Class, lost.Retryable = model.ClassBadResponse, true
		err = errors.New("the body ends in the middle")
	case wrongCertificate(err):
		lost.Class, lost.Fatal = model.ClassConnection, true
	case isTimeout(err):
		lost.Class, lost.Retryable = model.ClassTimeout, true
	default:
		lost.Class, lost.Retryable = model.ClassConnection, true
	}
	lost.Err = fmt.Errorf("calling %s: %w", e.base.Host, e.plain(err))
	return lost
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func wrongCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		unknown      x509.UnknownAuthorityError
		hostname     x509.HostnameError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &record)
}

// plain says the common failures in words; other texts are cut and cleaned.
func (e *Endpoint) plain(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return syscall.ECONNREFUSED
	case errors.Is(err, syscall.ECONNRESET):
		return syscall.ECONNRESET
	case errors.Is(err, io.EOF):
		return errors.New("the connection was closed before a reply came")
	}
	return errors.New(e.Short(err.Error()))
}

// Options that an [OptionError] may be about.
const (
	OptionEffort = "effort"
	OptionExtra  = "extra"
)

// OptionError tells which option of a provider is wrong, and for the extra
// members of the body which of them.
type OptionError struct {
	Option string
	Key    string
	Err    error
}

func (e *OptionError) Error() string { return e.Err.Error() }

func (e *OptionError) Unwrap() error { return e.Err }
