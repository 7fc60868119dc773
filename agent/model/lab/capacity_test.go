package lab

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ask sends a request to the handler itself, so that its latency passes in a
// bubble.
func ask(t *testing.T, l *Server, callID string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(question))
	r.Header.Set("X-Client-Request-Id", callID)
	l.ServeHTTP(w, r)
	return w
}

func bubble(t *testing.T, s Script) *Server {
	t.Helper()
	l, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCapacity sends six requests at once to two slots and a queue of one.
func TestCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubble(t, Script{
			LatencyMinMS: 1000, LatencyMaxMS: 1000,
			Capacity: Capacity{Slots: 2, Queue: 1, RetryAfter: 7},
		})
		begin := time.Now()
		var wg sync.WaitGroup
		type end struct {
			Status     int
			RetryAfter string
			After      time.Duration
		}
		var got [6]end
		for i := range got {
			wg.Go(func() {
				w := ask(t, l, "c-"+strconv.Itoa(i))
				got[i] = end{w.Code, w.Header().Get("Retry-After"), time.Since(begin)}
			})
			synctest.Wait() // they come in order
		}
		want := CapacityGauge{Slots: 2, Busy: 2, Waiting: 1, Refused: 3}
		if diff := cmp.Diff(want, l.Gauge().Capacity); diff != "" {
			t.Errorf("gauge (-want +got):\n%s", diff)
		}
		wg.Wait()
		want = CapacityGauge{Slots: 2, Refused: 3, BusySeconds: 3}
		if diff := cmp.Diff(want, l.Gauge().Capacity); diff != "" {
			t.Errorf("gauge at the end (-want +got):\n%s", diff)
		}
		served, refused := end{200, "", time.Second}, end{429, "7", 0}
		if diff := cmp.Diff([6]end{served, served, {200, "", 2 * time.Second}, refused, refused, refused}, got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if e := l.Ledger()[3]; e.Fault != FaultCapacity || e.Status != 429 || e.Usage != nil {
			t.Errorf("the ledger has fault %q, status %d, usage %v of a refused request", e.Fault, e.Status, e.Usage)
		}
	})
}

// TestCapacityChanges changes the slots after requests and after a time.
func TestCapacityChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubble(t, Script{LatencyMinMS: 1000, LatencyMaxMS: 1000, Capacity: Capacity{Slots: 3, Changes: []CapacityChange{
			{AfterRequests: 4, Slots: 1}, {AfterMS: 10_000, Slots: 2},
		}}})
		served := func(n int) (ok int) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range n {
				wg.Go(func() {
					if w := ask(t, l, "c"); w.Code == 200 {
						mu.Lock()
						defer mu.Unlock()
						ok++
					}
				})
				synctest.Wait()
			}
			wg.Wait()
			return ok
		}
		got := []int{served(4), served(4), 0}
		time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble
		got[2] = served(4)
		if diff := cmp.Diff([]int{3, 1, 2}, got); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
	})
}

// TestCapacityLeavesAnswers gives a call the same answer and the same faults
// whether it was refused before or not.
func TestCapacityLeavesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := Script{LatencyMinMS: 1, LatencyMaxMS: 1000, Faults: []Fault{{Kind: FaultStatus, Rate: 1}}}
		free := bubble(t, script)
		script.Capacity.Slots = 1
		full := bubble(t, script)
		done := make(chan struct{})
		go func() {
			ask(t, full, "other")
			close(done)
		}()
		synctest.Wait()
		if w := ask(t, full, "c"); w.Code != 429 {
			t.Fatalf("status %d, want a refusal", w.Code)
		}
		<-done
		for i := range 3 {
			want, got := ask(t, free, "c"), ask(t, full, "c")
			if diff := cmp.Diff(decoded(t, want.Body), decoded(t, got.Body), cmpopts.IgnoreMapEntries(func(k string, _ any) bool { return k == "created" })); diff != "" || want.Code != got.Code {
				t.Errorf("request %d: status %d, want %d (-want +got):\n%s", i, got.Code, want.Code, diff)
			}
		}
	})
}

func decoded(t *testing.T, r io.Reader) (v map[string]any) {
	t.Helper()
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCapacityScript(t *testing.T) {
	for script, want := range map[string]string{
		`{"capacity": {"slots": 4, "queue": -1, "changes": [{"after_ms": 5, "slots": 1}]}}`: "",
		`{"capacity": {"slots": -4}}`:                                                   "slots and retry_after",
		`{"capacity": {"slots": 4, "queue": -2}}`:                                       "queue is -1 or more",
		`{"capacity": {"slots": 4, "status": 200}}`:                                     "status 200",
		`{"capacity": {"changes": [{"slots": 1}]}}`:                                     "capacity.changes[0]",
		`{"capacity": {"changes": [{"slots": 1, "after_ms": 1, "after_requests": 1}]}}`: "capacity.changes[0]",
	} {
		_, err := ReadScript(strings.NewReader(script))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", script, err, want)
		}
	}
}

// TestCapacityAbandoned gives back what a client that leaves held or waited
// for, and what a lab holds that closes.
func TestCapacityAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bubble(t, Script{LatencyMinMS: 60_000, LatencyMaxMS: 60_000, Capacity: Capacity{Slots: 1, Queue: -1}})
		var wg sync.WaitGroup
		call := func(ctx context.Context, id string) {
			wg.Go(func() {
				defer func() {
					if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the very value
						t.Errorf("request %s ended with %v, want it cut off", id, v)
					}
				}()
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(question))
				l.ServeHTTP(httptest.NewRecorder(), r)
			})
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(t.Context())
		call(leaving, "first")
		call(leaving, "second")
		call(t.Context(), "third")
		if g := l.Gauge().Capacity; g.Busy != 1 || g.Waiting != 2 {
			t.Errorf("%d busy and %d waiting, want 1 and 2", g.Busy, g.Waiting)
		}
		leave()
		synctest.Wait()
		if g := l.Gauge().Capacity; g.Busy != 1 || g.Waiting != 0 {
			t.Errorf("%d busy and %d waiting after two left, want 1 and 0", g.Busy, g.Waiting)
		}
		l.Close()
		wg.Wait()
		if g := l.Gauge().Capacity; g.Busy != 0 {
			t.Errorf("%d slots are still taken", g.Busy)
		}
	})
}
