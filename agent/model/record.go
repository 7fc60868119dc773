package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// CallSink is the ledger of model calls. Call returns when the line is
// written; it is safe for concurrent use.
type CallSink interface {
	Call(ctx context.Context, c dataset.Call) error
}

type recorder struct {
	inner Model
	calls CallSink
}

// Record writes two lines about each call: one before anything of it leaves,
// one after its end, before Generate returns. A call whose first line cannot
// be written is not made. The second line is written whatever became of the
// call, also when ctx is done.
func Record(inner Model, calls CallSink) Model {
	return &recorder{inner: inner, calls: calls}
}

func (r *recorder) Unwrap() Model { return r.inner }

func (r *recorder) Generate(ctx context.Context, req Request) (Response, error) {
	wait, err := stall(ctx, func() error { return r.calls.Call(ctx, startOf(req)) })
	if err != nil {
		return Response{}, fmt.Errorf("recording the start of call %s: %w", req.CallID, err)
	}
	resp, err := r.inner.Generate(ctx, req)
	resp.waitedBefore(wait)
	end := EndOf(req, resp, err)
	if _, lost := stall(ctx, func() error { return r.calls.Call(context.WithoutCancel(ctx), end) }); lost != nil {
		return resp, errors.Join(err, fmt.Errorf("recording the end of call %s: %w", req.CallID, lost))
	}
	return resp, err
}

func startOf(req Request) dataset.Call {
	return dataset.Call{
		Phase: dataset.CallStart, CallID: req.CallID, Agent: req.Agent,
		Episode: req.Episode, AtUnixUS: time.Now().UnixMicro(),
	}
}

// EndOf is the ledger's line about a call that ended with resp and err. The
// same line goes into an attempt's [dataset.Books], so that rows and ledger
// agree.
func EndOf(req Request, resp Response, err error) dataset.Call {
	return dataset.Call{
		Phase: dataset.CallEnd, CallID: req.CallID, Agent: req.Agent,
		Episode: req.Episode, AtUnixUS: time.Now().UnixMicro(),
		Usage: resp.Usage, CostNanoUSD: resp.CostNanoUSD, Unreported: resp.Unreported,
		ErrorClass: ClassOf(err),
	}
}
