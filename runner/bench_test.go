package runner

import (
	"context"
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

// nowhere is a Sink that keeps nothing.
type nowhere struct{}

func (nowhere) Write(context.Context, []*dataset.Trajectory) error  { return nil }
func (nowhere) Rewards(context.Context, []dataset.LateReward) error { return nil }

// BenchmarkRun runs 100,000 episodes that do nothing: what remains is the
// runner's own work for each.
func BenchmarkRun(b *testing.B) {
	const episodes = 100_000
	b.ReportAllocs()
	for b.Loop() {
		bundle := setup(episodes)
		bundle.opts.Workers = 256
		bundle.cell().Env = envs(fakeEnv{})
		bundle.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			_, err := e.Reset(ctx, ep)
			tr.ExitReason = dataset.ExitGaveUp
			return err
		})
		bundle.cell().Scorers = nil
		r, err := New(bundle.plan, nowhere{}, bundle.opts)
		if err != nil {
			b.Fatal(err)
		}
		s, err := r.Run(b.Context(), b.Context())
		if err != nil || s.Total.Total() != episodes {
			b.Fatalf("%d episodes, error %v", s.Total.Total(), err)
		}
	}
	b.ReportMetric(float64(episodes*b.N)/b.Elapsed().Seconds(), "episodes/s")
}
