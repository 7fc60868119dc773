package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// budget records what is asked of it; its wait is how long Reserve takes.
type budget struct {
	refuse          error
	wait            time.Duration
	reserved        []model.Spend
	settled, actual []model.Spend
}

func (b *budget) Reserve(_ context.Context, worst model.Spend) error {
	if b.wait > 0 {
		pass(b.wait)
	}
	b.reserved = append(b.reserved, worst)
	return b.refuse
}

func (b *budget) Settle(worst, actual model.Spend) {
	b.settled, b.actual = append(b.settled, worst), append(b.actual, actual)
}

// rates are 1, 2 and 3 nano-dollars a token of input, cache write and output.
func rates() model.Rates {
	return model.Rates{Input: new(int64(1e6)), CacheWrite: new(int64(2e6)), Output: new(int64(3e6))}
}

func TestGateBooks(t *testing.T) {
	limit := 100
	req := model.Request{
		Messages: []dataset.Message{{Content: "0123456789"}},
		Sampling: dataset.Sampling{MaxTokens: &limit},
	}
	const prompt = 10 + 2*32 // the bytes, and framing for the message and the whole
	worst := model.Spend{NanoUSD: 2*prompt + 3*100, Tokens: prompt + 100}
	own := reply(7)
	own.CostNanoUSD = new(int64(1000))
	lost := reply(7)
	lost.Unreported = 2
	tests := []struct {
		name   string
		resp   model.Response
		err    error
		actual model.Spend
	}{
		{"answered", reply(7), nil, model.Spend{NanoUSD: 7 + 21, Tokens: 14}},
		{"the provider's own cost", own, nil, model.Spend{NanoUSD: 1000, Tokens: 14}},
		{"refused", model.Response{}, errors.New("429"), model.Spend{}},
		{"tries that may have been paid for", lost, nil, model.Spend{NanoUSD: 28 + 2*worst.NanoUSD, Tokens: 14 + 2*worst.Tokens}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := new(budget)
			inner := generator(func(context.Context, model.Request) (model.Response, error) { return tt.resp, tt.err })
			if _, err := model.Gate(inner, b, rates()).Generate(t.Context(), req); !errors.Is(err, tt.err) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff([]model.Spend{worst}, b.reserved); diff != "" {
				t.Errorf("reserved (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(b.reserved, b.settled); diff != "" {
				t.Errorf("given back (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]model.Spend{tt.actual}, b.actual); diff != "" {
				t.Errorf("booked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGateBounds wants the bound to grow with everything that a prompt and a
// reply may take.
func TestGateBounds(t *testing.T) {
	reserve := func(req model.Request, r model.Rates) model.Spend {
		b := new(budget)
		inner := generator(func(context.Context, model.Request) (model.Response, error) { return reply(0), nil })
		if _, err := model.Gate(inner, b, r).Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		return b.reserved[0]
	}
	base := reserve(model.Request{Messages: []dataset.Message{{}}}, rates()).Tokens
	text := "0123456789"
	for i, m := range []dataset.Message{
		{Content: text}, {Parts: json.RawMessage(text)}, {Reasoning: text}, {ToolCallID: text}, {ToolName: text},
	} {
		if got := reserve(model.Request{Messages: []dataset.Message{m}}, rates()).Tokens; got != base+10 {
			t.Errorf("message %d: %d tokens, want %d", i, got, base+10)
		}
	}
	for name, req := range map[string]model.Request{
		"tool calls": {Messages: []dataset.Message{{ToolCalls: []dataset.ToolCall{{ID: text, Name: text, Arguments: text}}}}},
		"tools":      {Messages: []dataset.Message{{}}, Tools: []model.ToolSpec{{Name: text, Description: text, Parameters: json.RawMessage(text)}}},
	} {
		if got := reserve(req, rates()).Tokens; got != base+30+32 {
			t.Errorf("%s: %d tokens, want %d", name, got, base+62)
		}
	}
	few := 5
	for _, n := range []any{500, int64(500), 500.0, json.Number("500")} {
		req := model.Request{Messages: []dataset.Message{{}}, Sampling: dataset.Sampling{MaxTokens: &few, Extra: map[string]any{"max_completion_tokens": n}}}
		if got := reserve(req, rates()).Tokens; got != base+500 {
			t.Errorf("max_completion_tokens %T: %d tokens, want %d", n, got, base+500)
		}
	}
	huge := math.MaxInt
	req := model.Request{Sampling: dataset.Sampling{MaxTokens: &huge}}
	if got := reserve(req, model.Rates{}); got.Tokens != math.MaxInt64 || got.NanoUSD != 0 {
		t.Errorf("reserved %+v for a reply without end at unknown rates", got)
	}
}

func TestGateRefuses(t *testing.T) {
	b := &budget{refuse: fmt.Errorf("cost: %w", dataset.ErrRunBudget)}
	inner := generator(func(context.Context, model.Request) (model.Response, error) {
		t.Error("a call without budget was made")
		return model.Response{}, nil
	})
	_, err := model.Gate(inner, b, rates()).Generate(t.Context(), model.Request{})
	wantClass(t, err, model.ClassRunBudget, dataset.ErrRunBudget)
	if len(b.settled) != 0 {
		t.Errorf("settled %+v that was never reserved", b.settled)
	}
}

func TestGateAfterPanic(t *testing.T) {
	b := new(budget)
	inner := generator(func(context.Context, model.Request) (model.Response, error) { panic("provider") })
	func() {
		defer func() { _ = recover() }()
		_, _ = model.Gate(inner, b, rates()).Generate(t.Context(), model.Request{})
	}()
	if diff := cmp.Diff(b.reserved, b.actual); diff != "" || len(b.actual) != 1 {
		t.Errorf("a call that panicked is booked as its bound (-want +got):\n%s", diff)
	}
}

func TestGateStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clock, cancel := model.WithClock(t.Context(), time.Minute)
		defer cancel()
		inner := generator(func(context.Context, model.Request) (model.Response, error) {
			pass(time.Second)
			return reply(1), nil
		})
		begin := time.Now()
		resp, err := model.Gate(inner, &budget{wait: time.Hour}, rates()).Generate(ctx, model.Request{})
		if err != nil {
			t.Error(err)
		}
		wantWorked(t, clock, time.Second)
		wantPause(t, resp, begin, time.Hour)
	})
}

// TestGateConcurrent lets many calls through at once and wants every
// reservation back.
func TestGateConcurrent(t *testing.T) {
	var (
		mu  sync.Mutex
		b   budget
		out = lockedBudget{&mu, &b}
		wg  sync.WaitGroup
	)
	m := model.Gate(generator(func(context.Context, model.Request) (model.Response, error) { return reply(1), nil }), out, rates())
	for range 64 {
		wg.Go(func() {
			for range 50 {
				if _, err := m.Generate(t.Context(), model.Request{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(b.settled) != 64*50 {
		t.Errorf("%d settled, want %d", len(b.settled), 64*50)
	}
}

type lockedBudget struct {
	mu *sync.Mutex
	b  *budget
}

func (l lockedBudget) Reserve(ctx context.Context, worst model.Spend) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Reserve(ctx, worst)
}

func (l lockedBudget) Settle(worst, actual model.Spend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Settle(worst, actual)
}
