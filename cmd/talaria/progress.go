package main

import (
	"log/slog"
	"sync"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

const (
	liveEvery  = 200 * time.Millisecond // fast enough to look alive, slow enough to cost nothing
	plainEvery = 5 * time.Second        // a log of an hour stays readable
)

// progressState is what a progress display shows of a run.
type progressState struct {
	Shard       runner.Shard
	Done, Total int // episodes that have ended; of how many, 0 if that is not known
	InFlight    int
	Rate        float64       // episodes a second, lately
	ETA         time.Duration // 0: not known
	Elapsed     time.Duration
	store.Tally // what is recorded so far
	// TokensPerSecond that are written, lately; showProgress measures it.
	TokensPerSecond float64
	Budget          runner.Limits  // the run's; 0: none
	Failures        map[string]int // attempts by error class
	Variants        []progressVariant
	Endpoints       []endpointLive
	Note            string // a sentence for the user, such as what Ctrl-C does now; mostly empty
}

// progressVariant is how one variant stands.
type progressVariant struct {
	Name        string
	Done, Total int
	store.Tally
}

// tokenRate measures how many tokens a second are written, from samples of their
// number over the last seconds. The zero value is ready to use.
type tokenRate struct{ samples []tokenSample }

type tokenSample struct {
	at     time.Time
	tokens int64
}

// tokenWindow is long enough that the ends of single episodes do not show.
const tokenWindow = 20 * time.Second

// at takes a sample in and returns the rate.
func (r *tokenRate) at(now time.Time, tokens int64) float64 {
	r.samples = append(r.samples, tokenSample{now, tokens})
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= tokenWindow {
		r.samples = r.samples[1:]
	}
	first := r.samples[0]
	if seconds := now.Sub(first.at).Seconds(); seconds > 0 {
		return float64(tokens-first.tokens) / seconds
	}
	return 0
}

// showProgress shows what state tells until stop is called, which shows it
// once more: on a terminal as a display that is drawn over, else as a line
// every few seconds, as a log record where logs are JSON, and not at all with
// --quiet. state is called from another goroutine.
func showProgress(std *stdio, state func() progressState) (stop func()) {
	if std.quiet {
		return func() {}
	}
	show, every := plainDisplay(std), plainEvery
	if std.live() {
		show, every = liveDisplay(std), liveEvery
	}
	var written tokenRate
	measured := func() progressState {
		s := state()
		s.TokensPerSecond = written.at(time.Now(), s.Usage.Output)
		return s
	}
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				show(measured())
			case <-stopped:
				show(measured())
				std.err.release()
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stopped)
		<-done
	})
}

func liveDisplay(std *stdio) func(progressState) {
	return func(s progressState) {
		width := std.width()
		std.err.show(renderLive(s, width, !std.noColor), width)
	}
}

func plainDisplay(std *stdio) func(progressState) {
	if std.logJSON {
		return func(s progressState) { logProgress(std.log, s) }
	}
	return func(s progressState) { std.err.printf("%s\n", renderPlain(s)) }
}

func logProgress(log *slog.Logger, s progressState) {
	outcomes := make([]any, 0, len(s.Episodes))
	for _, o := range shownOutcomes() {
		if n := s.Episodes[o]; n > 0 {
			outcomes = append(outcomes, slog.Int(string(o), n))
		}
	}
	log.Info("progress", append(shardAttr(s.Shard),
		slog.Int("done", s.Done),
		slog.Int("total", s.Total),
		slog.Int("in_flight", s.InFlight),
		slog.Float64("per_second", s.Rate),
		slog.Float64("eta_s", s.ETA.Seconds()),
		slog.Int64("tokens", s.Usage.Total()),
		slog.Int64("cost_known_nanousd", s.CostKnown),
		slog.Int("cost_unknown", s.CostUnknown),
		slog.Group("outcomes", outcomes...),
		slog.Int("scored", s.Scored),
		slog.Int("passed", s.Passed),
		slog.Float64("tokens_out_per_second", s.TokensPerSecond),
		slog.Any("failures", s.Failures),
		slog.Any("endpoints", s.Endpoints),
	)...)
}

// shownOutcomes is the order in which outcomes are shown.
func shownOutcomes() []dataset.Outcome {
	return []dataset.Outcome{
		dataset.OutcomeModel, dataset.OutcomeTask, dataset.OutcomeInfra, dataset.OutcomeBudget, dataset.OutcomeOperator,
	}
}
