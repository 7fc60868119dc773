//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// inflightOptions say how many requests are to be open at once, and for how
// long each.
type inflightOptions struct {
	Episodes    int
	Concurrency int
	PromptBytes int
	LatencyMS   int64 // each request takes from this to twice this
}

type inflightFigures struct {
	gauge lab.Gauge
	used  used
}

func runInflight(ctx context.Context, args []string) error {
	var o inflightOptions
	flags := flag.NewFlagSet("inflight", flag.ContinueOnError)
	flags.IntVar(&o.Episodes, "episodes", 30_000, "episodes of one call")
	flags.IntVar(&o.Concurrency, "concurrency", 10_000, "episodes in flight")
	flags.IntVar(&o.PromptBytes, "prompt", 8<<10, "bytes of a prompt")
	flags.Int64Var(&o.LatencyMS, "latency", 10_000, "least milliseconds of a call; the most are twice as many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w, err := openWorkshop(ctx)
	if err != nil {
		return err
	}
	f, err := inflight(ctx, w, o)
	if err := errors.Join(err, w.close()); err != nil {
		return err
	}
	fmt.Printf("%d episodes, %d at once, prompts of %d bytes, latency %d to %d ms; talaria and lab in processes of their own\n",
		o.Episodes, o.Concurrency, o.PromptBytes, o.LatencyMS, 2*o.LatencyMS)
	fmt.Printf("requests at the lab at once, at most   %d\n", f.gauge.MaxInFlight)
	fmt.Printf("requests                               %d\n", f.gauge.Requests)
	fmt.Printf("peak resident memory of talaria        %s\n", mib(f.used.peak))
	fmt.Printf("  for each request in flight           %.1f KiB\n", float64(f.used.peak)/1024/float64(f.gauge.MaxInFlight))
	fmt.Printf("CPU for each episode                   %.0f µs\n", float64(f.used.cpu.Microseconds())/float64(o.Episodes))
	return nil
}

// inflight runs the episodes against a lab and tells how many requests were
// open at once.
func inflight(ctx context.Context, w *workshop, o inflightOptions) (f inflightFigures, err error) {
	if err := w.tasks(o.Episodes, o.PromptBytes); err != nil {
		return f, err
	}
	config := fmt.Sprintf(`version: 1
name: inflight
tasks: {path: tasks.jsonl, columns: {id: id, input: question, target: answer}}
env: {name: answer}
agent: {model: openai/lab}
score: [{name: numeric, extract: last_number}]
limits: {concurrency: {episodes: %d, requests: %d}}
`, o.Concurrency, o.Concurrency)
	if err := w.write("inflight.yaml", config); err != nil {
		return f, err
	}
	s, err := w.serve(ctx, lab.Script{LatencyMinMS: o.LatencyMS, LatencyMaxMS: 2 * o.LatencyMS})
	if err != nil {
		return f, err
	}
	defer s.stop()
	f.used, err = w.run(ctx, "run", w.path("inflight.yaml"), "--base-url", s.url, "--out", w.path("inflight"), "--quiet")
	if err != nil {
		return f, err
	}
	f.gauge, err = s.gauge(ctx)
	return f, err
}
