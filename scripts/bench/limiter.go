//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// limiterOptions say what the servers are like. One config runs against all.
type limiterOptions struct {
	Slots      []int
	LatencyMS  int64 // each request takes from half of this to one and a half
	RetryAfter int   // seconds
	Queue      int   // -1: they let requests wait, instead of refusing them
}

// The moments of a case, in seconds since the first request. At drop the
// server has a quarter of its slots left.
const (
	settled  = 20
	drop     = 30
	followed = 40
	judged   = 60
	episodes = 41 // for each slot and second of latency: until judged, and a little more
)

// limiterFigures are the gauges at the moments of a case and at its end.
type limiterFigures struct {
	slots int
	at    map[int]lab.Gauge
	end   lab.Gauge
}

func runLimiter(ctx context.Context, args []string) (err error) {
	var o limiterOptions
	var slots string
	flags := flag.NewFlagSet("limiter", flag.ContinueOnError)
	flags.StringVar(&slots, "slots", "4,32,256", "requests that each server serves at once")
	flags.Int64Var(&o.LatencyMS, "latency", 500, "milliseconds of a call on average; from half to one and a half times so long")
	flags.IntVar(&o.RetryAfter, "retry-after", 0, "seconds that the servers ask to wait; 0: nothing")
	flags.IntVar(&o.Queue, "queue", 0, "requests that wait at the server; -1: any number")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for text := range strings.SplitSeq(slots, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 4 {
			return fmt.Errorf("slots %q: want numbers from 4 on", text)
		}
		o.Slots = append(o.Slots, n)
	}
	w, err := openWorkshop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return limiter(ctx, w, o)
}

func limiter(ctx context.Context, w *workshop, o limiterOptions) error {
	if err := w.tasks(o.episodes(o.Slots[len(o.Slots)-1]), 0); err != nil {
		return err
	}
	err := w.write("limiter.yaml", `version: 1
name: limiter
tasks: {path: tasks.jsonl, columns: {id: id, input: question, target: answer}}
env: {name: answer}
agent: {model: openai/lab}
score: [{name: numeric, extract: last_number}]
limits: {concurrency: {episodes: 1024, requests: 1024}}
`)
	if err != nil {
		return err
	}
	fmt.Printf("latency %d to %d ms, Retry-After %d s, queue %d; limits.concurrency.requests is 1024 in all cases\n",
		o.LatencyMS/2, 3*o.LatencyMS/2, o.RetryAfter, o.Queue)
	fmt.Printf("answers a second, in shares of the best (slots / latency); after %d s the server has a quarter of its slots\n\n", drop)
	fmt.Printf("%6s %8s %9s %11s %13s %11s %9s\n", "slots", "0-30 s", "20-30 s", "then 40-60", "requests", "refused", "wasted")
	for _, slots := range o.Slots {
		f, err := limiterCase(ctx, w, o, slots)
		if err != nil {
			return err
		}
		f.print(o)
	}
	return nil
}

func (o limiterOptions) episodes(slots int) int {
	return int(int64(slots*episodes) * 1000 / o.LatencyMS)
}

func (f limiterFigures) print(o limiterOptions) {
	fmt.Printf("%6d %8.3f %9.3f %11.3f %13d %11d %8.1f%%\n", f.slots,
		f.share(o, 0, drop, f.slots), f.share(o, settled, drop, f.slots), f.share(o, followed, judged, f.slots/4),
		f.end.Requests, f.end.Capacity.Refused, 100*float64(f.end.Capacity.Refused)/float64(f.end.Requests))
}

// share is the answers from one moment to another, of the most that so many
// slots can give.
func (f limiterFigures) share(o limiterOptions, from, to, slots int) float64 {
	answers := func(g lab.Gauge) int64 { return g.Requests - g.Capacity.Refused }
	best := float64(slots) / (float64(o.LatencyMS) / 1000) * float64(to-from)
	return float64(answers(f.at[to])-answers(f.at[from])) / best
}

// limiterCase runs against one server, and reads its gauge at the moments.
func limiterCase(ctx context.Context, w *workshop, o limiterOptions, slots int) (f limiterFigures, err error) {
	s, err := w.serve(ctx, lab.Script{
		LatencyMinMS: o.LatencyMS / 2, LatencyMaxMS: 3 * o.LatencyMS / 2,
		Capacity: lab.Capacity{
			Slots: slots, Queue: o.Queue, RetryAfter: o.RetryAfter,
			Changes: []lab.CapacityChange{{AfterMS: drop * 1000, Slots: slots / 4}},
		},
	})
	if err != nil {
		return f, err
	}
	defer s.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1) // from the run; read once
	go func() {
		_, err := w.run(ctx, "run", w.path("limiter.yaml"), "--base-url", s.url, "--quiet",
			"--limit", strconv.Itoa(o.episodes(slots)), "--out", w.path("limiter-"+strconv.Itoa(slots)))
		if ended <- err; err != nil {
			cancel() // there is nothing to watch
		}
	}()
	f = limiterFigures{slots: slots, at: map[int]lab.Gauge{}}
	watched := s.watch(ctx, f.at)
	if err := errors.Join(<-ended, watched); err != nil {
		return f, err
	}
	f.end, err = s.gauge(ctx)
	return f, err
}

// watch reads the gauge at the moments, counted from the first request.
func (s *server) watch(ctx context.Context, at map[int]lab.Gauge) error {
	var g lab.Gauge
	for g.Open == 0 && g.Requests == 0 {
		time.Sleep(5 * time.Millisecond)
		var err error
		if g, err = s.gauge(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	at[0] = g
	for _, second := range []int{settled, drop, followed, judged} {
		time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
		var err error
		if at[second], err = s.gauge(ctx); err != nil {
			return err
		}
	}
	return nil
}
