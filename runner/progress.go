package runner

import (
	"sync"
	"time"

	"github.com/talaria-run/talaria/dataset/store"
)

// Progress is how a run stands. The embedded tallies count what is recorded,
// by this invocation and by earlier ones; Done counts episodes of the plan that
// have ended and are safe on disk.
type Progress struct {
	Done     int // Skipped included
	InFlight int
	Total    int // 0: not known
	Skipped  int // ended and recorded by an earlier invocation
	Rescored int // late rewards that this invocation has recorded
	Rate     float64
	ETA      time.Duration // 0: not known
	Elapsed  time.Duration
	store.Tally
	Variants []VariantProgress // in the plan's order
	// Failures counts the attempts of this invocation that failed without the
	// model's doing, retried ones too, by error class, or by exit reason.
	Failures map[string]int
}

// VariantProgress is how one variant stands.
type VariantProgress struct {
	Name     string
	Done     int
	InFlight int
	Total    int  // 0: not known
	Skipped  int  // ended and recorded by an earlier invocation
	Stopped  bool // none of its calls can succeed
	store.Tally
}

// counts are the meter's of one variant.
type counts struct{ planned, skipped, ended, inFlight int }

// meter counts what the index does not know. The feed, the workers and the
// drain write, Progress and Summary read.
type meter struct {
	mu       sync.Mutex
	started  time.Time
	variants []counts
	left     int  // admitted episodes that this invocation leaves to a later one
	fed      bool // the feed went through the whole plan
	rescored int
	rate     rate
}

func newMeter(variants int) *meter { return &meter{variants: make([]counts, variants)} }

func (m *meter) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = time.Now()
	m.rate.add(m.started, 0)
}

// plan counts an episode of the plan, skip one that has ended already.
func (m *meter) plan(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.variants[v].planned++
}

func (m *meter) skip(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.variants[v].skipped++
}

func (m *meter) complete() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fed = true
}

func (m *meter) begin(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.variants[v].inFlight++
}

func (m *meter) end(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.variants[v].inFlight--
}

// leave counts something that was to be done and was not begun.
func (m *meter) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left++
}

// acknowledge counts what a batch ended.
func (m *meter) acknowledge(batch []record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, rec := range batch {
		switch {
		case rec.ended:
			m.variants[rec.variant].ended++
			n++
		case rec.last:
			m.left++
		}
	}
	m.rate.add(time.Now(), n)
}

func (m *meter) rescore(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rescored += n
}

// whole reports whether every episode of the plan has ended.
func (m *meter) whole() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fed && m.left == 0
}

// Progress tells how the run stands. Any goroutine may call it at any time; it
// costs a few microseconds a variant.
func (r *Runner) Progress() Progress {
	tallies, other := r.tallies()
	p := r.meter.progress(r.plan.Total)
	for v := range p.Variants {
		p.Variants[v].Name = r.halts.names[v]
		p.Variants[v].Stopped = r.halts.stopped(v)
		p.Variants[v].Tally = tallies[v]
		addTally(&p.Tally, tallies[v])
	}
	for _, t := range other {
		addSpent(&p.Tally, t)
	}
	p.Failures = r.log.failures()
	return p
}

// addSpent adds only what t cost.
func addSpent(sum *store.Tally, t store.Tally) {
	addTally(sum, store.Tally{
		Attempts: t.Attempts, Usage: t.Usage, CostKnown: t.CostKnown,
		CostUnknown: t.CostUnknown, Unreported: t.Unreported, Lost: t.Lost,
	})
}

func (m *meter) progress(total int) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	p := Progress{Total: total, Rescored: m.rescored, Rate: m.rate.at(now)}
	if !m.started.IsZero() {
		p.Elapsed = now.Sub(m.started)
	}
	planned := 0
	for _, c := range m.variants {
		v := VariantProgress{
			Done: c.skipped + c.ended, InFlight: c.inFlight, Skipped: c.skipped, Total: m.share(c, total),
		}
		p.Variants = append(p.Variants, v)
		p.Done += v.Done
		p.Skipped += v.Skipped
		p.InFlight += v.InFlight
		planned += c.planned
	}
	if m.fed {
		p.Total = planned
	}
	if left := p.Total - p.Done; left > 0 && p.Rate > 0 {
		p.ETA = time.Duration(float64(left) / p.Rate * float64(time.Second))
	}
	return p
}

// share is the number of planned episodes of a variant: as the feed counted them
// if it saw all, else an equal share of total, 0 where that is not known. The
// caller holds mu.
func (m *meter) share(c counts, total int) int {
	if m.fed {
		return c.planned
	}
	return total / len(m.variants)
}
