package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// localLab is a lab in the process of the test, whose requests it can hold
// back.
type localLab struct {
	base string

	mu      sync.Mutex
	server  *lab.Server
	holds   func(callID string, nth int) bool // which requests are held back; nil: none
	seen    int                               // requests so far
	held    int
	release chan struct{} // closed by open
}

// newLab starts a lab that holds nothing back and ends with the test.
func newLab(t *testing.T, script lab.Script) *localLab {
	t.Helper()
	l := new(localLab)
	l.renew(t, script)
	web := httptest.NewServer(http.HandlerFunc(l.serve))
	l.base = web.URL + "/v1"
	t.Cleanup(func() {
		l.open()
		l.current().Close()
		web.Close()
	})
	return l
}

// renew begins anew, with an empty ledger, at the same address.
func (l *localLab) renew(t *testing.T, script lab.Script) {
	t.Helper()
	server, err := lab.New(script)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
}

func (l *localLab) current() *lab.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// Ledger is every request so far.
func (l *localLab) Ledger() []lab.Entry { return l.current().Ledger() }

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
	l.current().ServeHTTP(w, r)
}

// passes holds a request back and reports whether its client still waits then.
func (l *localLab) passes(r *http.Request) bool {
	l.mu.Lock()
	l.seen++
	hold := l.holds != nil && l.holds(r.Header.Get("X-Client-Request-Id"), l.seen)
	if hold {
		l.held++
	}
	release := l.release
	l.mu.Unlock()
	if !hold {
		return true
	}
	select {
	case <-release:
		return true
	case <-r.Context().Done():
		return false
	}
}

// hold holds requests back until open.
func (l *localLab) hold(which func(callID string, nth int) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds, l.held, l.release = which, 0, make(chan struct{})
}

// turn is the calls of a turn, counted from 0; a call id ends with
// -<attempt>-<turn>.
func turn(n int) func(string, int) bool {
	return func(callID string, _ int) bool { return strings.HasSuffix(callID, "-"+strconv.Itoa(n)) }
}

// beyond is all requests but the first n that a lab gets.
func beyond(n int) func(string, int) bool {
	return func(_ string, nth int) bool { return nth > n }
}

// admit lets the next n requests pass and holds back what follows.
func (l *localLab) admit(n int) {
	l.mu.Lock()
	seen := l.seen
	l.mu.Unlock()
	l.hold(beyond(seen + n))
}

// settled waits until no request is in flight and returns the ledger.
func (l *localLab) settled(t *testing.T) []lab.Entry {
	t.Helper()
	var entries []lab.Entry
	until(t, "no request is in flight", func() bool {
		entries = l.Ledger()
		return !slices.ContainsFunc(entries, func(e lab.Entry) bool { return e.InFlight })
	})
	return entries
}

// open lets all pass.
func (l *localLab) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds != nil {
		l.holds = nil
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

// episodeOf is the episode that a request belongs to.
func episodeOf(e lab.Entry) string {
	id, _, _ := strings.Cut(e.CallID, "-")
	return id
}
