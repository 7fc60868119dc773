package evaltest

import (
	"testing"

	"github.com/talaria-run/talaria/dataset/store"
)

// GrowingRun is a run whose episodes are recorded one by one.
type GrowingRun struct {
	*Run

	b *builder
}

// Growing begins Beta's run without an episode. It is closed with the test.
func Growing(tb testing.TB) *GrowingRun {
	tb.Helper()
	b := newBuilder(tb, "beta", 1, store.Options{})
	b.beta()
	tb.Cleanup(b.close)
	return &GrowingRun{Run: b.run, b: b}
}

// Write records the i-th of Trajectories.
func (g *GrowingRun) Write(i int) {
	g.b.tb.Helper()
	g.b.write(g.Trajectories[i])
}
