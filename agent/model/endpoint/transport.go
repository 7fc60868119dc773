package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// What a connection gathers before it writes: a request that is longer takes
// more system calls, and a copy. All connections together gather at most
// maxGathered, but each enough for the headers. What a connection reads at once
// is less where there are thousands of them.
const (
	gathered    = 32 << 10
	maxGathered = 16 << 20
	minGathered = 2 << 10
	readAtOnce  = 4 << 10
)

// dialled is how many connections of HTTP/2 are opened at once. A server takes
// a hundred requests or more over each; one that is full does not count.
const dialled = 8

// Transport carries the requests to one endpoint. It speaks HTTP/2 where the
// server offers that over TLS, and HTTP/1.1 elsewhere. Which of them is known
// from the first connection, for which all requests wait: the two keep their
// connections in different ways.
//
// With HTTP/1.1 it keeps a connection for each request in flight, so that none
// is opened twice. With HTTP/2 requests share connections, and where one has as
// many as the server allows, another is opened.
type Transport struct {
	one, two *http.Transport
	probe    chan struct{} // holds a token, which the request has that finds out
	known    chan struct{} // closed when shared is set
	shared   bool
	once     sync.Once
}

// NewTransport is tuned for one endpoint that takes at most ceiling requests
// at once. proxy may be nil.
func NewTransport(ceiling int, proxy func(*http.Request) (*url.URL, error)) *Transport {
	t := &Transport{probe: make(chan struct{}, 1), known: make(chan struct{})}
	t.probe <- struct{}{}
	t.one, t.two = newTransport(ceiling, proxy), newTransport(ceiling, proxy)
	t.one.Protocols, t.two.Protocols = new(http.Protocols), new(http.Protocols)
	t.one.Protocols.SetHTTP1(true)
	t.two.Protocols.SetHTTP1(true)
	t.two.Protocols.SetHTTP2(true)
	t.two.MaxConnsPerHost = dialled
	t.two.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

func newTransport(ceiling int, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxIdleConns:           ceiling,
		MaxIdleConnsPerHost:    ceiling,
		MaxConnsPerHost:        ceiling,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		WriteBufferSize:        max(min(gathered, maxGathered/max(ceiling, 1)), minGathered),
		ReadBufferSize:         max(min(readAtOnce, maxGathered/max(ceiling, 1)), minGathered),
		DisableCompression:     true, // replies are small, and the client's CPU is what bounds a run
	}
}

// CloseIdleConnections closes what is kept open for further calls.
func (t *Transport) CloseIdleConnections() {
	t.one.CloseIdleConnections()
	t.two.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		return t.one.RoundTrip(req)
	}
	select {
	case <-t.known:
		return t.chosen().RoundTrip(req)
	default:
	}
	select {
	case <-t.known:
		return t.chosen().RoundTrip(req)
	case <-t.probe:
		return t.find(req)
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

func (t *Transport) chosen() *http.Transport {
	if t.shared {
		return t.two
	}
	return t.one
}

// find makes the request that finds out. If it gets no connection, the next
// request does.
func (t *Transport) find(req *http.Request) (*http.Response, error) {
	defer func() { t.probe <- struct{}{} }()
	traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		conn, secure := got.Conn.(*tls.Conn)
		t.once.Do(func() {
			t.shared = secure && conn.ConnectionState().NegotiatedProtocol == "h2"
			close(t.known)
		})
	}})
	return t.two.RoundTrip(req.WithContext(traced))
}
