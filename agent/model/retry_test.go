package model_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// outcome is how one try ends, after a second of work.
type outcome struct {
	resp model.Response
	err  error
}

// tries plays outcomes, one a try.
func tries(t *testing.T, outcomes ...outcome) (m model.Model, made *int) {
	t.Helper()
	made = new(int)
	return generator(func(_ context.Context, req model.Request) (model.Response, error) {
		pass(time.Second)
		if req.Try != *made {
			t.Errorf("try %d calls itself %d", *made, req.Try)
		}
		if *made >= len(outcomes) {
			t.Fatalf("try %d is one too many", *made)
		}
		o := outcomes[*made]
		*made++
		return o.resp, o.err
	}), made
}

func failed(class string, status int) *model.Error {
	return &model.Error{Class: class, Status: status, Retryable: true, Err: errors.New("scripted")}
}

func TestRetryAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := failed(model.ClassTimeout, 0)
		lost.Sent = true
		empty := failed(model.ClassBadResponse, 200)
		empty.Sent = true
		refused := failed(model.ClassRateLimit, 429)
		refused.RetryAfter = 30 * time.Second
		queued := model.Try{Kind: dataset.SpanLimiter, Start: time.Now(), Duration: 100 * time.Millisecond}
		last := reply(100)
		last.RequestID = "r3"
		inner, made := tries(
			t,
			outcome{model.Response{RequestID: "r0", Tries: []model.Try{queued}, Paused: queued.Duration}, refused},
			outcome{model.Response{}, lost},
			outcome{model.Response{Usage: &dataset.Usage{Input: 20, Output: 1}}, empty},
			outcome{last, nil},
		)
		ctx, clock, cancel := model.WithClock(t.Context(), 0)
		defer cancel()
		begin := time.Now()
		got, err := model.Retry(inner, model.RetryOptions{Base: time.Hour}).Generate(ctx, model.Request{CallID: "c"})
		if err != nil || *made != 4 {
			t.Fatalf("%d tries, error %v", *made, err)
		}
		wantWorked(t, clock, 4*time.Second)
		if want := time.Since(begin) - 4*time.Second + queued.Duration; got.Paused != want {
			t.Errorf("paused %v, want %v", got.Paused, want)
		}
		if diff := cmp.Diff(&dataset.Usage{Input: 120, Output: 101}, got.Usage); diff != "" {
			t.Errorf("usage of all tries (-want +got):\n%s", diff)
		}
		if got.Unreported != 1 || got.RequestID != "r3" || got.Message.Content != "ok" {
			t.Errorf("unreported %d, request id %q, content %q", got.Unreported, got.RequestID, got.Message.Content)
		}
		want := []model.Try{
			queued,
			{Kind: dataset.SpanRetry, Start: begin.Add(queued.Duration), Duration: time.Second - queued.Duration, ErrorClass: model.ClassRateLimit, Status: 429, RequestID: "r0"},
			{Kind: dataset.SpanLimiter},
			{Kind: dataset.SpanRetry, ErrorClass: model.ClassTimeout, Duration: time.Second},
			{Kind: dataset.SpanLimiter},
			{Kind: dataset.SpanRetry, ErrorClass: model.ClassBadResponse, Status: 200, Duration: time.Second},
			{Kind: dataset.SpanLimiter},
		}
		takeRandom(want, got.Tries)
		if diff := cmp.Diff(want, got.Tries); diff != "" {
			t.Fatalf("tries (-want +got):\n%s", diff)
		}
		if wait := got.Tries[2].Duration; wait < 30*time.Second || wait >= 30*time.Second+time.Hour {
			t.Errorf("waited %v where Retry-After asked for 30s", wait)
		}
	})
}

// takeRandom copies from got into want how long it waited between tries, and
// the starts of what followed.
func takeRandom(want, got []model.Try) {
	for i := 2; i < min(len(want), len(got)); i++ {
		want[i].Start = got[i].Start
		if want[i].Kind == dataset.SpanLimiter {
			want[i].Duration = got[i].Duration
		}
	}
}

// TestRetryWaits draws many schedules and wants each wait below its bound, and
// the draws spread over it.
func TestRetryWaits(t *testing.T) {
	const n = 200
	bounds := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	low, highest := make([]int, len(bounds)), make([]time.Duration, len(bounds))
	for range n {
		synctest.Test(t, func(t *testing.T) {
			e := failed(model.ClassServer, 500)
			o := outcome{model.Response{}, e}
			inner, _ := tries(t, o, o, o, o, o, o)
			got, err := model.Retry(inner, model.RetryOptions{Tries: 6, Base: time.Second, Cap: 5 * time.Second}).Generate(t.Context(), model.Request{})
			wantClass(t, err, model.ClassServer, e)
			i := -1
			for _, try := range got.Tries {
				if try.Kind != dataset.SpanLimiter {
					i++
					continue
				}
				if try.Duration > bounds[i] {
					t.Errorf("wait %d is %v, more than %v", i, try.Duration, bounds[i])
				}
				if try.Duration < bounds[i]/2 {
					low[i]++
				}
				highest[i] = max(highest[i], try.Duration)
			}
		})
	}
	for i := range bounds {
		if low[i] < n/4 || low[i] > n*3/4 || highest[i] < bounds[i]*3/4 {
			t.Errorf("wait %d: %d of %d in the lower half, highest %v of %v", i, low[i], n, highest[i], bounds[i])
		}
	}
}

func TestRetryEnds(t *testing.T) {
	fatal := &model.Error{Class: model.ClassAuth, Fatal: true, Status: 401, Err: errors.New("no")}
	tests := []struct {
		name  string
		err   error
		tries int
		made  int
	}{
		{"not retryable", fatal, 5, 1},
		{"unknown", errors.New("odd"), 5, 1},
		{"used up", failed(model.ClassServer, 500), 3, 3},
		{"one try", failed(model.ClassServer, 500), 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := outcome{model.Response{RequestID: "r"}, tt.err}
				inner, made := tries(t, o, o, o, o, o)
				got, err := model.Retry(inner, model.RetryOptions{Tries: tt.tries}).Generate(t.Context(), model.Request{})
				if !errors.Is(err, tt.err) || *made != tt.made {
					t.Errorf("%d tries, want %d; error %v", *made, tt.made, err)
				}
				retries := 0
				for _, try := range got.Tries {
					if try.Kind == dataset.SpanRetry {
						retries++
					}
				}
				if retries != tt.made || got.RequestID != "r" || got.Unreported != 0 {
					t.Errorf("%d failed tries recorded, request id %q, unreported %d", retries, got.RequestID, got.Unreported)
				}
			})
		})
	}
}

func TestRetryAfterIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := failed(model.ClassRateLimit, 429)
		e.RetryAfter = 24 * time.Hour
		inner, _ := tries(t, outcome{model.Response{}, e}, outcome{reply(1), nil})
		got, err := model.Retry(inner, model.RetryOptions{MaxRetryAfter: time.Minute}).Generate(t.Context(), model.Request{})
		if err != nil || got.Paused < time.Minute || got.Paused > time.Minute+time.Second {
			t.Errorf("paused %v, error %v", got.Paused, err)
		}
	})
}

func TestRetryWaitIsCapped(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			inner, _ := tries(t, outcome{model.Response{}, failed(model.ClassServer, 500)}, outcome{reply(1), nil})
			got, err := model.Retry(inner, model.RetryOptions{Base: time.Hour, Cap: time.Minute}).Generate(t.Context(), model.Request{})
			if err != nil || got.Paused > time.Minute {
				t.Errorf("paused %v, error %v", got.Paused, err)
			}
		})
	}
}

// TestRetryCancelled ends a wait of an hour at once.
func TestRetryCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := failed(model.ClassRateLimit, 429)
		e.RetryAfter = time.Hour
		e.Sent = true
		inner, _ := tries(t, outcome{model.Response{}, e})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(dataset.ErrInterrupted) })
		begin := time.Now()
		got, err := model.Retry(inner, model.RetryOptions{MaxRetryAfter: 2 * time.Hour}).Generate(ctx, model.Request{})
		wantClass(t, err, model.ClassCancelled, dataset.ErrInterrupted)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("returned after %v", took)
		}
		if got.Unreported != 1 || len(got.Tries) != 2 || got.Paused != 59*time.Second {
			t.Errorf("unreported %d, paused %v, tries %+v", got.Unreported, got.Paused, got.Tries)
		}
	})
}

// TestRetryReleasesTheSlot makes calls wait for their next try without holding
// a slot of the endpoint.
func TestRetryReleasesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := failed(model.ClassServer, 500)
		e.RetryAfter = time.Hour
		inner := generator(func(_ context.Context, req model.Request) (model.Response, error) {
			if req.CallID == "slow" && req.Try == 0 {
				return model.Response{}, e
			}
			return reply(1), nil
		})
		m := model.Retry(model.Limit(inner, model.NewLimiter(1, model.LimiterOptions{})), model.RetryOptions{MaxRetryAfter: time.Hour})
		done := make(chan error)
		go func() {
			_, err := m.Generate(t.Context(), model.Request{CallID: "slow"})
			done <- err
		}()
		synctest.Wait()
		begin := time.Now()
		if _, err := m.Generate(t.Context(), model.Request{}); err != nil || time.Since(begin) != 0 {
			t.Errorf("waited %v for a slot, error %v", time.Since(begin), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestRetrySumsCost keeps a cost only if each try that used tokens told its own.
func TestRetrySumsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		priced := func(cost int64) model.Response {
			r := reply(1)
			r.CostNanoUSD = &cost
			return r
		}
		for _, tt := range []struct {
			name        string
			first, last model.Response
			want        *int64
		}{
			{"both", priced(3), priced(4), new(int64(7))},
			{"only the last", reply(1), priced(4), nil},
			{"only the first", priced(3), reply(1), nil},
			{"last used nothing", priced(3), model.Response{}, new(int64(3))},
			{"first used nothing", model.Response{}, priced(4), new(int64(4))},
		} {
			inner, _ := tries(t, outcome{tt.first, failed(model.ClassBadResponse, 200)}, outcome{tt.last, nil})
			got, err := model.Retry(inner, model.RetryOptions{}).Generate(t.Context(), model.Request{})
			if diff := cmp.Diff(tt.want, got.CostNanoUSD); diff != "" || err != nil {
				t.Errorf("%s: error %v, cost (-want +got):\n%s", tt.name, err, diff)
			}
		}
	})
}

func TestRetryAfterDate(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		header string
		want   time.Duration
	}{
		{at.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{at.Add(-90 * time.Second).Format(http.TimeFormat), 0},
		{"12", 12 * time.Second},
		{"0.5", 500 * time.Millisecond},
		{"-1", 0},
		{"NaN", 0},
		{strconv.Itoa(1 << 40), 24 * time.Hour},
		{"soon", 0},
		{"", 0},
	} {
		if got := model.RetryAfter(http.Header{"Retry-After": {tt.header}}, at); got != tt.want {
			t.Errorf("Retry-After %q: %v, want %v", tt.header, got, tt.want)
		}
	}
}
