package openai

import (
	"bytes"
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/agent/model"
)

// What a connection gathers before it writes: a request that is longer takes
// more system calls, and a copy. All connections together gather at most
// maxGathered.
const (
	gathered    = 32 << 10
	maxGathered = 32 << 20
)

// NewTransport is tuned for one endpoint that takes at most ceiling requests
// at once: it keeps as many connections open, so that none is opened twice.
// proxy may be nil.
//
// It speaks HTTP/1.1: a connection for each request in flight, so that one
// that breaks takes no other reply with it, and ceiling means what it says.
func NewTransport(ceiling int, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxIdleConns:           ceiling,
		MaxIdleConnsPerHost:    ceiling,
		MaxConnsPerHost:        ceiling,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		WriteBufferSize:        max(min(gathered, maxGathered/max(ceiling, 1)), 4<<10),
		DisableCompression:     true, // replies are small, and the client's CPU is what bounds a run
		Protocols:              protocols,
	}
}

// answer is an HTTP response, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// errSilent is the cause with which a try ends when nothing comes.
var errSilent = errors.New("the server is silent")

// exchange posts body and calls read with the whole answer, whose body is
// valid until read returns. Without an answer, the error tells why and
// whether the request had left.
func (c *Client) exchange(ctx context.Context, callID string, body []byte, read func(answer) *model.Error) *model.Error {
	tryCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.silence, func() { cancel(errSilent) })
	defer silence.Stop()

	var sent atomic.Bool // from when the connection has taken all of it, the server may act on it
	traced := httptrace.WithClientTrace(tryCtx, &httptrace.ClientTrace{
		WroteRequest: func(w httptrace.WroteRequestInfo) { sent.Store(w.Err == nil) },
	})
	resp, err := c.transport.RoundTrip(c.newRequest(traced, callID, body, &sent))
	if err != nil {
		return c.lost(ctx, tryCtx, err, sent.Load())
	}
	defer resp.Body.Close()
	buf := c.buffer()
	defer c.release(buf)
	*buf, err = readAll(resp.Body, *buf, c.limit, func() { silence.Reset(c.silence) })
	switch {
	case err == nil:
		return read(answer{resp.StatusCode, resp.Header, *buf})
	case resp.StatusCode < 200 || resp.StatusCode > 299: // the status alone says that it is refused
		return read(answer{resp.StatusCode, resp.Header, nil})
	default:
		return c.lost(ctx, tryCtx, err, true)
	}
}

// newRequest builds the request by hand: http.NewRequest parses the address
// each time. Its body is one of those that the transport knows to be in memory,
// or it would send the headers ahead of it. sent is false again when the
// transport begins anew, because it found a kept connection dead before it
// wrote a byte.
func (c *Client) newRequest(ctx context.Context, callID string, body []byte, sent *atomic.Bool) *http.Request {
	header := http.Header{"Content-Type": c.json, "Accept": c.json, "User-Agent": c.agent}
	if c.bearer != nil {
		header["Authorization"] = c.bearer
	}
	if callID != "" {
		header["X-Client-Request-Id"] = []string{callID}
	}
	req := &http.Request{
		Method: http.MethodPost, URL: c.url, Host: c.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) {
			sent.Store(false)
			return io.NopCloser(bytes.NewReader(body)), nil
		},
	}
	return req.WithContext(ctx)
}

// maxKept is the largest buffer that is kept for the next response.
const maxKept = 1 << 20

func (c *Client) buffer() *[]byte {
	if b, ok := c.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, 8<<10)
	return &b
}

func (c *Client) release(b *[]byte) {
	if cap(*b) > maxKept {
		return
	}
	*b = (*b)[:0]
	c.buffers.Put(b)
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
func (c *Client) lost(ctx, tryCtx context.Context, err error, sent bool) *model.Error {
	e := &model.Error{Sent: sent}
	var tooLarge *tooLargeError
	switch {
	case ctx.Err() != nil:
		e.Class, e.Err = model.ClassCancelled, fmt.Errorf("waiting for the reply: %w", context.Cause(ctx))
		return e
	case errors.Is(context.Cause(tryCtx), errSilent):
		e.Class, e.Retryable = model.ClassTimeout, true
		e.Err = fmt.Errorf("%w for %v", errSilent, c.silence)
		return e
	case errors.As(err, &tooLarge):
		e.Class = model.ClassBadResponse
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Class, e.Retryable = model.ClassBadResponse, true
		err = errors.New("the body ends in the middle")
	case wrongCertificate(err):
		e.Class, e.Fatal = model.ClassConnection, true
	case isTimeout(err):
		e.Class, e.Retryable = model.ClassTimeout, true
	default:
		e.Class, e.Retryable = model.ClassConnection, true
	}
	e.Err = fmt.Errorf("calling %s: %w", c.url.Host, c.plain(err))
	return e
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
func (c *Client) plain(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return syscall.ECONNREFUSED
	case errors.Is(err, syscall.ECONNRESET):
		return syscall.ECONNRESET
	case errors.Is(err, io.EOF):
		return errors.New("the connection was closed before a reply came")
	}
	return errors.New(c.short(err.Error()))
}
