package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// localLab is a lab in the process of the test, whose requests it can hold
// back.
type localLab struct {
	*lab.Server
	base string

	holdTurn atomic.Int64 // calls of this turn are held back; -1: none
	mu       sync.Mutex
	held     int
	release  chan struct{} // closed by open
}

// newLab starts a lab that holds nothing back and ends with the test.
func newLab(t *testing.T, script lab.Script) *localLab {
	t.Helper()
	server, err := lab.New(script)
	if err != nil {
		t.Fatal(err)
	}
	l := &localLab{Server: server, release: make(chan struct{})}
	l.holdTurn.Store(-1)
	web := httptest.NewServer(http.HandlerFunc(l.serve))
	l.base = web.URL + "/v1"
	t.Cleanup(func() {
		l.open()
		server.Close()
		web.Close()
	})
	return l
}

func (l *localLab) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // only then net/http sees that a client leaves
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !l.passes(r) {
		return
	}
	w.Header().Set("Retry-After", "0") // the lab's own overrides it
	l.Server.ServeHTTP(w, r)
}

// passes holds a request back and reports whether its client still waits then.
func (l *localLab) passes(r *http.Request) bool {
	id := r.Header.Get("X-Client-Request-Id") // ends with -<attempt>-<turn>
	if !strings.HasSuffix(id, "-"+strconv.FormatInt(l.holdTurn.Load(), 10)) {
		return true
	}
	l.mu.Lock()
	l.held++
	release := l.release
	l.mu.Unlock()
	select {
	case <-release:
		return true
	case <-r.Context().Done():
		return false
	}
}

// hold holds back the calls of a turn, counted from 0.
func (l *localLab) hold(turn int) { l.holdTurn.Store(int64(turn)) }

// open lets all pass.
func (l *localLab) open() {
	l.holdTurn.Store(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.release:
	default:
		close(l.release)
	}
}

// awaitHeld waits until so many requests have been held back.
func (l *localLab) awaitHeld(t *testing.T, n int) {
	t.Helper()
	until(t, strconv.Itoa(n)+" requests are held back", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.held >= n
	})
}
