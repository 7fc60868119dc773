package openai

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/modeltest"
)

// pipes is a network within a synctest bubble.
type pipes chan net.Conn

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// bubble serves h over pipes and runs test with a client that allows a minute
// of silence.
func bubble(t *testing.T, h http.HandlerFunc, test func(*testing.T, *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := make(pipes)
		srv := &http.Server{Handler: h, ErrorLog: discardLog()}
		var wg sync.WaitGroup
		wg.Go(func() { _ = srv.Serve(network) }) // ends with ErrServerClosed
		transport := &http.Transport{DialContext: network.dial}
		c, err := New(Options{Options: endpoint.Options{BaseURL: "http://localhost", Transport: transport, Silence: time.Minute}, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
		c.CloseIdleConnections()
		_ = srv.Close() // the pipes have nothing to say
		wg.Wait()
	})
}

func TestSilence(t *testing.T) {
	tests := []struct {
		name string
		h    http.HandlerFunc
	}{
		{"before the answer", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{"within the answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, benchReply[:100])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, tt.h, func(t *testing.T, c *Client) {
				t.Helper()
				start := time.Now()
				resp, got := failure(t, c)
				if got.Class != model.ClassTimeout || !got.Retryable || !got.Sent || resp.Unreported != 1 {
					t.Errorf("error %+v, unreported %d", got, resp.Unreported)
				}
				if took := time.Since(start); took != time.Minute {
					t.Errorf("gave up after %v, want 1m", took)
				}
			})
		})
	}
}

// TestSlowIsNotSilent sends a reply over five minutes, a byte every half.
func TestSlowIsNotSilent(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for range 10 {
			time.Sleep(30 * time.Second) //nolint:forbidigo // in a synctest bubble
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, benchReply)
	}
	bubble(t, drip, func(t *testing.T, c *Client) {
		t.Helper()
		resp, err := c.Generate(t.Context(), modeltest.Ask("e-0-0"))
		if err != nil || resp.Usage == nil || resp.Usage.Input+resp.Usage.CacheRead != 1117 {
			t.Errorf("usage %+v, error %v", resp.Usage, err)
		}
	})
}
