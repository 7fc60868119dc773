package openai

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// usage holds the counters of a reply; nil is not reported.
type usage struct {
	prompt, completion, total       *int64
	cached, written, reasoning      *int64
	cacheReadInput, cacheWriteInput *int64 // as proxies of another dialect name them
	cost, upstreamCost              *int64 // in nano-dollars
	ownKey                          string // is_byok as it came: true, false, or "" if it did not
}

func decodeUsage(c *cursor) *usage {
	if skipNull(c) {
		return nil
	}
	u := new(usage)
	c.object(func(key []byte) {
		switch string(key) {
		case "prompt_tokens":
			u.prompt = count(c)
		case "completion_tokens":
			u.completion = count(c)
		case "total_tokens":
			u.total = count(c)
		case "cache_read_input_tokens":
			u.cacheReadInput = count(c)
		case "cache_creation_input_tokens":
			u.cacheWriteInput = count(c)
		case "prompt_tokens_details", "completion_tokens_details":
			u.decodeDetails(c)
		case "cost":
			u.cost = nanoUSD(scalarText(c))
		case "cost_details":
			u.decodeCost(c)
		case "is_byok":
			u.ownKey = scalarText(c)
		default:
			c.skip()
		}
	})
	return u
}

func (u *usage) decodeDetails(c *cursor) {
	if skipNull(c) {
		return
	}
	c.object(func(key []byte) {
		switch string(key) {
		case "cached_tokens":
			u.cached = count(c)
		case "cache_write_tokens":
			u.written = count(c)
		case "reasoning_tokens":
			u.reasoning = count(c)
		default:
			c.skip()
		}
	})
}

func (u *usage) decodeCost(c *cursor) {
	if c.peek() != '{' {
		c.skip()
		return
	}
	c.object(func(key []byte) {
		if string(key) == "upstream_inference_cost" {
			u.upstreamCost = nanoUSD(scalarText(c))
			return
		}
		c.skip()
	})
}

// nanoUSD is what a router charged for the call, nil if it does not say. With
// the user's own key the upstream provider charges for itself, beside the
// router's fee; routers that do not say whose key it was name the upstream
// cost only then.
func (u *usage) nanoUSD() *int64 {
	switch {
	case u == nil || u.cost == nil || u.ownKey == "false":
		if u == nil {
			return nil
		}
		return u.cost
	case u.upstreamCost != nil:
		sum := *u.cost + *u.upstreamCost
		return &sum
	case u.ownKey == "true":
		return nil
	}
	return u.cost
}

// nanoUSD reads an amount of dollars, exact to half a nano-dollar; nil is no
// amount.
func nanoUSD(text string) *int64 {
	const longest = 40 // a number of more characters, or exponents, is no price
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if n, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || n > longest || n < -longest || len(text) > 2*longest {
		return nil
	}
	amount, ok := new(big.Rat).SetString(text)
	if !ok || amount.Sign() < 0 {
		return nil
	}
	amount.Mul(amount, big.NewRat(2e9, 1))
	double := new(big.Int).Quo(amount.Num(), amount.Denom())
	if !double.IsInt64() {
		return nil
	}
	rounded := double.Int64()/2 + double.Int64()%2
	return &rounded
}

// tokens maps the counters to four disjoint ones; nil unless both sides were
// reported. The prompt includes what was read from and written to the cache.
// Where the total says that reasoning was counted beside the completion, it is
// added to it.
func (u *usage) tokens() *dataset.Usage {
	if u == nil || u.prompt == nil || u.completion == nil {
		return nil
	}
	read, write := first(u.cached, u.cacheReadInput), first(u.written, u.cacheWriteInput)
	read = min(read, *u.prompt)
	write = min(write, *u.prompt-read)
	out := &dataset.Usage{
		Input: *u.prompt - read - write, CacheRead: read, CacheWrite: write,
		Output: *u.completion, Reasoning: u.reasoning,
	}
	if u.reasoning != nil && *u.reasoning > 0 && u.total != nil && *u.total-*u.prompt-*u.completion == *u.reasoning {
		out.Output += *u.reasoning
	}
	return out
}

func first(counts ...*int64) int64 {
	for _, n := range counts {
		if n != nil {
			return *n
		}
	}
	return 0
}
