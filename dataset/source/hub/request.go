package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// tries is how often a request is made before the hub counts as unreachable.
const tries = 5

// maxAnswer bounds what the hub says of a dataset, in bytes.
const maxAnswer = 64 << 20

// unreachableError says that the hub gave no answer, however often it was asked.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return fmt.Sprintf("the hub cannot be reached: %v", e.err) }

func (e *unreachableError) Unwrap() error { return e.err }

// get reads JSON into v. next is the address of the next page, if there is one.
func (c *Client) get(ctx context.Context, address string, v any) (next string, err error) {
	err = c.retry(ctx, func() error {
		resp, err := c.do(ctx, address, 0)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		switch {
		case err != nil:
			return err
		case len(data) > maxAnswer:
			return backoff.Permanent(fmt.Errorf("the answer of %s is larger than %d MiB", address, maxAnswer>>20))
		}
		if err := json.Unmarshal(data, v); err != nil {
			return backoff.Permanent(fmt.Errorf("the answer of %s is not what a hub says: %w", address, err))
		}
		next = c.nextPage(resp.Header.Get("Link"))
		return nil
	})
	return next, err
}

// nextPage finds the next page in a Link header; of another server there is none.
func (c *Client) nextPage(link string) string {
	m := regexp.MustCompile(`<([^>]+)>;\s*rel="next"`).FindStringSubmatch(link)
	if m == nil || !strings.HasPrefix(m[1], c.opts.Endpoint+"/") {
		return ""
	}
	return m[1]
}

// retry makes a request until it succeeds or is refused for good.
func (c *Client) retry(ctx context.Context, request func() error) error {
	schedule := backoff.NewExponentialBackOff()
	schedule.InitialInterval = c.opts.Wait
	var final error // that no retry changes
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := request()
		if p, ok := errors.AsType[*backoff.PermanentError](err); ok {
			final = p.Err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(schedule), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case final != nil:
		return final
	}
	if damaged, ok := errors.AsType[*damagedError](err); ok {
		return damaged
	}
	return &unreachableError{err}
}

// damagedError says that a file came otherwise than the hub lists it.
type damagedError struct{ what string }

func (e *damagedError) Error() string { return e.what + "; try again later" }

// do asks for an address, from a byte on. The answer is 200, or 206 where only
// the rest is sent; the caller closes its body, which ends when the server says
// nothing for too long.
func (c *Client) do(ctx context.Context, address string, from int64) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(c.opts.Silence, func() {
		cancel(fmt.Errorf("the hub said nothing for %v", c.opts.Silence))
	})
	resp, err := c.send(ctx, address, from)
	if err != nil {
		watch.Stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &watched{ReadCloser: resp.Body, ctx: ctx, watch: watch, silence: c.opts.Silence, cancel: cancel}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

func (c *Client) send(ctx context.Context, address string, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, backoff.Permanent(fmt.Errorf("asking %s: %w", address, err))
	}
	if c.opts.UserAgent != "" {
		req.Header.Set("User-Agent", c.opts.UserAgent)
	}
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token) // net/http drops it on the way to another host
	}
	if from > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
	}
	return c.http.Do(req)
}

// watched is a body that ends when nothing comes for too long.
type watched struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // of the request, whose cause is the error
	watch   *time.Timer
	silence time.Duration
	cancel  context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.watch.Reset(w.silence)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(w.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

// Close ends the request.
func (w *watched) Close() error {
	w.watch.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// refusal says what a status means and what to do.
func (c *Client) refusal(resp *http.Response) error {
	status, code := resp.StatusCode, resp.Header.Get("X-Error-Code")
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError || status == http.StatusRequestTimeout {
		wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err == nil && wait > 0 && wait <= 300 {
			return backoff.RetryAfter(wait)
		}
		return fmt.Errorf("it answers with status %d", status)
	}
	return backoff.Permanent(errors.New(c.reason(status, code)))
}

func (c *Client) reason(status int, code string) string {
	remedy := "set HF_TOKEN to a token that may read it"
	if c.opts.Token != "" {
		remedy = "HF_TOKEN is set, but its owner may not read it"
	}
	switch {
	case code == "GatedRepo":
		return fmt.Sprintf("the dataset is gated (status %d): ask for access on its page at %s, and %s", status, c.opts.Endpoint, remedy)
	case code == "RevisionNotFound":
		return "the dataset has no such revision; revision= is a branch, a tag or a commit of it"
	case code == "EntryNotFound":
		return "the file is no longer there; give a commit as revision="
	case code == "RepoNotFound" || status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Sprintf("there is no such dataset on %s, or it is private (status %d): look at its name, or %s", c.opts.Endpoint, status, remedy)
	case status == http.StatusNotFound:
		return fmt.Sprintf("%s does not know it (status %d); HF_ENDPOINT names the hub", c.opts.Endpoint, status)
	}
	return fmt.Sprintf("the hub refuses with status %d", status)
}
