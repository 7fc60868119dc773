//go:build unix

// Command bench measures what Talaria costs. Anyone can repeat it, from the
// root of the repository:
//
//	go run ./scripts/bench harness    CPU time beside a bare loop
//	go run ./scripts/bench inflight   memory with thousands of requests open
//	go run ./scripts/bench rows       memory and resume with a million rows
//	go run ./scripts/bench limiter    requests at once beside what servers bear
//	go run ./scripts/bench formats    bytes and questions, Parquet beside JSON lines
//
// The first prints CPU-seconds per episode, the median of interleaved rounds, of
//
//	(a) a bare loop that sends the same HTTP requests and throws the answers away
//	(b) talaria run
//	(c) encoding the same rows once as journal and once as Parquet
//
// counting the client's process only, and the ratio of (b) to (a) + (c).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// role is a part of the measurement that runs in a process of its own.
type role func(ctx context.Context, args []string) error

func roles() map[string]role {
	return map[string]role{
		"harness": runHarness, "inflight": runInflight, "rows": runRows, "limiter": runLimiter, "formats": runFormats,
		"bare": runBare, "encode": runEncode, // of harness
	}
}

const measures = "harness, inflight, rows, limiter or formats"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := dispatch(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to measure: " + measures)
	}
	run, ok := roles()[args[0]]
	if !ok {
		return fmt.Errorf("there is nothing called %q to measure: want %s", args[0], measures)
	}
	return run(ctx, args[1:])
}

// options of a measurement.
type options struct {
	Episodes    int
	Rounds      int
	Concurrency int
	Turns       int
	Profile     string // a file for a CPU profile of talaria run, "": none
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("harness", flag.ContinueOnError)
	flags.IntVar(&o.Episodes, "episodes", 3000, "episodes of a round")
	flags.IntVar(&o.Rounds, "rounds", 7, "rounds")
	flags.IntVar(&o.Concurrency, "concurrency", 64, "episodes in flight")
	flags.IntVar(&o.Turns, "turns", 2, "tool calls of an episode; it has one turn more")
	flags.StringVar(&o.Profile, "profile", "", "after the rounds, write a CPU profile of one more talaria run to this file")
	return o, flags.Parse(args)
}
