package model_test

import (
	"context"
	"testing"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/modeltest"
	"github.com/talaria-run/talaria/dataset"
)

// free is a budget without end and a ledger that writes nothing.
type free struct{}

func (free) Reserve(context.Context, model.Spend) error { return nil }
func (free) Settle(_, _ model.Spend)                    {}
func (free) Call(context.Context, dataset.Call) error   { return nil }

// BenchmarkWrappers is what record, price, gate, retry and limit cost together.
func BenchmarkWrappers(b *testing.B) {
	answer := reply(100)
	inner := generator(func(context.Context, model.Request) (model.Response, error) { return answer, nil })
	table := model.EmbeddedPrices()
	rates, _ := table.Rates("openai", "gpt-4o-mini")
	m := model.Record(model.Price(model.Gate(model.Retry(model.Limit(inner, model.NewLimiter(64, model.LimiterOptions{})),
		model.RetryOptions{}), free{}, rates), table, "openai", "gpt-4o-mini"), free{})
	req := modeltest.Ask("0123456789abcdef0123456789abcdef-0-0", modeltest.Calculator())
	ctx, _, cancel := model.WithClock(b.Context(), 0)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}
