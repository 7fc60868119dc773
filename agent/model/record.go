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
	gate  *gated // tells what a call may use at most; nil: nobody knows
}

// Record writes two lines about each call: one before anything of it leaves,
// one after its end, before Generate returns. A call whose first line cannot
// be written is not made. The second line is written whatever became of the
// call, also when ctx is done.
func Record(inner Model, calls CallSink) Model {
	gate, _ := As[*gated](inner)
	return &recorder{inner: inner, calls: calls, gate: gate}
}

func (r *recorder) Unwrap() Model { return r.inner }

func (r *recorder) Generate(ctx context.Context, req Request) (resp Response, err error) {
	var most Spend
	if r.gate != nil {
		most = r.gate.worst(&req)
	}
	wait, err := r.begin(ctx, &req, most)
	if err != nil {
		return Response{}, err
	}
	resp, err = r.inner.Generate(ctx, req)
	resp.waitedBefore(wait)
	resp.Most = most
	if lost := r.end(ctx, &req, &resp, err); lost != nil {
		err = errors.Join(err, lost)
	}
	return resp, err
}

func (r *recorder) begin(ctx context.Context, req *Request, most Spend) (Try, error) {
	wait, err := stall(ctx, func() error {
		return r.calls.Call(ctx, dataset.Call{
			Phase: dataset.CallStart, CallID: req.CallID, Agent: req.Agent,
			Episode: req.Episode, AtUnixUS: time.Now().UnixMicro(), Most: most,
		})
	})
	if err != nil {
		err = fmt.Errorf("recording the start of call %s: %w", req.CallID, err)
	}
	return wait, err
}

func (r *recorder) end(ctx context.Context, req *Request, resp *Response, err error) error {
	line := EndOf(req, resp, err)
	_, lost := stall(ctx, func() error { return r.calls.Call(context.WithoutCancel(ctx), line) })
	if lost != nil {
		return fmt.Errorf("recording the end of call %s: %w", req.CallID, lost)
	}
	return nil
}

// EndOf is the ledger's line about a call that ended with resp and err. The
// same line goes into an attempt's [dataset.Books], so that rows and ledger
// agree.
func EndOf(req *Request, resp *Response, err error) dataset.Call {
	return dataset.Call{
		Phase: dataset.CallEnd, CallID: req.CallID, Agent: req.Agent,
		Episode: req.Episode, AtUnixUS: time.Now().UnixMicro(), Most: resp.Most,
		Usage: resp.Usage, CostNanoUSD: resp.CostNanoUSD, Unreported: resp.Unreported,
		ErrorClass: ClassOf(err),
	}
}
