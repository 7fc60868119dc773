package agent

import (
	"context"
	"errors"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// end is why an attempt ends. A nil end is none: the attempt goes on.
type end struct {
	reason dataset.ExitReason
	class  string // of the error, where it has one
	err    error  // nil where nothing went wrong
}

func over(reason dataset.ExitReason) *end { return &end{reason: reason} }

// cut is the end of an attempt that was stopped from outside, nil if neither
// ctx nor err says that it was. Who cancels ctx without a word is a person.
func cut(ctx context.Context, err error) *end {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case errors.Is(err, dataset.ErrEpisodeTime):
		return over(dataset.ExitTimeLimit)
	case errors.Is(err, dataset.ErrRunBudget):
		return over(dataset.ExitRunBudget)
	case ctx.Err() != nil, errors.Is(err, dataset.ErrInterrupted):
		return over(dataset.ExitInterrupted)
	}
	return nil
}

// failure is the end by an error of the env or of a tool.
func failure(ctx context.Context, err error, atTask, atPanic dataset.ExitReason) *end {
	if panicked(err) {
		return &end{reason: atPanic, err: err}
	}
	if stop := cut(ctx, err); stop != nil {
		return stop
	}
	stop := &end{reason: dataset.ExitInfraError, err: err}
	if errors.Is(err, dataset.ErrTask) {
		stop.reason = atTask
	}
	if _, ok := errors.AsType[*model.Error](err); ok { // a world with a model of its own
		stop.class = model.ClassOf(err)
	}
	return stop
}

// callFailure is the end by an error of the policy's call.
func callFailure(ctx context.Context, err error) *end {
	if stop := cut(ctx, err); stop != nil {
		return stop
	}
	stop := &end{reason: dataset.ExitInfraError, class: model.ClassOf(err), err: err}
	_, byProvider := errors.AsType[*model.Error](err)
	switch {
	case stop.class == model.ClassContextOverflow:
		stop.reason = dataset.ExitContextFull
	case errors.Is(err, dataset.ErrTask):
		stop.reason = dataset.ExitEnvError
	case byProvider:
		stop.reason = dataset.ExitProviderError
	}
	return stop
}

// errUnpriced ends an attempt whose cost cannot be limited, because what is not
// known is never taken for 0.
var errUnpriced = errors.New("limits.episode.cost_usd is set and the price of the model is not known")

// limit is the end by a limit that the attempt has reached, or by ctx.
func (a *attempt) limit(ctx context.Context) *end {
	l, books := a.loop.limits, &a.tr.Books
	switch {
	case ctx.Err() != nil:
		return cut(ctx, nil)
	case reached(int64(a.turn), int64(l.Turns)):
		return over(dataset.ExitTurnLimit)
	case reached(books.Usage.Total(), l.Tokens):
		return over(dataset.ExitTokenLimit)
	case reached(books.CostKnown, l.CostNanoUSD):
		return over(dataset.ExitCostLimit)
	case reached(a.bytes, l.Bytes):
		return over(dataset.ExitBytesLimit)
	case l.CostNanoUSD > 0 && books.Unpriced > 0:
		return &end{reason: dataset.ExitInfraError, err: errUnpriced}
	}
	return nil
}

func reached(n, limit int64) bool { return limit > 0 && n >= limit }
