//go:build unix

package main

import (
	"bufio"
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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// bench is one measurement: its programs, its files and its lab.
type bench struct {
	options
	dir     string // removed at the end
	talaria string // the program
	self    string // this program
	lab     string // base URL of the lab in a process of its own
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
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp("", "talaria-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	stop, err := b.startLab(ctx)
	if err != nil {
		return err
	}
	defer stop()
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
	_, err = b.run(ctx, b.lab, profiled)
	return err
}

func (b *bench) build(ctx context.Context) error {
	b.talaria = filepath.Join(b.dir, "talaria")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.talaria, "./cmd/talaria")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building talaria (run this from the root of the repository): %w", err)
	}
	return nil
}

func (b *bench) script() lab.Script { return lab.Script{Turns: b.Turns, ReplyBytes: 400} }

func (b *bench) startLab(ctx context.Context) (stop func(), err error) {
	script, err := json.Marshal(map[string]int{"turns": b.Turns, "reply_bytes": b.script().ReplyBytes})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir, "script.json")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.talaria, "lab", "serve", "--script", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the lab: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("reading the lab's address: %w", err)
	}
	b.lab = strings.TrimSpace(line)
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}, nil
}

// prepare writes tasks and config, and records the requests of a first run for
// the bare loop.
func (b *bench) prepare(ctx context.Context) error {
	var tasks bytes.Buffer
	for i := range b.Episodes {
		fmt.Fprintf(&tasks, `{"id":"t%d","question":"What is %d + %d? %s","answer":"%d"}`+"\n",
			i, i, i+1, strings.Repeat("Think about it with care. ", 20), 2*i+1)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "tasks.jsonl"), tasks.Bytes(), 0o600); err != nil {
		return err
	}
	config := fmt.Sprintf(`version: 1
name: bench
tasks: {path: tasks.jsonl, columns: {id: id, input: question, target: answer}}
env: {name: answer}
agent: {model: openai/lab, toolsets: [answer, math], system_prompt: "You are a careful assistant. Use the calculator for arithmetic."}
score: [{name: numeric, extract: last_number}]
limits: {concurrency: {episodes: %d, requests: %d}}
`, b.Concurrency, b.Concurrency)
	if err := os.WriteFile(b.config(), []byte(config), 0o600); err != nil {
		return err
	}
	return b.recordRequests(ctx)
}

func (b *bench) config() string   { return filepath.Join(b.dir, "bench.yaml") }
func (b *bench) requests() string { return filepath.Join(b.dir, "requests.json") }

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
	if _, err := b.run(ctx, web.URL+"/v1", "first"); err != nil {
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

// run runs talaria and returns the CPU time of its process.
func (b *bench) run(ctx context.Context, base, name string) (time.Duration, error) {
	args := []string{"run", b.config(), "--base-url", base, "--out", filepath.Join(b.dir, name), "--quiet"}
	if name == profiled {
		args = append(args, "--cpuprofile", b.Profile)
	}
	cmd := exec.CommandContext(ctx, b.talaria, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("talaria run: %w: %s", err, errs.String())
	}
	return cpuOf(cmd), nil
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
		run, err := b.run(ctx, b.lab, name)
		if err != nil {
			return f, err
		}
		encode, err := b.child(ctx, "encode", filepath.Join(b.dir, name))
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
