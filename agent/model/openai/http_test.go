package openai

import (
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/modeltest"
	"github.com/talaria-run/talaria/dataset"
)

// client makes a client of url with the key "sk-secret".
func client(t *testing.T, o endpoint.Options) *Client {
	t.Helper()
	o.APIKey = "sk-secret"
	c, err := New(Options{Options: o, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// serve answers with h on loopback.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// failure is the error of one call of c.
func failure(t *testing.T, c *Client) (model.Response, *model.Error) {
	t.Helper()
	resp, err := c.Generate(t.Context(), modeltest.Ask("e-0-0"))
	e := new(model.Error)
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *model.Error", err)
	}
	return resp, e
}

// discardLog drops what net/http says of the failures that a test wants.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

func TestNew(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want string // in the error, or the address called
	}{
		{"fine", Options{Options: endpoint.Options{BaseURL: "https://api.openai.com/v1", APIKey: "k"}, Model: "m"}, "https://api.openai.com/v1/chat/completions"},
		{"a slash at the end", Options{Options: endpoint.Options{BaseURL: "https://example.com/v1/", APIKey: "k"}, Model: "m"}, "https://example.com/v1/chat/completions"},
		{"no path", Options{Options: endpoint.Options{BaseURL: "http://localhost:8000"}, Model: "m"}, "http://localhost:8000/chat/completions"},
		{"loopback of IPv6", Options{Options: endpoint.Options{BaseURL: "http://[::1]:1/v1"}, Model: "m"}, "http://[::1]:1/v1/chat/completions"},
		{"no key", Options{Options: endpoint.Options{BaseURL: "https://example.com/v1"}, Model: "m"}, "https://example.com/v1/chat/completions"},
		{"key with a line break", Options{Options: endpoint.Options{BaseURL: "https://x/v1", APIKey: "sk-1\n"}, Model: "m"}, "holds a space, a line break"},
		{"no model", Options{Options: endpoint.Options{BaseURL: "http://localhost"}}, "model name is empty"},
		{"no scheme", Options{Options: endpoint.Options{BaseURL: "localhost:8000/v1"}, Model: "m"}, "want http://host/path"},
		{"no host", Options{Options: endpoint.Options{BaseURL: "http:///v1"}, Model: "m"}, "want http://host/path"},
		{"another scheme", Options{Options: endpoint.Options{BaseURL: "ftp://localhost"}, Model: "m"}, "want http://host/path"},
		{"empty", Options{Model: "m"}, "want http://host/path"},
		{"no URL", Options{Options: endpoint.Options{BaseURL: "http://user:secret@[bad"}, Model: "m"}, "is not a URL"},
		{"a password", Options{Options: endpoint.Options{BaseURL: "http://user:secret@localhost/v1"}, Model: "m"}, "holds a user or password"},
		{"a query", Options{Options: endpoint.Options{BaseURL: "http://localhost/v1?a=b"}, Model: "m"}, "neither query nor fragment"},
		{"the whole path", Options{Options: endpoint.Options{BaseURL: "http://localhost/v1/chat/completions/"}, Model: "m"}, "leave out /chat/completions"},
		{"a port too far", Options{Options: endpoint.Options{BaseURL: "http://localhost:70000/v1"}, Model: "m"}, "not between 1 and 65535"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(tt.o)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = c.url.String()
			}
			if !strings.Contains(got, tt.want) || strings.Contains(got, "secret") || strings.Contains(got, "sk-1") {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		want   model.Error
		text   string
	}{
		{"key refused", 401, nil, `{"error":{"message":"Incorrect API key provided: sk-secret.","code":"invalid_api_key"}}`, model.Error{Class: model.ClassAuth, Fatal: true}, "Incorrect API key provided: [key]."},
		{"not allowed", 403, nil, `{"error":{"message":"not allowed"}}`, model.Error{Class: model.ClassAuth, Fatal: true}, "not allowed"},
		{"no credit", 402, nil, `{"error":{"message":"Insufficient credits"}}`, model.Error{Class: model.ClassBilling, Fatal: true}, "Insufficient credits"},
		{"no credit for now", 402, nil, `{"error":{"message":"limit resets at noon, try again"}}`, model.Error{Class: model.ClassRateLimit, Retryable: true}, "noon"},
		{"quota used up", 429, nil, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, model.Error{Class: model.ClassBilling, Fatal: true}, "quota"},
		{"too fast", 429, http.Header{"Retry-After": {"2"}}, `{"error":{"message":"Rate limit reached","code":null}}`, model.Error{Class: model.ClassRateLimit, Retryable: true, RetryAfter: 2 * time.Second}, "Rate limit reached"},
		{"too fast, in milliseconds", 429, http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500"}}, ``, model.Error{Class: model.ClassRateLimit, Retryable: true, RetryAfter: 1500 * time.Millisecond}, "too many requests"},
		{"busy", 429, nil, `{"error":{"message":"The engine is currently overloaded"}}`, model.Error{Class: model.ClassOverloaded, Retryable: true}, "overloaded"},
		{"upstream of an aggregator", 429, nil, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"slow down please"}}}`, model.Error{Class: model.ClassRateLimit, Retryable: true}, "Provider returned error: slow down please"},
		{"prompt too long", 400, nil, `{"error":{"message":"This model's maximum context length is 4096 tokens.","code":"context_length_exceeded"}}`, model.Error{Class: model.ClassContextOverflow}, "4096"},
		{"prompt too long, vLLM", 400, nil, `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, model.Error{Class: model.ClassContextOverflow}, "4096"},
		{"prompt too long, llama.cpp", 400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, model.Error{Class: model.ClassContextOverflow}, "exceeds"},
		{"prompt too long, as a server error", 500, nil, `{"error":"input is too long for the context window"}`, model.Error{Class: model.ClassContextOverflow}, "too long"},
		{"body too large", 413, nil, ``, model.Error{Class: model.ClassContextOverflow}, "request entity too large"},
		{"no such model", 404, nil, `{"error":{"message":"The model gpt-9 does not exist","code":"model_not_found"}}`, model.Error{Class: model.ClassModelNotFound, Fatal: true}, "gpt-9"},
		{"no such model, with 400", 400, nil, `{"error":{"message":"model not found"}}`, model.Error{Class: model.ClassModelNotFound, Fatal: true}, "model not found"},
		{"no such path", 404, nil, "<html><head><title>404 Not Found</title></head></html>", model.Error{Class: model.ClassModelNotFound, Fatal: true}, "an HTML page: 404 Not Found"},
		{"bad request", 400, nil, `{"detail":[{"msg":"field required"}]}`, model.Error{Class: model.ClassFormat}, "field required"},
		{"unprocessable", 422, nil, `{"detail":"bad tool"}`, model.Error{Class: model.ClassFormat}, "bad tool"},
		{"request timeout", 408, nil, ``, model.Error{Class: model.ClassTimeout, Retryable: true}, "request timeout"},
		{"a page of a proxy", 502, nil, "\n<!doctype html>\n<title>502\nBad  Gateway</title>", model.Error{Class: model.ClassServer, Retryable: true}, "an HTML page: 502 Bad Gateway"},
		{"a page without title", 500, nil, "<b>oops", model.Error{Class: model.ClassServer, Retryable: true}, "an HTML page"},
		{"a number", 500, nil, `{"error":5}`, model.Error{Class: model.ClassServer, Retryable: true}, "5"},
		{"nothing", 504, nil, "", model.Error{Class: model.ClassServer, Retryable: true}, "gateway timeout"},
		{"unavailable until", 503, http.Header{"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}}, "", model.Error{Class: model.ClassOverloaded, Retryable: true}, "service unavailable"},
		{"site overloaded", 529, nil, `{"error":{"message":"Overloaded"}}`, model.Error{Class: model.ClassOverloaded, Retryable: true}, "Overloaded"},
		{"redirect", 308, http.Header{"Location": {"https://example.com/v1/chat/completions"}}, "", model.Error{Class: model.ClassFormat, Fatal: true}, "redirects to https://example.com/v1/chat/completions; set base_url"},
		{"a long text", 500, nil, strings.Repeat("é\n", 5000) + "sk-secret", model.Error{Class: model.ClassServer, Retryable: true}, "é é"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, endpoint.Options{BaseURL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), tt.header)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})})
			resp, got := failure(t, c)
			tt.want.Status = tt.status
			if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(model.Error{}, "Err")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if resp.Unreported != 0 || resp.Usage != nil {
				t.Errorf("unreported %d, usage %+v: a refused request is not paid for", resp.Unreported, resp.Usage)
			}
			text := got.Err.Error()
			if !strings.Contains(text, tt.text) || len(text) > 380 || strings.ContainsAny(text, "\n\r") || strings.Contains(text, "sk-secret") {
				t.Errorf("text %q, want %q in it", text, tt.text)
			}
		})
	}
}

// TestPromptFiltered has servers whose content filter refuses a prompt: an
// answer, that nobody pays for.
func TestPromptFiltered(t *testing.T) {
	for status, body := range map[int]string{
		400: `{"error":{"message":"The response was filtered","code":"content_filter"}}`,
		403: `{"error":{"message":"Your input was flagged","code":403,"metadata":{"reasons":["violence"]}}}`,
	} {
		c := client(t, endpoint.Options{BaseURL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})})
		got, err := c.Generate(t.Context(), modeltest.Ask("e-0-0"))
		want := model.Response{Message: dataset.Message{Role: dataset.Assistant, FinishReason: model.FinishContentFilter}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("status %d: error %v, response (-want +got):\n%s", status, err, diff)
		}
	}
}

func TestUnreachable(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	resp, got := failure(t, client(t, endpoint.Options{BaseURL: "http://" + address}))
	if got.Class != model.ClassConnection || !got.Retryable || got.Sent || resp.Unreported != 0 {
		t.Errorf("error %+v", got)
	}
	if want := "connection: calling " + address + ": connection refused"; got.Error() != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// TestWrongCertificate calls a server whose certificate nobody has signed:
// waiting does not help.
func TestWrongCertificate(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = discardLog()
	srv.StartTLS()
	t.Cleanup(srv.Close)
	_, got := failure(t, client(t, endpoint.Options{BaseURL: srv.URL}))
	if got.Class != model.ClassConnection || !got.Fatal || got.Retryable || got.Sent {
		t.Errorf("error %+v", got)
	}
}

// TestNoTLS speaks TLS to a server that does not.
func TestNoTLS(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, got := failure(t, client(t, endpoint.Options{BaseURL: strings.Replace(url, "http://", "https://", 1)}))
	if got.Class != model.ClassConnection || !got.Fatal || got.Sent {
		t.Errorf("error %+v", got)
	}
}

func TestClosedWithoutAnswer(t *testing.T) {
	c := client(t, endpoint.Options{BaseURL: serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })})
	resp, got := failure(t, c)
	if got.Class != model.ClassConnection || !got.Retryable || !got.Sent || resp.Unreported != 1 {
		t.Errorf("error %+v, unreported %d", got, resp.Unreported)
	}
}

func TestTooLarge(t *testing.T) {
	c := client(t, endpoint.Options{MaxResponse: 1000, BaseURL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`+strings.Repeat("a", 2000)+`"}}]}`)
	})})
	resp, got := failure(t, c)
	if got.Class != model.ClassBadResponse || got.Retryable || !got.Sent || resp.Unreported != 1 {
		t.Errorf("error %+v, unreported %d", got, resp.Unreported)
	}
}

// TestConnectionsAreKept makes calls, one in three refused, from 8 goroutines
// over a transport for 8, and counts the connections.
func TestConnectionsAreKept(t *testing.T) {
	const together, rounds = 8, 50
	var calls, opened atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("no ", 3000))
			return
		}
		_, _ = io.WriteString(w, benchReply)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c := client(t, endpoint.Options{BaseURL: srv.URL, Ceiling: together})
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			for range rounds {
				_, _ = c.Generate(t.Context(), modeltest.Ask("e-0-0")) // refusals are expected
			}
		})
	}
	wg.Wait()
	if got := calls.Load(); got != together*rounds {
		t.Errorf("%d requests, want %d", got, together*rounds)
	}
	// While a connection is being made another one may come free and be taken in
	// its place, so there can be a few more than goroutines.
	if got := opened.Load(); got > 4*together {
		t.Errorf("%d connections for %d goroutines and %d refusals", got, together, together*rounds/3)
	}
}

func TestHeaders(t *testing.T) {
	got := make(chan http.Header, 2)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		_, _ = io.WriteString(w, benchReply)
	})
	c := client(t, endpoint.Options{BaseURL: url, UserAgent: "talaria/1"})
	if _, err := c.Generate(t.Context(), modeltest.Ask("e-0-3")); err != nil {
		t.Fatal(err)
	}
	keyless, err := New(Options{Options: endpoint.Options{BaseURL: url}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keyless.CloseIdleConnections)
	if _, err := keyless.Generate(t.Context(), modeltest.Ask("")); err != nil {
		t.Fatal(err)
	}
	with, without := <-got, <-got
	want := http.Header{
		"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"talaria/1"},
		"Authorization": {"Bearer sk-secret"}, "X-Client-Request-Id": {"e-0-3"},
	}
	with.Del("Content-Length")
	if diff := cmp.Diff(want, with); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if without["Authorization"] != nil || without["X-Client-Request-Id"] != nil {
		t.Errorf("headers without key and call id: %v", without)
	}
}

// TestBrokenUpload breaks the connection while the request is being written: a
// server that has seen half of it has nothing to act on.
func TestBrokenUpload(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(conn, make([]byte, 1000))
		_ = conn.Close() // with bytes unread: a reset
	})
	req := modeltest.Ask("e-0-0")
	req.Messages[0].Content = strings.Repeat("more than the buffers of a connection hold ", 1<<18)
	c := client(t, endpoint.Options{BaseURL: "http://" + l.Addr().String()})
	resp, err := c.Generate(t.Context(), req)
	got := new(model.Error)
	if !errors.As(err, &got) || got.Class != model.ClassConnection || !got.Retryable || got.Sent || resp.Unreported != 0 {
		t.Errorf("error %+v, unreported %d", err, resp.Unreported)
	}
}
