package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func question(b []byte) ([]byte, error) { return append(b, "question"...), nil }

// TestBeginsAnew takes the body a second time, as the transport does when it
// found a kept connection dead, while the memory of the first serves others.
func TestBeginsAnew(t *testing.T) {
	e, err := New(Options{BaseURL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	body := &outgoing{encode: question}
	if err := body.fill(e.buffer()); err != nil {
		t.Fatal(err)
	}
	req := e.newRequest(t.Context(), e.At("/"), "e-0-0", body)
	copy(*body.buffer.Swap(nil), "########")
	body.sent.Store(true)
	again, err := req.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(again)
	if err != nil || string(got) != "question" || int64(len(got)) != req.ContentLength || body.sent.Load() {
		t.Errorf("got %q of %d bytes, error %v, sent %v", got, req.ContentLength, err, body.sent.Load())
	}
}

func TestAt(t *testing.T) {
	tests := []struct{ base, want string }{
		{"http://127.0.0.1:11434", "http://127.0.0.1:11434/api/chat"},
		{"http://127.0.0.1:11434/", "http://127.0.0.1:11434/api/chat"},
		{"http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/api/chat"},
		{"https://example.com/ollama/api/", "https://example.com/ollama/api/chat"},
	}
	for _, tt := range tests {
		e, err := New(Options{BaseURL: tt.base})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.At("/api/chat", "/v1", "/api").String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.base, got, tt.want)
		}
	}
}

// TestProtocols has more requests in flight at once than HTTP/2 carries over one
// connection, and as many over HTTP/1.1: none may wait for another to end.
func TestProtocols(t *testing.T) {
	const streams = 10 // that the server takes over one connection
	tests := []struct {
		name         string
		http2        bool
		major        int
		together     int
		fewest, most int64 // connections
	}{
		{"HTTP/2", true, 2, 100, 100 / streams, 99},
		{"HTTP/1.1", false, 1, 20, 20, 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var arrived sync.WaitGroup
			arrived.Add(tt.together)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != tt.major {
					t.Errorf("HTTP/%d", r.ProtoMajor)
				}
				arrived.Done()
				arrived.Wait()
				_, _ = io.WriteString(w, "answer")
			}))
			conns := countConnections(srv)
			srv.EnableHTTP2 = tt.http2
			srv.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
			srv.StartTLS()
			t.Cleanup(srv.Close)
			postTogether(t, srv, tt.together)
			if got := conns.Load(); got < tt.fewest || got > tt.most {
				t.Errorf("%d connections, want %d to %d", got, tt.fewest, tt.most)
			}
		})
	}
}

func countConnections(srv *httptest.Server) *atomic.Int64 {
	var opened atomic.Int64
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	return &opened
}

func postTogether(t *testing.T, srv *httptest.Server, together int) {
	t.Helper()
	transport := NewTransport(together, nil)
	trusted := &tls.Config{RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AddCert(srv.Certificate())
	transport.one.TLSClientConfig, transport.two.TLSClientConfig = trusted, trusted.Clone()
	e, err := New(Options{BaseURL: srv.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.CloseIdleConnections)
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			failed := e.Post(t.Context(), e.At("/"), "", question, func(a Answer) *model.Error {
				if string(a.Body) != "answer" {
					t.Errorf("answer %q", a.Body)
				}
				return nil
			})
			if failed != nil {
				t.Error(failed)
			}
		})
	}
	wg.Wait()
}
