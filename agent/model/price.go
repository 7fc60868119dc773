package model

import (
	"context"
	"math"
	"math/bits"

	"github.com/talaria-run/talaria/dataset"
)

// Rates are the prices of one model in nano-dollars per million tokens; nil
// is not known. The zero Rates knows nothing.
type Rates struct {
	Input      *int64 `json:"input"`
	CacheRead  *int64 `json:"cache_read"`
	CacheWrite *int64 `json:"cache_write"`
	Output     *int64 `json:"output"`
	Version    string `json:"-"` // of the table that they come from
}

// perTokens is the number of tokens that a rate is for.
const perTokens = 1_000_000

// Cost is what u costs in nano-dollars, rounded half up once. It is not known
// if a counter in use has no rate, or the sum does not fit.
func (r Rates) Cost(u dataset.Usage) (nanoUSD int64, known bool) {
	var sum uint128
	for _, part := range []struct {
		tokens int64
		rate   *int64
	}{{u.Input, r.Input}, {u.CacheRead, r.CacheRead}, {u.CacheWrite, r.CacheWrite}, {u.Output, r.Output}} {
		if part.tokens == 0 {
			continue
		}
		if part.rate == nil || *part.rate < 0 || part.tokens < 0 || !sum.addProduct(uint64(part.tokens), uint64(*part.rate)) {
			return 0, false
		}
	}
	return sum.divideHalfUp(perTokens)
}

// uint128 holds a sum of products of two counters without overflow.
type uint128 struct{ hi, lo uint64 }

func (s *uint128) addProduct(a, b uint64) bool {
	hi, lo := bits.Mul64(a, b)
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, carry = bits.Add64(s.hi, hi, carry)
	return carry == 0
}

func (s *uint128) divideHalfUp(d uint64) (int64, bool) {
	if s.hi >= d {
		return 0, false
	}
	lo, carry := bits.Add64(s.lo, d/2, 0)
	hi := s.hi + carry
	if hi >= d {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, d)
	if q > math.MaxInt64 {
		return 0, false
	}
	return int64(q), true
}

type priced struct {
	inner Model
	rates Rates
}

// Price fills in what a call cost, from the table's rates of the provider's
// model, where the provider did not report it. A price that is not known
// leaves the cost nil.
func Price(inner Model, t *PriceTable, provider, name string) Model {
	rates, _ := t.Rates(provider, name)
	return &priced{inner: inner, rates: rates}
}

func (p *priced) Unwrap() Model { return p.inner }

func (p *priced) Generate(ctx context.Context, req Request) (resp Response, err error) {
	resp, err = p.inner.Generate(ctx, req)
	if resp.CostNanoUSD != nil || resp.Usage == nil {
		return resp, err
	}
	if cost, known := p.rates.Cost(*resp.Usage); known {
		resp.CostNanoUSD, resp.PriceVersion = &cost, p.rates.Version
	}
	return resp, err
}
