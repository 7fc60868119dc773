// Package evaltest makes small recorded runs that the tests of eval read.
//
// [Alpha] is a finished run with everything that makes counting hard: retries,
// a killed attempt, rewards given late, delegated episodes, missing prices.
// [Beta] is still running: what it holds is in its journal. All is fixed, so
// that golden files can be compared.
package evaltest

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/query"
)

// Run is a recorded run and what was recorded in it.
type Run struct {
	Dir          string
	ID           string
	Samples      int
	Trajectories []*dataset.Trajectory
	Late         []dataset.LateReward
}

// Start is when the first attempt of every run starts.
func Start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC) }

// Alpha makes a finished run of two variants, four tasks and two samples, in
// parts of three attempts.
func Alpha(tb testing.TB) *Run {
	tb.Helper()
	b := newBuilder(tb, "alpha", 2, store.Options{PartRows: 3})
	b.alpha()
	b.write(b.run.Trajectories...)
	b.rewards()
	b.close()
	return b.run
}

// Beta makes a run of one variant of Alpha's, three tasks and one sample, that
// is going on: one attempt is in a part and the rest in the journal.
func Beta(tb testing.TB) *Run {
	tb.Helper()
	b := newBuilder(tb, "beta", 1, store.Options{})
	b.beta()
	b.write(b.run.Trajectories[:1]...)
	b.close()
	b.open()
	b.write(b.run.Trajectories[1:]...)
	b.rewards()
	tb.Cleanup(b.close)
	return b.run
}

// Input reads a run as it is now.
func Input(tb testing.TB, dir string) query.Input {
	tb.Helper()
	v, err := store.OpenView(dir, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return query.FromView(v, dir)
}

// DB opens a database over runs and closes it with the test.
func DB(tb testing.TB, runs ...*Run) *query.DB {
	tb.Helper()
	inputs := make([]query.Input, len(runs))
	for i, r := range runs {
		inputs[i] = Input(tb, r.Dir)
	}
	db, err := query.Open(tb.Context(), inputs, query.Options{TempDir: tb.TempDir(), Threads: 2})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// builder records a run.
type builder struct {
	tb    testing.TB
	run   *Run
	opts  store.Options
	store *store.Store
}

func newBuilder(tb testing.TB, name string, samples int, opts store.Options) *builder {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), name)
	run := store.Run{
		RunID: dataset.ID("run", name), Name: name, Tags: []string{"fixture", "it's " + name}, State: store.StateRunning,
		CreatedAt: Start(), Config: fmt.Appendf(nil, `{"samples":%d,"note":"it's"}`, samples),
		IdentityHash: "identity", ConfigHash: "config", Seed: 7, Samples: samples,
		Variants: []dataset.Variant{variant("good"), variant("weak")},
		Version:  "0.1.0", Commit: "c0ffee", Go: "go1.26", Host: "host",
	}
	s, err := store.Create(dir, run, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return &builder{tb: tb, opts: opts, store: s, run: &Run{Dir: dir, ID: run.RunID, Samples: samples}}
}

func (b *builder) open() {
	b.tb.Helper()
	var err error
	if b.store, err = store.Open(b.run.Dir, b.opts); err != nil {
		b.tb.Fatal(err)
	}
}

func (b *builder) write(trs ...*dataset.Trajectory) {
	b.tb.Helper()
	for _, tr := range trs {
		if err := b.store.Write(b.tb.Context(), []*dataset.Trajectory{tr}); err != nil {
			b.tb.Fatal(err)
		}
	}
}

func (b *builder) rewards() {
	b.tb.Helper()
	if err := b.store.Rewards(b.tb.Context(), b.run.Late); err != nil {
		b.tb.Fatal(err)
	}
}

func (b *builder) close() {
	b.tb.Helper()
	if err := b.store.Close(); err != nil {
		b.tb.Fatal(err)
	}
}

func variant(name string) dataset.Variant {
	temperature := 0.5
	return dataset.Variant{
		Name: name, Hash: dataset.ID("variant", name), Params: map[string]any{"agent.model": "lab/" + name},
		ScorerHash: "scorer", Env: "answer", Agent: "tools", Provider: "lab", Model: "lab/" + name,
		Sampling: dataset.Sampling{Temperature: &temperature}, Tools: []string{"calculator"}, Tags: []string{"fixture"},
		PromptHash: "prompt", ToolsHash: "tools", CodeVersion: "c0ffee",
	}
}
