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
	"os"

	"golang.org/x/sync/errgroup"
)

// request is one model call as talaria sent it.
type request struct {
	CallID string `json:"call_id"`
	Body   []byte `json:"body"`
}

// episode is the requests of one episode, in order.
type episode []request

// runBare sends the episodes of a file and throws the answers away:
// bare URL CONCURRENCY FILE.
func runBare(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: bare URL CONCURRENCY FILE")
	}
	var concurrency int
	if _, err := fmt.Sscan(args[1], &concurrency); err != nil {
		return fmt.Errorf("concurrency %q: %w", args[1], err)
	}
	data, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	var episodes []episode
	if err := json.Unmarshal(data, &episodes); err != nil {
		return fmt.Errorf("reading %s: %w", args[2], err)
	}
	transport := &http.Transport{
		MaxIdleConns: concurrency, MaxIdleConnsPerHost: concurrency, MaxConnsPerHost: concurrency,
	}
	client := &http.Client{Transport: transport}
	return measure(func() error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(concurrency)
		for _, e := range episodes {
			g.Go(func() error { return send(ctx, client, args[0], e) })
		}
		return g.Wait()
	})
}

func send(ctx context.Context, client *http.Client, url string, e episode) error {
	for _, r := range e {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", bytes.NewReader(r.Body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Client-Request-Id", r.CallID)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("request %s: status %d", r.CallID, resp.StatusCode)
		}
	}
	return nil
}
