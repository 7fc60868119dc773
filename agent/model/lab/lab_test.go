package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const question = `{"model":"m","messages":[{"role":"user","content":"What is 2 + 2?"}],` +
	`"tools":[{"type":"function","function":{"name":"calculator","description":"Adds.","parameters":{"type":"object"}}}]}`

// start serves a lab on loopback.
func start(t *testing.T, s Script) (*Server, *httptest.Server) {
	t.Helper()
	l, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	t.Cleanup(l.Close)
	return l, srv
}

// post sends a request and returns the status and as much of the body as came.
func post(t *testing.T, srv *httptest.Server, callID, body string) (status int, header http.Header, got []byte, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if callID != "" {
		req.Header.Set("X-Client-Request-Id", callID)
	}
	req.Header.Set("Authorization", "Bearer k")
	resp, err := srv.Client().Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	got, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, got, err
}

func complete(t *testing.T, srv *httptest.Server, callID, body string) completion {
	t.Helper()
	status, _, got, err := post(t, srv, callID, body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, error %v: %s", status, err, got)
	}
	var c completion
	if err := json.Unmarshal(got, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// ignoreTime leaves out what is of the moment.
func ignoreTime() cmp.Option { return cmpopts.IgnoreFields(Entry{}, "Seq", "Time", "ClientGone") }

// TestOrderIsNothing sends the same calls in two orders, one of them all at
// once, and wants the same answers and faults for each.
func TestOrderIsNothing(t *testing.T) {
	script := Script{
		Seed: 3, Turns: 1, ReasoningBytes: 20,
		Faults: []Fault{{Kind: FaultStatus, Rate: 0.5, Times: 2}, {Kind: FaultCut, Rate: 0.5}, {Kind: FaultNoUsage, Rate: 0.3}},
	}
	ids := make([]string, 40)
	for i := range ids {
		ids[i] = string(rune('A'+i)) + "-0-0"
	}
	run := func(order func([]string) []string, together bool) map[string][]Entry {
		l, srv := start(t, script)
		for range 4 {
			var wg sync.WaitGroup
			for _, id := range order(ids) {
				ask := func() { _, _, _, _ = post(t, srv, id, question) } // what came of it is in the ledger
				if together {
					wg.Go(ask)
				} else {
					ask()
				}
			}
			wg.Wait()
		}
		got := map[string][]Entry{}
		for _, e := range l.Ledger() {
			got[e.CallID] = append(got[e.CallID], e)
		}
		return got
	}
	want := run(func(ids []string) []string { return ids }, false)
	got := run(func(ids []string) []string {
		shuffled := append([]string(nil), ids...)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return shuffled
	}, true)
	if diff := cmp.Diff(want, got, ignoreTime()); diff != "" {
		t.Errorf("another order, another ledger (-want +got):\n%s", diff)
	}
	kinds := map[string]int{}
	for _, entries := range want {
		for _, e := range entries {
			kinds[e.Fault]++
		}
	}
	for _, kind := range []string{"", FaultStatus, FaultCut, FaultNoUsage} {
		if kinds[kind] == 0 {
			t.Errorf("no request had fault %q: the comparison shows nothing of it", kind)
		}
	}
}

func TestTurns(t *testing.T) {
	_, srv := start(t, Script{Turns: 1, Answer: "#### {a}", Tool: Tool{Arguments: `{"expression": "{turn} + {n}"}`}})
	first := complete(t, srv, "e-0-0", question).Choices[0]
	if len(first.Message.ToolCalls) != 1 || first.FinishReason != "tool_calls" {
		t.Fatalf("first reply: %+v", first)
	}
	call := first.Message.ToolCalls[0]
	if want := (wireFunction{Name: "calculator", Arguments: `{"expression": "0 + 1"}`}); call.Function != want {
		t.Errorf("call %+v, want %+v", call.Function, want)
	}
	var req map[string]any
	if err := json.Unmarshal([]byte(question), &req); err != nil {
		t.Fatal(err)
	}
	req["messages"] = append(req["messages"].([]any), first.Message, map[string]any{"role": "tool", "tool_call_id": call.ID, "content": "4"})
	body, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	c := complete(t, srv, "e-0-1", string(body))
	last := c.Choices[0]
	if len(last.Message.ToolCalls) != 0 || last.FinishReason != "stop" || !strings.HasPrefix(*last.Message.Content, "#### ") {
		t.Errorf("final reply: %+v", last)
	}
	if got := c.Usage.PromptTokensDetails.CachedTokens; got <= 0 || got >= c.Usage.PromptTokens {
		t.Errorf("%d of %d prompt tokens are cached in the second turn", got, c.Usage.PromptTokens)
	}
}

func TestMaxTokens(t *testing.T) {
	l, srv := start(t, Script{ReplyBytes: 400, ReasoningBytes: 100})
	for _, limit := range []int64{1, 10, 60, 1000} {
		body := strings.Replace(question, `"model":"m"`, `"model":"m","max_tokens":`+strconv.FormatInt(limit, 10), 1)
		c := complete(t, srv, "", body)
		if c.Usage.CompletionTokens > limit {
			t.Errorf("max_tokens %d: %d tokens", limit, c.Usage.CompletionTokens)
		}
		if got, want := c.Choices[0].FinishReason == "length", limit < 120; got != want {
			t.Errorf("max_tokens %d: finish reason %q", limit, c.Choices[0].FinishReason)
		}
		if !utf8.ValidString(*c.Choices[0].Message.Content) {
			t.Errorf("max_tokens %d: a rune is cut", limit)
		}
	}
	for _, e := range l.Ledger() {
		if !strings.HasPrefix(e.CallID, "sha256-") {
			t.Errorf("call id %q of a request without one", e.CallID)
		}
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		name   string
		fault  Fault
		billed bool
		check  func(status int, h http.Header, body []byte, err error) bool
	}{
		{"status", Fault{Kind: FaultStatus, Status: 429, RetryAfter: 7}, false, func(status int, h http.Header, body []byte, err error) bool {
			return status == 429 && h.Get("Retry-After") == "7" && err == nil && json.Valid(body)
		}},
		{"cut", Fault{Kind: FaultCut}, true, func(status int, _ http.Header, body []byte, err error) bool {
			return status == 200 && len(body) > 0 && errors.Is(err, io.ErrUnexpectedEOF)
		}},
		{"reset", Fault{Kind: FaultReset}, true, func(_ int, _ http.Header, _ []byte, err error) bool { return err != nil }},
		{"malformed", Fault{Kind: FaultMalformed}, true, func(status int, _ http.Header, body []byte, err error) bool {
			return status == 200 && err == nil && !json.Valid(body)
		}},
		{"empty choices", Fault{Kind: FaultEmptyChoices}, true, func(status int, _ http.Header, body []byte, _ error) bool {
			return status == 200 && bytes.Contains(body, []byte(`"choices":[]`)) && bytes.Contains(body, []byte(`"usage"`))
		}},
		{"no usage", Fault{Kind: FaultNoUsage}, true, func(status int, _ http.Header, body []byte, _ error) bool {
			return status == 200 && bytes.Contains(body, []byte(`"content"`)) && !bytes.Contains(body, []byte(`"usage"`))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.fault.Rate = 1
			l, srv := start(t, Script{Faults: []Fault{tt.fault}})
			if status, h, body, err := post(t, srv, "x", question); !tt.check(status, h, body, err) {
				t.Errorf("status %d, error %v, body %s", status, err, body)
			}
			complete(t, srv, "x", question) // the fault strikes once
			entries := l.Ledger()
			if len(entries) != 2 || entries[0].Fault != tt.fault.Kind || entries[1].Fault != "" || entries[1].Seen != 1 {
				t.Fatalf("ledger: %+v", entries)
			}
			if got := entries[0].Usage != nil; got != tt.billed {
				t.Errorf("billed: %v", got)
			}
		})
	}
}

// TestFaultsQueue draws two faults for a call id: they strike one after the
// other.
func TestFaultsQueue(t *testing.T) {
	l, srv := start(t, Script{Faults: []Fault{{Kind: FaultStatus, Rate: 1, Times: 2}, {Kind: FaultNoUsage, Rate: 1}}})
	for range 4 {
		if _, _, _, err := post(t, srv, "x", question); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]string, 0, 4)
	for _, e := range l.Ledger() {
		got = append(got, e.Fault)
	}
	if want := []string{FaultStatus, FaultStatus, FaultNoUsage, ""}; !slices.Equal(got, want) {
		t.Errorf("faults %q, want %q", got, want)
	}
}

func TestRefusals(t *testing.T) {
	_, srv := start(t, Script{APIKey: "k", Models: []string{"m"}})
	tests := []struct {
		name, body string
		want       int
	}{
		{"fine", question, 200},
		{"unknown model", strings.Replace(question, `"m"`, `"other"`, 1), 404},
		{"not JSON", question[1:], 400},
		{"no messages", `{"model":"m"}`, 400},
		{"streaming", strings.Replace(question, `{`, `{"stream":true,`, 1), 400},
		{"result without call", `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"4"}]}`, 400},
		{"call without result", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c"}]},{"role":"user","content":"?"}]}`, 400},
		{"call at the end", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}]}`, 400},
		{"wrong key", question, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := srv
			if tt.want == 401 {
				_, srv = start(t, Script{APIKey: "another"})
			}
			if got, _, body, err := post(t, srv, "", tt.body); got != tt.want || err != nil {
				t.Errorf("status %d, want %d; error %v: %s", got, tt.want, err, body)
			}
		})
	}
}

func TestHangEndsWithTheLab(t *testing.T) {
	l, srv := start(t, Script{Faults: []Fault{{Kind: FaultHang, Rate: 1}}})
	done := make(chan error)
	go func() {
		_, _, _, err := post(t, srv, "h", question)
		done <- err
	}()
	for l.Gauge().InFlight == 0 {
		get(t, srv, "/metrics") // lets time pass
	}
	l.Close()
	if err := <-done; err == nil {
		t.Error("a hanging request was answered")
	}
}

func get(t *testing.T, srv *httptest.Server, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestPages(t *testing.T) {
	var log bytes.Buffer
	l, srv := start(t, Script{Models: []string{"m", "n"}})
	l.LogTo(&log)
	for _, id := range []string{"a", "b", "a"} {
		complete(t, srv, id, question)
	}
	if got := get(t, srv, "/v1/models"); !strings.Contains(got, `"id":"n"`) {
		t.Errorf("models: %s", got)
	}
	ledger := get(t, srv, "/ledger")
	srv.Close() // waits for the handlers
	got := l.Gauge()
	got.Capacity.BusySeconds = 0 // it takes its time
	if want := (Gauge{MaxInFlight: 1, Requests: 3, Calls: 2}); got != want {
		t.Errorf("gauge %+v, want %+v", got, want)
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	fromPage, fromLog := lines(t, ledger), lines(t, log.String())
	if diff := cmp.Diff(l.Ledger(), fromPage, ignoreTime()); diff != "" {
		t.Errorf("GET /ledger (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(l.Ledger(), fromLog); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func lines(t *testing.T, text string) []Entry {
	t.Helper()
	var entries []Entry
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		var e Entry
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func TestReadScript(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"fine", `{"seed": 7, "turns": 2, "faults": [{"kind": "status", "status": 503, "rate": 0.1}]}`, ""},
		{"unknown key", `{"sead": 7}`, `unknown field "sead"`},
		{"unknown kind", `{"faults": [{"kind": "fire"}]}`, `unknown kind "fire"`},
		{"rate", `{"faults": [{"kind": "cut", "rate": 1.5}]}`, "rate 1.5"},
		{"status", `{"faults": [{"kind": "status", "status": 200}]}`, "status 200"},
		{"negative", `{"turns": -1}`, "turns is -1"},
		{"more", `{} {}`, "more than one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadScript(strings.NewReader(tt.text))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}
