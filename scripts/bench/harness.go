//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// bench is one measurement: its programs, its files and its lab.
type bench struct {
	options
	*workshop
	self string // this program
	lab  string // base URL of the lab in a process of its own
}

// profiled is the name of the one run, after all rounds, that is profiled.
const profiled = "profiled"

// figures are the CPU times of the rounds.
type figures struct{ bare, run, encode []time.Duration }

func runHarness(ctx context.Context, args []string) (err error) {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w, err := openWorkshop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	b := &bench{options: o, workshop: w, self: self}
	s, err := w.serve(ctx, b.script())
	if err != nil {
		return err
	}
	defer s.stop()
	b.lab = s.url
	if err := b.prepare(ctx); err != nil {
		return err
	}
	f, err := b.rounds(ctx)
	if err != nil {
		return err
	}
	b.print(f)
	if b.Profile == "" {
		return nil
	}
	_, err = b.measured(ctx, b.lab, profiled)
	return err
}

func (b *bench) script() lab.Script { return lab.Script{Turns: b.Turns, ReplyBytes: 400} }

// prepare writes tasks and config, and records the requests of a first run for
// the bare loop.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.tasks(b.Episodes, 540); err != nil {
		return err
	}
	if err := b.write("bench.yaml", harnessConfig(b.Concurrency)); err != nil {
		return err
	}
	return b.recordRequests(ctx)
}

// harnessConfig is of episodes with tools, so many at once.
func harnessConfig(concurrency int) string {
	return fmt.Sprintf(`version: 1
name: bench
tasks: {path: tasks.jsonl, columns: {id: id, input: question, target: answer}}
env: {name: answer}
agent: {model: openai/lab, toolsets: [answer, math], system_prompt: "You are a careful assistant. Use the calculator for arithmetic."}
score: [{name: numeric, extract: last_number}]
limits: {concurrency: {episodes: %d, requests: %d}}
`, concurrency, concurrency)
}

func (b *bench) config() string   { return b.path("bench.yaml") }
func (b *bench) requests() string { return b.path("requests.json") }

// recordRequests runs once against a lab of this process that keeps every
// request.
func (b *bench) recordRequests(ctx context.Context) error {
	server, err := lab.New(b.script())
	if err != nil {
		return err
	}
	keep := &recorder{inner: server, requests: map[string][]byte{}}
	web := httptest.NewServer(keep)
	defer web.Close()
	if _, err := b.measured(ctx, web.URL+"/v1", "first"); err != nil {
		return err
	}
	data, err := json.Marshal(keep.episodes())
	if err != nil {
		return err
	}
	return os.WriteFile(b.requests(), data, 0o600)
}

// recorder keeps the body of each request by its call id.
type recorder struct {
	inner    http.Handler
	mu       sync.Mutex
	requests map[string][]byte
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.requests[req.Header.Get("X-Client-Request-Id")] = body
	r.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.inner.ServeHTTP(w, req)
}

// episodes groups the requests by episode, in the order of the calls.
func (r *recorder) episodes() []episode {
	byID := map[string]episode{}
	for id, body := range r.requests {
		owner, _, _ := strings.Cut(id, "-")
		byID[owner] = append(byID[owner], request{CallID: id, Body: body})
	}
	all := make([]episode, 0, len(byID))
	for _, e := range byID {
		slices.SortFunc(e, func(x, y request) int { return strings.Compare(x.CallID, y.CallID) })
		all = append(all, e)
	}
	return all
}

// measured runs talaria and returns the CPU time of its process.
func (b *bench) measured(ctx context.Context, base, name string) (time.Duration, error) {
	args := []string{"run", b.config(), "--base-url", base, "--out", b.path(name), "--quiet"}
	if name == profiled {
		args = append(args, "--cpuprofile", b.Profile)
	}
	u, err := b.run(ctx, args...)
	return u.cpu, err
}

// child runs a role of this program and returns the CPU time that it measured.
func (b *bench) child(ctx context.Context, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, b.self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", args[0], err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Duration(ns), err
}

func (b *bench) rounds(ctx context.Context) (figures, error) {
	var f figures
	for i := range b.Rounds {
		name := fmt.Sprintf("round-%d", i)
		bare, err := b.child(ctx, "bare", b.lab, strconv.Itoa(b.Concurrency), b.requests())
		if err != nil {
			return f, err
		}
		run, err := b.measured(ctx, b.lab, name)
		if err != nil {
			return f, err
		}
		encode, err := b.child(ctx, "encode", b.path(name))
		if err != nil {
			return f, err
		}
		f.bare, f.run, f.encode = append(f.bare, bare), append(f.run, run), append(f.encode, encode)
		fmt.Printf("round %d: (a) %s  (b) %s  (c) %s\n", i+1, b.per(bare), b.per(run), b.per(encode))
	}
	return f, nil
}

// per is a round's CPU time per episode.
func (b *bench) per(d time.Duration) string {
	return fmt.Sprintf("%.0f µs", float64(d.Microseconds())/float64(b.Episodes))
}

func (b *bench) print(f figures) {
	a, r, c := median(f.bare), median(f.run), median(f.encode)
	fmt.Printf("\nCPU per episode of %d turns and %d tool calls, median of %d rounds of %d episodes:\n",
		b.Turns+1, b.Turns, b.Rounds, b.Episodes)
	fmt.Printf("(a) bare loop of the same requests   %s\n", b.per(a))
	fmt.Printf("(c) encoding the same rows           %s\n", b.per(c))
	fmt.Printf("(b) talaria run                      %s\n", b.per(r))
	fmt.Printf("(b) / ((a) + (c))                    %.2f\n", float64(r)/float64(a+c))
}
