package dataset

import "math"

// Usage counts the tokens of a model call in four disjoint counters. A
// provider whose prompt count includes cached tokens is normalised by its
// adapter.
type Usage struct {
	Input      int64  `json:"input_tokens"`               // fresh: neither read from nor written to a cache
	CacheRead  int64  `json:"cache_read_tokens"`          // served from the provider's cache
	CacheWrite int64  `json:"cache_write_tokens"`         // written to it
	Output     int64  `json:"output_tokens"`              // sampled, reasoning included
	Reasoning  *int64 `json:"reasoning_tokens,omitempty"` // the part of Output that was reasoning; nil: not reported
}

// Total is the sum of the four counters.
func (u Usage) Total() int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Add adds v to u. Reasoning stays nil until one side knows it.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Output += v.Output
	if v.Reasoning != nil {
		sum := *v.Reasoning
		if u.Reasoning != nil {
			sum += *u.Reasoning
		}
		u.Reasoning = &sum
	}
}

// Spend is an amount of what model calls use. Where it bounds something, a part
// that cannot be bounded is 0.
type Spend struct {
	NanoUSD int64 `json:"nanousd"`
	Tokens  int64 `json:"tokens"`
}

// Add adds o to b and stays at the largest number where the sum is larger.
func (b *Spend) Add(o Spend) {
	b.NanoUSD = addCapped(b.NanoUSD, o.NanoUSD)
	b.Tokens = addCapped(b.Tokens, o.Tokens)
}

func addCapped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// CallPhase tells which of a model call's two journal lines a [Call] is.
type CallPhase string

// The two lines of a call: one before the request leaves, one after its answer.
const (
	CallStart CallPhase = "call_start"
	CallEnd   CallPhase = "call_end"
)

// Call is a line of the ledger: written to the journal before a model request
// leaves and again after its answer, so that what was paid for survives a
// crash. A start without an end is an unreported call.
type Call struct {
	Phase    CallPhase
	CallID   string   // "<episode_id>-<attempt>-<n>", n counting the attempt's logical calls from 0
	Agent    string   // AgentPolicy, or who else pays: judge, user_sim, ...
	Episode  *Episode // whose call it is; of its Task only the identity is recorded
	AtUnixUS int64    // microseconds since the epoch
	Most     Spend    // what one try of it may use at most

	// The rest is of CallEnd.
	Usage       *Usage // nil: none was reported
	CostNanoUSD *int64 // nil: unpriced or none reported
	Unreported  int    // tries that may have been paid for and whose usage never came
	ErrorClass  string // "" if the call was answered
}

// Books adds up what an attempt's model calls used and cost. The zero Books is
// ready to use; it is not safe for concurrent use.
type Books struct {
	Requests   int    // logical calls of the policy
	Usage      Usage  // of the policy's calls
	CostKnown  int64  // nano-dollars, over all priced calls of the policy
	Unpriced   int    // calls with usage and without price
	Unreported int    // tries cut off before their usage came
	Lost       Spend  // what those may have used at most
	Aux        Usage  // judges, summaries, simulated users
	AuxCost    *int64 // nano-dollars; nil when there was no auxiliary call or one is unpriced
	auxUnknown bool
}

// Add books a finished call: a line of phase [CallEnd].
func (b *Books) Add(c Call) {
	if c.Agent != "" && c.Agent != AgentPolicy {
		b.addAux(c)
		return
	}
	b.Requests++
	b.Unreported += c.Unreported
	for range c.Unreported {
		b.Lost.Add(c.Most)
	}
	if c.Usage == nil {
		return
	}
	b.Usage.Add(*c.Usage)
	if c.CostNanoUSD == nil {
		b.Unpriced++
		return
	}
	b.CostKnown += *c.CostNanoUSD
}

func (b *Books) addAux(c Call) {
	if c.Usage != nil {
		b.Aux.Add(*c.Usage)
	}
	if c.CostNanoUSD == nil || c.Unreported > 0 {
		b.auxUnknown, b.AuxCost = true, nil
		return
	}
	if !b.auxUnknown {
		sum := *c.CostNanoUSD
		if b.AuxCost != nil {
			sum += *b.AuxCost
		}
		b.AuxCost = &sum
	}
}

// Cost is the policy's cost in nano-dollars, nil unless every call is priced
// and reported.
func (b *Books) Cost() *int64 {
	if b.Unpriced > 0 || b.Unreported > 0 {
		return nil
	}
	sum := b.CostKnown
	return &sum
}

// Merge adds the books of another attempt.
func (b *Books) Merge(o Books) {
	b.Requests += o.Requests
	b.Usage.Add(o.Usage)
	b.CostKnown += o.CostKnown
	b.Unpriced += o.Unpriced
	b.Unreported += o.Unreported
	b.Lost.Add(o.Lost)
	b.Aux.Add(o.Aux)
	switch {
	case b.auxUnknown || o.auxUnknown:
		b.auxUnknown, b.AuxCost = true, nil
	case o.AuxCost != nil:
		sum := *o.AuxCost
		if b.AuxCost != nil {
			sum += *b.AuxCost
		}
		b.AuxCost = &sum
	}
}
