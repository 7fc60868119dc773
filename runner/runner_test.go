package runner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
)

func TestRunRecordsEveryEpisode(t *testing.T) {
	b := setup(3)
	b.plan.Samples, b.plan.Total = 2, 6
	s := b.run(t)
	if diff := cmp.Diff(map[dataset.Outcome]int{dataset.OutcomeModel: 6}, s.Total.Episodes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	for i, tr := range b.sink.sorted() {
		task := dataset.Task{ID: fmt.Sprintf("task-%05d", i/2)}
		group := dataset.GroupID(7, task, "hash of v", 0)
		want := dataset.Episode{
			ID: dataset.EpisodeID(group, i%2), GroupID: group, Variant: "v", VariantHash: "hash of v",
			Task: tr.Episode.Task, Sample: i % 2, Seed: dataset.EpisodeSeed(7, task, i%2),
		}
		if diff := cmp.Diff(want, tr.Episode); diff != "" {
			t.Errorf("episode %d (-want +got):\n%s", i, diff)
		}
		if tr.Reward == nil || *tr.Reward != 1 || tr.Passed == nil || !*tr.Passed {
			t.Errorf("episode %d: reward %v, passed %v, want 1, true", i, tr.Reward, tr.Passed)
		}
		if tr.StartedAt.IsZero() || tr.EndedAt.Before(tr.StartedAt) {
			t.Errorf("episode %d: from %v to %v", i, tr.StartedAt, tr.EndedAt)
		}
		if got := tr.Rewards[0]; got.Source != dataset.FromScorer || got.ScorerHash != "scorers" {
			t.Errorf("episode %d: reward from %q, hash %q", i, got.Source, got.ScorerHash)
		}
	}
}

func TestRunIsTaskMajor(t *testing.T) {
	b := setup(2)
	b.plan.Samples, b.opts.Workers = 2, 1
	b.plan.Cells = [][]Cell{{cell("a")}, {cell("b")}}
	b.run(t)
	got := make([]string, 0, 8)
	for _, tr := range b.sink.rows {
		got = append(got, fmt.Sprintf("%s%s%d", tr.Episode.Task.Input, tr.Episode.Variant, tr.Episode.Sample))
	}
	want := []string{"0a0", "0a1", "0b0", "0b1", "1a0", "1a1", "1b0", "1b1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestRunDependsOnNoSchedule plays every kind of end at two concurrencies.
func TestRunDependsOnNoSchedule(t *testing.T) {
	rows := func(workers int) []*dataset.Trajectory {
		b := setup(200)
		b.plan.Samples = 2
		b.plan.Cells = [][]Cell{{unsteady("a")}, {unsteady("b")}}
		b.opts.Workers, b.opts.InfraRetries = workers, 2
		b.run(t)
		return b.sink.sorted()
	}
	got, want := rows(64), rows(1)
	kinds := map[dataset.ExitReason]bool{}
	for _, tr := range want {
		kinds[tr.ExitReason] = true
	}
	if len(kinds) < 6 {
		t.Errorf("only %d exit reasons are compared", len(kinds))
	}
	noTimes := cmp.Options{
		cmpopts.IgnoreFields(dataset.Trajectory{}, "StartedAt", "EndedAt", "Queued", "Score"),
		cmpopts.IgnoreFields(dataset.Span{}, "Start", "Duration"),
		cmpopts.IgnoreFields(dataset.Reward{}, "CreatedAt"),
		cmpopts.IgnoreUnexported(dataset.Books{}),
	}
	if diff := cmp.Diff(want, got, noTimes); diff != "" {
		t.Errorf("64 workers differ from 1 (-1 +64):\n%s", diff)
	}
}

// unsteady is a cell whose episodes end in all ways, by their ids.
func unsteady(name string) Cell {
	c := cell(name)
	c.Env = envs(fakeEnv{step: func(context.Context) error { return nil }})
	c.Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		if err := playOnce(ctx, e, ep, tr); err != nil {
			return err
		}
		switch draw(ep.ID, ep.Attempt) % 8 {
		case 0:
			panic("in the rollout")
		case 1:
			tr.ExitReason = ""
			return errors.New("sandbox gone")
		case 2:
			tr.ExitReason = dataset.ExitEnvError
		case 3:
			tr.ExitReason = dataset.ExitTurnLimit
		case 4:
			tr.ExitReason = ""
			return &model.Error{Class: model.ClassServer, Err: errors.New("overworked")}
		}
		return nil
	})
	c.Scorers = append(c.Scorers, scorerFunc(
		func(_ context.Context, _ dataset.Task, tr *dataset.Trajectory) ([]dataset.Reward, error) {
			switch draw(tr.Episode.ID, -1) % 5 {
			case 0:
				panic("in the scorer")
			case 1:
				return nil, errors.New("judge away")
			}
			return nil, nil
		}))
	return c
}

func draw(id string, attempt int) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id + strconv.Itoa(attempt))) // never fails
	return h.Sum32() >> 8
}

func TestRunEndsWithTheTasks(t *testing.T) {
	torn := errors.New("line 2: not JSON")
	b := setup(0)
	b.plan.Tasks = func(yield func(dataset.Task, error) bool) {
		_ = yield(dataset.Task{ID: "x"}, nil) && yield(dataset.Task{}, torn)
	}
	s, err := b.runner(t).Run(t.Context(), t.Context())
	if !errors.Is(err, torn) {
		t.Errorf("got error %v, want %v", err, torn)
	}
	if got := s.Total.Episodes[dataset.OutcomeModel]; got != 1 {
		t.Errorf("%d episodes recorded, want the one in flight", got)
	}
}

func TestRunRefusesATaskWithoutCell(t *testing.T) {
	b := setup(0)
	b.plan.Tasks = func(yield func(dataset.Task, error) bool) { yield(dataset.Task{ID: "x", Source: 1}, nil) }
	if _, err := b.runner(t).Run(t.Context(), t.Context()); err == nil {
		t.Error("a task of an unknown source was run")
	}
}

func TestFirstSignalDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(100)
		b.opts.Workers, b.opts.InfraRetries = 2, 5
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			<-time.After(time.Minute)
			if ep.Task.Input == "1" {
				return errors.New("sandbox gone") // and not tried again: the run is ending
			}
			return playOnce(ctx, e, ep, tr)
		})
		admit, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := b.runner(t).Run(admit, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []dataset.ExitReason{dataset.ExitEnvDone, dataset.ExitInfraError}
		if diff := cmp.Diff(want, b.sink.exits()); diff != "" {
			t.Errorf("exits (-want +got):\n%s", diff)
		}
		if !s.Interrupted || s.Stopped != "" || s.Duration != time.Minute {
			t.Errorf("interrupted %v, stopped %q after %v, want true, none, 1m", s.Interrupted, s.Stopped, s.Duration)
		}
	})
}

func TestGraceCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(1)
		b.opts.Grace = 30 * time.Second
		b.cell().Rollout = rolloutFunc(endless)
		admit, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := b.runner(t).Run(admit, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Duration != 31*time.Second {
			t.Errorf("ended after %v, want 31s", s.Duration)
		}
		wantCutOff(t, b.one(t), dataset.ExitInterrupted)
	})
}

func TestSecondSignalCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(0)
		b.opts.Workers, b.plan.Tasks = 1, forever()
		b.cell().Rollout = rolloutFunc(endless)
		work, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Hour, func() { cancel(dataset.ErrInterrupted) }).Stop()
		s, err := b.runner(t).Run(t.Context(), work)
		if err != nil {
			t.Fatal(err)
		}
		wantCutOff(t, b.one(t), dataset.ExitInterrupted)
		if !s.Interrupted {
			t.Error("the summary does not say so")
		}
		if got := b.opts.Index.Tallies()[0].CostKnown; got != 200 {
			t.Errorf("the index knows of a cost of %d, want 200", got)
		}
	})
}

func TestRunTimeCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(9)
		b.opts.Workers, b.opts.RunTime = 1, time.Hour
		b.opts.Budget = NewBudget(Limits{}, model.Spend{})
		refused := make(chan error, 1)
		b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
			<-time.After(time.Hour + time.Second)
			refused <- b.opts.Budget.Reserve(ctx, model.Spend{})
			return endless(ctx, e, ep, tr)
		})
		s, err := b.runner(t).Run(t.Context(), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantCutOff(t, b.one(t), dataset.ExitRunBudget)
		if err := <-refused; !errors.Is(err, dataset.ErrRunBudget) {
			t.Errorf("the gate answered %v after the run's time", err)
		}
		if s.Stopped != StopTime || s.Interrupted || s.Duration != time.Hour+runTimeGrace {
			t.Errorf("stopped by %q, interrupted %v after %v", s.Stopped, s.Interrupted, s.Duration)
		}
	})
}

// endless pays for two calls and goes on until it is told to stop.
func endless(ctx context.Context, _ env.Env, _ dataset.Episode, tr *dataset.Trajectory) error {
	pay(tr, 2)
	tr.Rewards = append(tr.Rewards, reward(1)...)
	<-ctx.Done()
	return context.Cause(ctx)
}

func wantCutOff(t *testing.T, tr *dataset.Trajectory, reason dataset.ExitReason) {
	t.Helper()
	if tr.ExitReason != reason || tr.Reward != nil || tr.Rewards[0].Chosen || tr.Books.CostKnown != 200 {
		t.Errorf("got exit %q, reward %v, cost %d, want %q, null, 200",
			tr.ExitReason, tr.Reward, tr.Books.CostKnown, reason)
	}
}

// TestLateTicketIsLeft is an episode that a worker gets as admission ends.
func TestLateTicketIsLeft(t *testing.T) {
	b := setup(1)
	r := b.runner(t)
	admit, cancel := context.WithCancel(t.Context())
	cancel()
	in := make(chan *ticket, 1)
	in <- new(ticket)
	close(in)
	r.worker(admit, t.Context(), in)
	r.meter.complete()
	if len(b.sink.rows) != 0 || r.meter.whole() {
		t.Errorf("%d rows, all done: %v, want 0, false", len(b.sink.rows), r.meter.whole())
	}
}

// TestNothingIsLeftToSignal ends all episodes before the signal counts.
func TestNothingIsLeftToSignal(t *testing.T) {
	b := setup(2)
	b.run(t)
	admit, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := b.runner(t).Run(admit, t.Context())
	if err != nil || s.Interrupted || s.Skipped != 2 {
		t.Errorf("got error %v, interrupted %v, skipped %d, want none, false, 2", err, s.Interrupted, s.Skipped)
	}
}

func TestSinkFailureStopsTheRun(t *testing.T) {
	b := setup(10_000)
	b.opts.Workers, b.sink.fail = 64, errDisk
	r := b.runner(t)
	s, err := r.Run(t.Context(), t.Context())
	if !errors.Is(err, errDisk) {
		t.Errorf("got error %v, want %v", err, errDisk)
	}
	if p := r.Progress(); p.Done != 0 || s.Total.Attempts != 0 || b.opts.Index.Len() != 0 {
		t.Errorf("%d done, %d attempts, %d indexed, want none", p.Done, s.Total.Attempts, b.opts.Index.Len())
	}
}

// TestDrainAfterFailure goes on receiving and writes nothing more.
func TestDrainAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(1)
		b.sink.fail = errDisk
		r := b.runner(t)
		_, abort := context.WithCancelCause(t.Context())
		defer abort(nil)
		done := make(chan error, 1)
		go func() { done <- r.drain(t.Context(), abort) }()
		for range 3 * maxUnacked {
			r.hand.over(t.Context(), record{tr: new(dataset.Trajectory), bytes: 1})
			synctest.Wait()
		}
		close(r.hand.records)
		if err := <-done; !errors.Is(err, errDisk) || b.sink.writes != 1 {
			t.Errorf("got error %v after %d writes, want %v after 1", err, b.sink.writes, errDisk)
		}
	})
}

// TestSinkFailureCutsOff does not wait for what is in flight.
func TestSinkFailureCutsOff(t *testing.T) {
	b := setup(2)
	b.sink.fail = errDisk
	b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		if ep.Task.Input == "1" {
			return endless(ctx, e, ep, tr)
		}
		return playOnce(ctx, e, ep, tr)
	})
	if _, err := b.runner(t).Run(t.Context(), t.Context()); !errors.Is(err, errDisk) {
		t.Errorf("got error %v, want %v", err, errDisk)
	}
}

func TestSizeOf(t *testing.T) {
	text := strings.Repeat("x", 1000)
	full := dataset.Trajectory{
		Messages: []dataset.Message{{
			Content: text, Reasoning: text, Parts: []byte(text),
			ToolCalls: []dataset.ToolCall{{Arguments: text, Coerced: text}},
		}},
		Rewards:   []dataset.Reward{{Raw: text, Explanation: text}},
		Sequences: []dataset.Sequence{{TokenIDs: make([]int32, 1000)}},
	}
	full.Children = []*dataset.Trajectory{{Messages: []dataset.Message{{Content: text}}}}
	if got := sizeOf(&full); got < 17_000 || got > 30_000 {
		t.Errorf("got %d for 17,000 bytes of text and tokens", got)
	}
}

// TestUnacknowledgedIsBounded holds the sink and counts what piles up.
func TestUnacknowledgedIsBounded(t *testing.T) {
	for _, test := range []struct {
		name  string
		bytes int
		want  int // attempts that have begun when all stands still
	}{
		{"by number", 0, maxUnacked + 300},
		{"by size", maxUnackedBytes / 4, 3 + 300},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := setup(2000)
				b.opts.Workers, b.sink.gate = 300, make(chan struct{})
				text, begun := strings.Repeat("x", test.bytes), make(chan struct{}, 2000)
				b.cell().Rollout = rolloutFunc(func(_ context.Context, _ env.Env, _ dataset.Episode, tr *dataset.Trajectory) error {
					begun <- struct{}{}
					tr.ExitReason = dataset.ExitAnswered
					tr.Messages = []dataset.Message{{Content: text}}
					return nil
				})
				done := make(chan error)
				go func() {
					_, err := b.runner(t).Run(t.Context(), t.Context())
					done <- err
				}()
				synctest.Wait()
				if got := len(begun); got != test.want {
					t.Errorf("%d attempts have begun, want %d", got, test.want)
				}
				close(b.sink.gate)
				if err := <-done; err != nil || len(b.sink.rows) != 2000 {
					t.Errorf("%d rows and error %v in the end", len(b.sink.rows), err)
				}
			})
		})
	}
}

func TestFatalStopsOneVariant(t *testing.T) {
	b := setup(50)
	b.opts.Workers, b.opts.InfraRetries = 1, 3
	broken := cell("broken")
	refused := &model.Error{Class: model.ClassAuth, Status: 401, Fatal: true, Err: errors.New("no such key")}
	broken.Rollout = rolloutFunc(func(context.Context, env.Env, dataset.Episode, *dataset.Trajectory) error {
		return fmt.Errorf("calling: %w", refused)
	})
	b.plan.Cells = [][]Cell{{broken}, {cell("good")}}
	b.plan.Total = 100
	s, err := b.runner(t).Run(t.Context(), t.Context())
	stopped, ok := errors.AsType[*VariantError](err)
	if !ok || stopped.Error() != `variant "broken" stopped: calling: auth (HTTP 401): no such key` || !errors.Is(err, refused) {
		t.Errorf("got error %v", err)
	}
	if got := s.Variants[1].Scored; got != 50 {
		t.Errorf("the good variant scored %d episodes, want 50", got)
	}
	if got := s.Variants[0]; got.Attempts != 1 || got.Planned != 50 {
		t.Errorf("the broken variant: %d attempts of %d episodes, want 1 of 50", got.Attempts, got.Planned)
	}
	if tr := b.sink.sorted()[0]; tr.ExitReason != dataset.ExitProviderError || tr.ErrorClass != model.ClassAuth {
		t.Errorf("its row has exit %q, class %q", tr.ExitReason, tr.ErrorClass)
	}
}

// TestAllVariantsFatal ends without reading the rest of the tasks.
func TestAllVariantsFatal(t *testing.T) {
	b := setup(0)
	b.opts.Workers = 1
	b.plan.Tasks = forever()
	b.cell().Rollout = rolloutFunc(func(context.Context, env.Env, dataset.Episode, *dataset.Trajectory) error {
		return &model.Error{Class: model.ClassModelNotFound, Fatal: true, Err: errors.New("unknown model")}
	})
	if _, err := b.runner(t).Run(t.Context(), t.Context()); err == nil {
		t.Error("no error")
	}
}

func forever() iter.Seq2[dataset.Task, error] {
	return func(yield func(dataset.Task, error) bool) {
		for i := range math.MaxInt {
			if !yield(dataset.Task{ID: strconv.Itoa(i)}, nil) {
				return
			}
		}
	}
}

// TestNoGoroutineIsKept sees far fewer goroutines than episodes have ended.
func TestNoGoroutineIsKept(t *testing.T) {
	b := setup(5000)
	b.opts.Grading = 1
	most := 0
	b.cell().Scorers = []Scorer{scorerFunc(func(context.Context, dataset.Task, *dataset.Trajectory) ([]dataset.Reward, error) {
		most = max(most, runtime.NumGoroutine())
		return nil, nil
	})}
	b.run(t)
	if most > 1000 { // some have been told to end and have not yet
		t.Errorf("%d goroutines at once", most)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*testBundle)
		want  string
	}{
		{"no tasks", func(b *testBundle) { b.plan.Tasks = nil }, "no tasks"},
		{"no samples", func(b *testBundle) { b.plan.Samples = 0 }, "0 samples"},
		{"no variants", func(b *testBundle) { b.plan.Cells = nil }, "no variants"},
		{"an empty variant", func(b *testBundle) { b.plan.Cells = append(b.plan.Cells, nil) }, "no cell"},
		{"no env", func(b *testBundle) { b.cell().Env = nil }, "no env"},
		{"no hash", func(b *testBundle) { b.cell().Variant.Hash = "" }, "no hash"},
		{"another name", func(b *testBundle) { b.plan.Cells[0] = []Cell{cell("v"), cell("w")} }, `is named "w"`},
		{"the same variant twice", func(b *testBundle) { b.plan.Cells = [][]Cell{{cell("v")}, {cell("v")}} }, "are the same"},
		{"negative workers", func(b *testBundle) { b.opts.Workers = -1 }, "workers is negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := setup(1)
			test.spoil(b)
			if _, err := New(b.plan, b.sink, b.opts); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := New(setup(1).plan, nil, Options{}); err == nil {
		t.Error("no sink, and no error")
	}
}

func TestChildrenAreIndexed(t *testing.T) {
	b := setup(1)
	b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		child := &dataset.Trajectory{Episode: ep, ParentEpisodeID: ep.ID, ExitReason: dataset.ExitAnswered}
		child.Episode.ID = dataset.ChildID(ep.ID, 0)
		pay(child, 4)
		tr.Children = append(tr.Children, child)
		return playOnce(ctx, e, ep, tr)
	})
	s := b.run(t)
	if s.Total.Total() != 1 || s.Total.Attempts != 2 || s.Total.CostKnown != 500 {
		t.Errorf("%d episodes, %d attempts, cost %d, want 1, 2, 500", s.Total.Total(), s.Total.Attempts, s.Total.CostKnown)
	}
	if got := Spent(b.opts.Index); got != (model.Spend{NanoUSD: 500, Tokens: 50}) {
		t.Errorf("spent %+v", got)
	}
}

func TestSummaryIsOverAllInvocations(t *testing.T) {
	b := setup(4)
	admit, cancel := context.WithCancel(t.Context())
	b.opts.Workers = 1
	good := b.cell().Rollout
	b.cell().Rollout = rolloutFunc(func(ctx context.Context, e env.Env, ep dataset.Episode, tr *dataset.Trajectory) error {
		cancel()
		return good.Run(ctx, e, ep, tr)
	})
	first, err := b.runner(t).Run(admit, t.Context())
	if err != nil || !first.Interrupted || first.Total.Total() != 1 || first.Total.Planned != 4 {
		t.Fatalf("first: %v, %d of %d, error %v", first.Interrupted, first.Total.Total(), first.Total.Planned, err)
	}
	if got := first.Total.Reward; *got.Value != 1 || *got.Low != 0.25 || *got.High != 1 {
		t.Errorf("first: reward %v in [%v, %v], want 1 in [0.25, 1]", *got.Value, *got.Low, *got.High)
	}
	b.opts.SkippedRows = func() int { return 3 }
	second := b.run(t)
	if second.Total.Total() != 4 || second.Skipped != 1 || second.Total.CostKnown != 400 || second.SkippedRows != 3 {
		t.Errorf("second: %d episodes, %d skipped, cost %d, %d bad rows, want 4, 1, 400, 3",
			second.Total.Total(), second.Skipped, second.Total.CostKnown, second.SkippedRows)
	}
}

func TestVariantsThatLeftThePlanStayInTheBooks(t *testing.T) {
	b := setup(2)
	b.run(t)
	b.plan.Cells = [][]Cell{{cell("w")}}
	s := b.run(t)
	if len(s.Variants) != 2 || s.Variants[1].Name != "" || s.Variants[1].Total() != 2 {
		t.Fatalf("variants %+v", s.Variants)
	}
	if s.Total.Total() != 2 || s.Total.CostKnown != 400 {
		t.Errorf("%d episodes, cost %d, want 2 of the plan, 400 of all", s.Total.Total(), s.Total.CostKnown)
	}
}
