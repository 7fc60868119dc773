//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// workshop is a folder with the program to measure. close removes it.
type workshop struct {
	dir     string
	talaria string
}

// openWorkshop builds talaria. It runs in the root of the repository or, for
// tests, in this package's folder.
func openWorkshop(ctx context.Context) (*workshop, error) {
	dir, err := os.MkdirTemp("", "talaria-bench-")
	if err != nil {
		return nil, err
	}
	w := &workshop{dir: dir, talaria: filepath.Join(dir, "talaria")}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", w.talaria, "github.com/talaria-run/talaria/cmd/talaria")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("building talaria (run this in the repository): %w", err), w.close())
	}
	return w, nil
}

func (w *workshop) close() error { return os.RemoveAll(w.dir) }

func (w *workshop) path(name string) string { return filepath.Join(w.dir, name) }

func (w *workshop) write(name, text string) error {
	return os.WriteFile(w.path(name), []byte(text), 0o600)
}

// tasks writes n sums to the file tasks.jsonl, the question filled up to so
// many bytes.
func (w *workshop) tasks(n, questionBytes int) error {
	f, err := os.Create(w.path("tasks.jsonl"))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	for i := range n {
		question := fmt.Sprintf("What is %d + %d?", i, i+1)
		if fill := questionBytes - len(question); fill > 0 {
			question += strings.Repeat(" Think about it with care.", fill/26+1)[:fill]
		}
		_, err = fmt.Fprintf(out, `{"id":"t%d","question":%q,"answer":"%d"}`+"\n", i, question, 2*i+1)
		if err != nil {
			break
		}
	}
	return errors.Join(err, out.Flush(), f.Close())
}

// server is a lab in a process of its own.
type server struct {
	url string // base URL for clients
	cmd *exec.Cmd
}

func (w *workshop) serve(ctx context.Context, script lab.Script) (*server, error) {
	text, err := json.Marshal(script)
	if err != nil {
		return nil, err
	}
	if err := w.write("script.json", string(text)); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, w.talaria, "lab", "serve", "--script", w.path("script.json"))
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
	return &server{url: strings.TrimSpace(line), cmd: cmd}, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// gauge tells how busy the lab was.
func (s *server) gauge(ctx context.Context) (lab.Gauge, error) {
	var g lab.Gauge
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.url, "/v1")+"/metrics", nil)
	if err != nil {
		return g, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return g, err
	}
	err = json.NewDecoder(resp.Body).Decode(&g)
	return g, errors.Join(err, resp.Body.Close())
}

// used is what a process took.
type used struct {
	cpu  time.Duration // user and system
	peak int64         // resident memory, in bytes
}

// run runs talaria to its end.
func (w *workshop) run(ctx context.Context, args ...string) (used, error) {
	cmd := exec.CommandContext(ctx, w.talaria, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return used{}, fmt.Errorf("talaria %s: %w: %s", args[0], err, errs.String())
	}
	return used{cpu: cpuOf(cmd), peak: peakOf(cmd)}, nil
}

// peakOf is VmHWM of a process that has ended. It is never less than what this
// process had when it started the other, which is little.
func peakOf(cmd *exec.Cmd) int64 {
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
