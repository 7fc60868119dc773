package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// session is one invocation of a run.
type session struct {
	cfg     *configs.Run
	std     *stdio
	shard   runner.Shard
	earlier *store.Run // what is gone on with; nil: a new run
	sources sources
	kept    store.KeptTypes
	made    *assembly
	cells   [][]runner.Cell
	total   int // episodes of the plan
}

// prepare checks all that can be checked before anything is spent, the tasks of
// other shards included. Its errors are the config's.
func prepare(ctx context.Context, cfg *configs.Run, shard runner.Shard, earlier *store.Run, std *stdio) (*session, error) {
	made, err := newAssembly(cfg, std)
	if err != nil {
		return nil, &usageError{err: err}
	}
	s := &session{cfg: cfg, std: std, shard: shard, earlier: earlier, made: made}
	if err := s.check(ctx); err != nil {
		s.close(ctx)
		return nil, &usageError{err: err}
	}
	s.warn()
	return s, nil
}

func (s *session) check(ctx context.Context) (err error) {
	if s.cells, err = s.made.cells(ctx); err != nil {
		return err
	}
	if s.sources, err = openSources(ctx, s.cfg, s.earlier, s.std); err != nil {
		return err
	}
	tasks, err := s.sources.count(ctx, s.shard, &s.kept)
	if err != nil {
		return err
	}
	s.total = tasks * len(s.cells) * s.cfg.Samples
	return checkDescriptors(s.cfg, s.made.endpoints)
}

// warn tells what is odd about the run, but may be meant so.
func (s *session) warn() {
	s.sources.warn(s.std.log)
	for _, row := range s.cells {
		for _, c := range row {
			if v := c.Variant; sandboxedEnvs()[v.Env] && !actInSandbox(v.Toolsets) {
				s.std.log.Warn("no tool acts in the sandbox, and without one no model can solve the tasks: add terminal to agent.toolsets",
					slog.String("variant", v.Name), slog.String("env", v.Env))
			}
		}
	}
}

// close releases what prepare made, also when ctx is done.
func (s *session) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s.made.endpoints.close()
	if err := errors.Join(closeCells(ctx, s.cells), s.made.sandboxes.close(ctx)); err != nil {
		s.std.log.Warn("closing envs and sandboxes", slog.String("error", err.Error()))
	}
}

// newRecord is run.json of a new run.
func (s *session) newRecord(configPath string) (store.Run, error) {
	record := store.Run{
		SchemaVersion: store.SchemaVersion, RunID: newRunID(), Name: s.cfg.Name,
		CreatedAt: time.Now().UTC(), ConfigPath: configPath, Shard: s.shard.String(),
	}
	return record, s.fill(&record)
}

// fill brings run.json up to what this invocation runs.
func (s *session) fill(record *store.Run) error {
	resolved, err := s.cfg.Resolved()
	if err != nil {
		return fmt.Errorf("writing the config as resolved: %w", err)
	}
	files, err := s.sources.fingerprints()
	if err != nil {
		return fmt.Errorf("hashing the dataset: %w", err)
	}
	v := buildVersion()
	record.State, record.EndedAt = store.StateRunning, nil
	record.Config, record.Datasets = resolved, files
	record.Tags, record.Note = s.cfg.Tags, s.cfg.Note
	record.ConfigHash = s.cfg.ConfigHash()
	record.IdentityHash = dataset.ID("identity", dataset.Canonical(identities(s.cfg)))
	record.Seed, record.Samples, record.Total = s.cfg.Seed, s.cfg.Samples, s.total
	record.Variants = mergeVariants(record.Variants, s.cells)
	record.Version, record.Commit, record.Go = v.Version, v.Commit, v.Go
	record.Host = hostname()
	record.Invocations = append(record.Invocations, store.Invocation{
		StartedAt: time.Now().UTC(), Host: record.Host, PID: os.Getpid(), Version: v.Version,
	})
	return nil
}

// identities is the identity of each source.
func identities(cfg *configs.Run) []any {
	all := make([]any, len(cfg.Sources()))
	for i := range all {
		all[i] = cfg.Identity(i)
	}
	return all
}

func newRunID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return runtime.GOOS
	}
	return name
}

func (s *session) storeOptions() store.Options {
	return store.Options{
		Variants: variantsByHash(s.cells),
		Kept:     &s.kept,
		DiskWait: s.cfg.Limits.DiskWait,
		Logger:   s.std.log,
		Mask:     s.std.secrets.mask,
	}
}

// run runs the plan into st, prints the summary and closes st.
func (s *session) run(ctx context.Context, dir string, st *store.Store, retry runner.Retry) error {
	budget := runner.NewBudget(s.budget(), runner.Spent(st.Index()))
	s.made.calls.CallSink, s.made.budget.Budget = st, budget
	waiting, done, err := s.waiting(dir, st.Index())
	if err != nil {
		return errors.Join(err, st.Close())
	}
	defer done()
	r, err := runner.New(s.plan(), st, s.runnerOptions(st, budget, retry, waiting))
	if err != nil {
		return errors.Join(err, st.Close())
	}
	s.announce(dir)
	if s.total == 0 {
		s.std.log.Info("the shard has no tasks: there is nothing to run", shardAttr(s.shard)...)
	}
	summary, err := s.drive(ctx, dir, r)
	return s.finish(dir, st, summary, err)
}

// announce says where the run is before anything is spent, so that it is found
// whatever happens.
func (s *session) announce(dir string) {
	switch {
	case s.std.quiet:
	case s.std.logJSON:
		s.std.log.Info("recording", append([]any{slog.String("dir", dir)}, shardAttr(s.shard)...)...)
	default:
		s.std.err.printf("recording in %s%s\n", dir, inBrackets(s.shard))
	}
}

func (s *session) plan() runner.Plan {
	return runner.Plan{
		Seed: s.cfg.Seed, Samples: s.cfg.Samples, Tasks: s.shard.Of(s.sources.tasks()), Cells: s.cells, Total: s.total,
	}
}

func (s *session) runnerOptions(
	st *store.Store, budget *runner.Budget, retry runner.Retry, waiting iter.Seq2[*dataset.Trajectory, error],
) runner.Options {
	l := s.cfg.Limits
	return runner.Options{
		Workers: l.Concurrency.Episodes, Grading: l.Concurrency.Grading, InfraRetries: l.Retries.Infra,
		Grace: l.Grace, ScoreTimeout: l.Score, CloseTimeout: l.Close,
		RunTime: timeLeft(l.Run.Time, st.Run().Invocations),
		Retry:   retry, Budget: budget, Index: st.Index(), Recorded: waiting,
		SkippedRows: s.sources.skipped, Log: s.std.log,
	}
}

// timeLeft is what earlier invocations left of limit; 0 is none. One whose end
// is not on record, because it was killed, counts nothing.
func timeLeft(limit time.Duration, invocations []store.Invocation) time.Duration {
	if limit == 0 {
		return 0
	}
	for _, i := range invocations {
		if i.EndedAt != nil {
			limit -= i.EndedAt.Sub(i.StartedAt)
		}
	}
	return max(limit, 1)
}

// waiting yields the recorded attempts that are to be scored again: those that
// no scorer could judge, and those that were judged by other scorers.
func (s *session) waiting(dir string, ix *store.Index) (seq iter.Seq2[*dataset.Trajectory, error], done func(), err error) {
	wants := map[string]string{} // variant hash to scorer hash
	for hash, v := range variantsByHash(s.cells) {
		wants[hash] = v.ScorerHash
	}
	waits := func(st store.State) bool {
		hash, planned := wants[st.VariantHash]
		return planned && st.Outcome == dataset.OutcomeModel && !st.NeedsWorld &&
			(st.Unscored || st.ScorerHash != hash)
	}
	if !ix.Any(waits) {
		return nil, func() {}, nil
	}
	temp, err := os.MkdirTemp("", "talaria-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	done = func() { _ = os.RemoveAll(temp) } // of copies only
	view, err := store.OpenView(dir, temp)
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("reading what is recorded: %w", err)
	}
	return view.Trajectories(func(row *store.AttemptRow) bool {
		state := ix.State(row.EpisodeID)
		return state.Current == int(row.Attempt) && waits(state)
	}), done, nil
}

// interruptNote says what the n-th signal does.
func interruptNote(n int) string {
	if n == 1 {
		return "draining: episodes in flight finish; interrupt again to cut them off"
	}
	return "cutting off what is in flight"
}

// drive runs r under signals and with progress.
func (s *session) drive(ctx context.Context, dir string, r *runner.Runner) (runner.Summary, error) {
	var note atomic.Value // string
	note.Store("")
	admit, work, stop := drainOnSignals(ctx, s.cfg.Limits.Grace, func(n int) {
		note.Store(interruptNote(n))
		s.std.log.Info("interrupted", slog.String("now", interruptNote(n)))
	})
	defer stop()
	hide := showProgress(s.std, func() progressState {
		p := r.Progress()
		return progressState{
			Shard: s.shard, Done: p.Done, Total: p.Total, InFlight: p.InFlight, Rate: p.Rate, ETA: p.ETA,
			Elapsed: p.Elapsed, Tally: p.Tally, Note: note.Load().(string), Endpoints: s.made.endpoints.live(),
			Budget: s.budget(), Failures: p.Failures, Variants: progressVariants(p.Variants),
		}
	})
	defer hide()
	defer publishLive(dir, func() liveReport { return s.live(r.Progress()) })()
	return r.Run(admit, work)
}

func (s *session) budget() runner.Limits {
	return runner.Limits{CostNanoUSD: nanoUSD(s.cfg.Limits.Run.CostUSD), Tokens: s.cfg.Limits.Run.Tokens}
}

func progressVariants(all []runner.VariantProgress) []progressVariant {
	variants := make([]progressVariant, len(all))
	for i, v := range all {
		variants[i] = progressVariant{Name: v.Name, Done: v.Done, Total: v.Total, Tally: v.Tally}
	}
	return variants
}

// live is what a process that looks on may know.
func (s *session) live(p runner.Progress) liveReport {
	return liveReport{
		At: time.Now().UTC(), Done: p.Done, Total: p.Total, InFlight: p.InFlight,
		PerSecond: p.Rate, ETA: p.ETA.Seconds(), Endpoints: s.made.endpoints.live(),
	}
}
