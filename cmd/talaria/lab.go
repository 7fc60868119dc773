package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/agent/model/lab"
)

func newLabCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:        "lab",
		Usage:       "Serves models that answer by script, for tests and trials without a provider.",
		UsageText:   "talaria lab serve --addr 127.0.0.1:8080",
		Subcommands: []*cli.Command{newLabServeCommand(std)},
	}
}

type labServeOptions struct {
	addr    string
	script  string   // a file of JSON; empty for none
	set     []string // key=value, over the script
	ledger  string   // a file to append to; empty for none
	seed    *int64   // nil: the script's
	latency string   // MIN-MAX; empty: the script's
}

func newLabServeCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "Serves chat completions with scripted answers, latency and faults until it is interrupted.",
		UsageText: "talaria lab serve --addr 127.0.0.1:8080 --latency 5ms-20ms",
		Description: "The first line on stdout is the base URL. The ledger of all requests is at /ledger of the same\n" +
			"host. What a request gets depends on script, seed and request alone.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "listen on `HOST:PORT`; port 0 picks a free one", Value: "127.0.0.1:0"},
			&cli.StringFlag{Name: "script", Usage: "do what the JSON in `FILE` says"},
			&cli.StringSliceFlag{Name: "set", Usage: "set a `KEY=VALUE` of the script, such as turns=2; may be repeated"},
			&cli.StringFlag{Name: "ledger", Usage: "append a line to `FILE` for each request that ended"},
			&cli.Int64Flag{Name: "seed", Usage: "draw answers and faults from seed `N`"},
			&cli.StringFlag{Name: "latency", Usage: "answer after `MIN-MAX`, such as 5ms-20ms"},
		},
		Action: func(c *cli.Context) error {
			opts := labServeOptions{
				addr:    c.String("addr"),
				script:  c.String("script"),
				set:     c.StringSlice("set"),
				ledger:  c.String("ledger"),
				latency: c.String("latency"),
			}
			if c.IsSet("seed") {
				opts.seed = new(c.Int64("seed"))
			}
			return runLabServe(c.Context, opts, std)
		},
	}
}

func runLabServe(ctx context.Context, opts labServeOptions, std *stdio) (err error) {
	script, err := labScript(opts)
	if err != nil {
		return &usageError{command: "talaria lab serve", err: err}
	}
	server, err := lab.New(script)
	if err != nil {
		return &usageError{command: "talaria lab serve", err: err}
	}
	if opts.ledger != "" {
		file, err := os.OpenFile(opts.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("opening the ledger: %w", err)
		}
		defer func() { err = errors.Join(err, server.Err(), file.Close()) }()
		server.LogTo(file)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", opts.addr)
	if err != nil {
		return fmt.Errorf("starting the lab: %w", err)
	}
	if _, err := fmt.Fprintf(std.out, "http://%s/v1\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serveLab(ctx, server, listener)
}

// serveLab serves until ctx is done, which is how a lab ends, and then lets
// the requests at hand end.
func serveLab(ctx context.Context, server *lab.Server, listener net.Listener) error {
	web := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1) // from Serve; read at most once
	go func() { failed <- web.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving the lab: %w", err)
	case <-ctx.Done():
	}
	server.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(ending); err != nil {
		return fmt.Errorf("stopping the lab: %w", err)
	}
	return nil
}
