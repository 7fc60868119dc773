package model_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
)

// server is an endpoint with slots, which keeps as many calls waiting as its
// queue is long and refuses the others.
type server struct {
	slots func(at time.Duration) int // since it began
	queue int                        // calls; -1: without end
	takes func(r *rand.Rand) time.Duration
	// after is what it asks refused calls to wait; 0: nothing.
	after time.Duration
	// fails is the share of calls that it refuses whatever its slots.
	fails float64

	mu      sync.Mutex
	began   time.Time
	random  *rand.Rand
	busy    int
	waiting []chan struct{} // in order
	refused int
	calls   int
	used    []time.Duration // slot time of the answers in each second
	limits  []int           // in force in each second
}

const afar = 5 * time.Millisecond // that a refusal takes

func (s *server) Generate(ctx context.Context, _ model.Request) (model.Response, error) {
	turn, takes, ok := s.enter()
	if !ok {
		pass(afar)
		e := failed(model.ClassRateLimit, 429)
		e.RetryAfter = s.after
		return model.Response{}, e
	}
	if turn != nil {
		<-turn
	}
	pass(takes)
	s.leave(takes)
	return reply(1), nil
}

func (s *server) enter() (turn chan struct{}, takes time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	takes = s.takes(s.random)
	switch {
	case s.random.Float64() < s.fails:
	case s.busy < s.slots(time.Since(s.began)):
		s.busy++
		return nil, takes, true
	case s.queue < 0 || len(s.waiting) < s.queue:
		turn = make(chan struct{})
		s.waiting = append(s.waiting, turn)
		return turn, takes, true
	}
	s.refused++
	return nil, 0, false
}

func (s *server) leave(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	second := int(time.Since(s.began) / time.Second)
	for len(s.used) <= second {
		s.used = append(s.used, 0)
	}
	s.used[second] += took
	s.busy--
	for len(s.waiting) > 0 && s.busy < s.slots(time.Since(s.began)) {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.busy++
	}
}

// use is the share of the slots that was in use from one time to another.
func (s *server) use(from, to int) float64 {
	var used, had float64
	for i := from; i < to && i < len(s.used); i++ {
		used += s.used[i].Seconds()
		had += float64(s.slots(time.Duration(i) * time.Second))
	}
	return used / had
}

// limit is the mean of the limits in force from one time to another.
func (s *server) limit(from, to int) float64 {
	sum := 0
	for _, n := range s.limits[from:to] {
		sum += n
	}
	return float64(sum) / float64(to-from)
}

func steady(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func uniform(from, to time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
}

// skewed has a median, a mean 1.65 times as long, and a long tail.
func skewed(median time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(float64(median) * math.Exp(r.NormFloat64()))
	}
}

func always(n int) func(time.Duration) int { return func(time.Duration) int { return n } }

// drive lets so many callers call s through a limiter for a time.
func (s *server) drive(t *testing.T, l *model.Limiter, callers int, lasts time.Duration) {
	t.Helper()
	s.began, s.random = time.Now(), rand.New(rand.NewPCG(1, 2))
	m := model.Retry(model.Limit(s, l), model.RetryOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			s.limits = append(s.limits, l.State().Limit)
			pass(time.Second)
		}
	})
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = m.Generate(ctx, model.Request{})
			}
		})
	}
	wg.Wait()
}

// quarter has c slots, and after a minute a quarter of them.
func quarter(c int) func(time.Duration) int {
	return func(at time.Duration) int {
		if at < time.Minute {
			return c
		}
		return c / 4
	}
}

// TestLimitFollowsRefusals runs one limiter against servers of every size that
// refuse what is beyond their slots: it finds out how many they have, wastes
// few calls on it, and follows when they become fewer.
func TestLimitFollowsRefusals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes func(*rand.Rand) time.Duration
		after time.Duration
	}{
		{"steady", steady(200 * time.Millisecond), 0},
		{"uniform", uniform(100*time.Millisecond, 300*time.Millisecond), 0},
		{"slow", uniform(500*time.Millisecond, 1500*time.Millisecond), 0},
		{"skewed", skewed(150 * time.Millisecond), 0},
		{"Retry-After", uniform(100*time.Millisecond, 300*time.Millisecond), time.Second},
	} {
		for _, c := range []int{4, 32, 256} {
			if c == 256 && tt.name != "uniform" && tt.name != "Retry-After" {
				continue // tens of thousands of calls show no more
			}
			t.Run(fmt.Sprintf("%s/%d", tt.name, c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{slots: quarter(c), takes: tt.takes, after: tt.after}
					l := model.NewLimiter(1000, model.LimiterOptions{})
					s.drive(t, l, 300, 2*time.Minute)
					s.wantFollowed(t, l.State(), c/4)
				})
			})
		}
	}
}

// wantFollowed wants the slots to have been in use before and after most of
// them went, few calls to have been refused, and the limit to be about slots.
func (s *server) wantFollowed(t *testing.T, st model.LimiterState, slots int) {
	t.Helper()
	if got := s.use(5, 60); got < 0.93 {
		t.Errorf("%.3f of the slots were in use, want 0.93", got)
	}
	if got := s.use(75, 120); got < 0.9 {
		t.Errorf("%.3f of the slots were in use after most had gone, want 0.9", got)
	}
	if got := float64(s.refused) / float64(s.calls); got > 0.04 {
		t.Errorf("%.3f of %d calls were refused, want 0.04 at most", got, s.calls)
	}
	if st.Limit > slots+slots/4+1 || st.Reason != model.ReasonRefused && st.Reason != model.ReasonGrowing {
		t.Errorf("the limit is %d (%s), want about %d for refusals", st.Limit, st.Reason, slots)
	}
}

// TestLimitFollowsLatency runs it against servers that let calls wait: all
// slots are in use, and not many calls wait for one.
func TestLimitFollowsLatency(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes func(*rand.Rand) time.Duration
		slots int
	}{
		{"steady", steady(200 * time.Millisecond), 4},
		{"uniform", uniform(100*time.Millisecond, 300*time.Millisecond), 32},
		{"slow", uniform(500*time.Millisecond, 1500*time.Millisecond), 32},
		{"skewed", skewed(150 * time.Millisecond), 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{slots: always(tt.slots), queue: -1, takes: tt.takes}
				l := model.NewLimiter(1000, model.LimiterOptions{})
				s.drive(t, l, 300, 2*time.Minute)
				if got := s.use(5, 120); got < 0.95 {
					t.Errorf("%.3f of the slots were in use, want 0.95", got)
				}
				if got, slots := s.limit(60, 120), float64(tt.slots); got < slots || got > 4*slots {
					t.Errorf("the limit is %.1f for %d slots", got, tt.slots)
				}
			})
		})
	}
}

// TestLimitReachesItsCeiling leaves a server alone that has slots for all:
// however its latency varies and drifts, and though it refuses some calls for
// reasons of its own.
func TestLimitReachesItsCeiling(t *testing.T) {
	drifting := func() func(*rand.Rand) time.Duration { // prompts grow: from a second to ten
		start := time.Now()
		return func(r *rand.Rand) time.Duration {
			longer := 1 + 9*min(1, time.Since(start).Seconds()/100)
			return time.Duration(longer * (0.5 + r.Float64()) * float64(time.Second))
		}
	}
	always := func(f func(*rand.Rand) time.Duration) func() func(*rand.Rand) time.Duration {
		return func() func(*rand.Rand) time.Duration { return f }
	}
	for _, tt := range []struct {
		name    string
		takes   func() func(*rand.Rand) time.Duration
		ceiling int
		fails   float64
		within  time.Duration
	}{
		{"10 to 20 s", always(uniform(10*time.Second, 20*time.Second)), 64, 0, 30 * time.Second},
		{"10 to 20 s, a thousand", always(uniform(10*time.Second, 20*time.Second)), 1000, 0, 100 * time.Second},
		{"skewed", always(skewed(time.Second)), 200, 0, 30 * time.Second},
		{"quick", always(steady(time.Millisecond)), 64, 0, 2 * time.Second},
		{"drifting", drifting, 256, 0, 200 * time.Second},
		{"some refused", always(skewed(time.Second)), 64, 0.02, 60 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{slots: func(time.Duration) int { return math.MaxInt }, takes: tt.takes(), fails: tt.fails}
				l := model.NewLimiter(tt.ceiling, model.LimiterOptions{})
				s.drive(t, l, tt.ceiling+10, tt.within)
				want := model.LimiterState{Limit: tt.ceiling, Ceiling: tt.ceiling, Reason: model.ReasonCeiling}
				if diff := cmp.Diff(want, l.State(), cmpopts.IgnoreFields(model.LimiterState{}, "Status")); diff != "" {
					t.Errorf("after %v (-want +got):\n%s", tt.within, diff)
				}
			})
		})
	}
}

// TestLimitObeysRetryAfter lets nobody in while the endpoint wants to be left
// alone: of many calls, only those that were there already burn a try.
func TestLimitObeysRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		begin := time.Now()
		inner := generator(func(context.Context, model.Request) (model.Response, error) {
			calls++
			if time.Since(begin) < 30*time.Second {
				e := failed(model.ClassRateLimit, 429)
				e.RetryAfter = 30 * time.Second
				return model.Response{}, e
			}
			return reply(1), nil
		})
		l := model.NewLimiter(64, model.LimiterOptions{})
		m := model.Retry(model.Limit(inner, l), model.RetryOptions{})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := m.Generate(t.Context(), model.Request{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		want := model.LimiterState{
			Limit: 1, Ceiling: 64, Reason: model.ReasonRefused, Status: 429, Waiting: 63,
			Pause: 30 * time.Second, PauseReason: model.ReasonRetryAfter,
		}
		if diff := cmp.Diff(want, l.State(), cmpopts.IgnoreFields(model.LimiterState{}, "Limit", "Waiting")); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		wg.Wait()
		if calls > 64+5 { // a limit of four, and its first step
			t.Errorf("%d requests for 64 calls: more were sent than were in flight", calls)
		}
	})
}

// TestLimitOutlivesAnOutage asks an endpoint that refuses everything, and says
// not for how long, seldom: few calls use up their tries.
func TestLimitOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, lost int
		begin := time.Now()
		inner := generator(func(context.Context, model.Request) (model.Response, error) {
			calls++
			if time.Since(begin) < 5*time.Minute {
				return model.Response{}, failed(model.ClassOverloaded, 503)
			}
			return reply(1), nil
		})
		m := model.Retry(model.Limit(inner, model.NewLimiter(64, model.LimiterOptions{})), model.RetryOptions{Tries: 7})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if _, err := m.Generate(t.Context(), model.Request{}); err != nil {
					lost++
				}
			})
		}
		wg.Wait()
		if lost > 0 || calls > 64+100 {
			t.Errorf("%d calls were lost and %d requests sent, want none and few", lost, calls)
		}
	})
}

// TestLimitRates keeps what is known of an endpoint's requests and tokens per
// minute.
func TestLimitRates(t *testing.T) {
	tests := []struct {
		name string
		o    model.LimiterOptions
		want int // calls of a minute
	}{
		{"requests", model.LimiterOptions{RequestsPerMinute: 120}, 120},
		{"few requests", model.LimiterOptions{RequestsPerMinute: 6}, 6},
		{"tokens", model.LimiterOptions{TokensPerMinute: 60_000}, 60}, // of 1,000 each
		{"both", model.LimiterOptions{RequestsPerMinute: 30, TokensPerMinute: 60_000}, 30},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls int
				inner := generator(func(context.Context, model.Request) (model.Response, error) {
					calls++
					return reply(500), nil
				})
				m := model.Limit(inner, model.NewLimiter(16, tt.o))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() {
						for ctx.Err() == nil {
							_, _ = m.Generate(ctx, model.Request{})
						}
					})
				}
				wg.Wait()
				if got, want := float64(calls), float64(10*tt.want); math.Abs(got-want) > 0.02*want+8 {
					t.Errorf("%.0f calls in ten minutes, want %.0f", got, want)
				}
			})
		})
	}
}
