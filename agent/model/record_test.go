package model_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// sink keeps lines; it fails those that fail names, and takes its time.
type sink struct {
	lines []dataset.Call
	fail  map[dataset.CallPhase]error
	takes time.Duration
}

func (s *sink) Call(ctx context.Context, c dataset.Call) error {
	if s.takes > 0 {
		pass(s.takes)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.fail[c.Phase]; err != nil {
		return err
	}
	s.lines = append(s.lines, c)
	return nil
}

func TestRecord(t *testing.T) {
	cost := int64(12)
	answered := reply(3)
	answered.CostNanoUSD, answered.Unreported = &cost, 1
	lost := &model.Error{Class: model.ClassTimeout, Err: errors.New("silent"), Sent: true}
	tests := []struct {
		name string
		resp model.Response
		err  error
		end  dataset.Call
	}{
		{"answered", answered, nil, dataset.Call{Usage: answered.Usage, CostNanoUSD: &cost, Unreported: 1}},
		{"failed", model.Response{Unreported: 2}, lost, dataset.Call{Unreported: 2, ErrorClass: model.ClassTimeout}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := new(sink)
			req := model.Request{CallID: "e-0-4", Agent: dataset.AgentJudge, Episode: &dataset.Episode{ID: "e"}}
			inner := generator(func(context.Context, model.Request) (model.Response, error) {
				if len(s.lines) != 1 || s.lines[0].Phase != dataset.CallStart {
					t.Errorf("the request left with %d lines written", len(s.lines))
				}
				return tt.resp, tt.err
			})
			got, err := model.Record(inner, s).Generate(t.Context(), req)
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.resp, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			end := tt.end
			end.CallID, end.Agent, end.Episode = req.CallID, req.Agent, req.Episode
			wantLines(t, s.lines, end)
			again := model.EndOf(&req, &got, err)
			if diff := cmp.Diff(s.lines[1], again, cmpopts.IgnoreFields(dataset.Call{}, "AtUnixUS")); diff != "" {
				t.Errorf("the books differ from the ledger:\n%s", diff)
			}
		})
	}
}

// wantLines wants a start and end, in this order.
func wantLines(t *testing.T, got []dataset.Call, end dataset.Call) {
	t.Helper()
	end.Phase = dataset.CallEnd
	start := dataset.Call{Phase: dataset.CallStart, CallID: end.CallID, Agent: end.Agent, Episode: end.Episode, Most: end.Most}
	if diff := cmp.Diff([]dataset.Call{start, end}, got, cmpopts.IgnoreFields(dataset.Call{}, "AtUnixUS")); diff != "" {
		t.Fatalf("lines (-want +got):\n%s", diff)
	}
	if got[0].AtUnixUS == 0 || got[1].AtUnixUS < got[0].AtUnixUS {
		t.Errorf("times %d and %d", got[0].AtUnixUS, got[1].AtUnixUS)
	}
}

// TestRecordCancelled wants the second line although ctx is done.
func TestRecordCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := new(sink)
	inner := generator(func(ctx context.Context, _ model.Request) (model.Response, error) {
		cancel(dataset.ErrInterrupted)
		return model.Response{Unreported: 1}, &model.Error{Class: model.ClassCancelled, Err: context.Cause(ctx), Sent: true}
	})
	_, err := model.Record(inner, s).Generate(ctx, model.Request{})
	wantClass(t, err, model.ClassCancelled, dataset.ErrInterrupted)
	if len(s.lines) != 2 || s.lines[1].ErrorClass != model.ClassCancelled || s.lines[1].Unreported != 1 {
		t.Errorf("lines %+v", s.lines)
	}
}

// TestRecordFails makes no call that it cannot write down before, and does not
// hide one that it cannot write down after.
func TestRecordFails(t *testing.T) {
	full := errors.New("disk full")
	calls := 0
	inner := generator(func(context.Context, model.Request) (model.Response, error) {
		calls++
		return reply(1), nil
	})
	if _, err := model.Record(inner, &sink{fail: map[dataset.CallPhase]error{dataset.CallStart: full}}).Generate(t.Context(), model.Request{}); !errors.Is(err, full) || calls != 0 {
		t.Errorf("error %v after %d calls", err, calls)
	}
	resp, err := model.Record(inner, &sink{fail: map[dataset.CallPhase]error{dataset.CallEnd: full}}).Generate(t.Context(), model.Request{})
	if !errors.Is(err, full) || calls != 1 || resp.Usage == nil {
		t.Errorf("error %v after %d calls, usage %+v", err, calls, resp.Usage)
	}
}

// TestRecordStopsTheClock lets a slow disk not count as work.
func TestRecordStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clock, cancel := model.WithClock(t.Context(), time.Minute)
		defer cancel()
		inner := generator(func(context.Context, model.Request) (model.Response, error) {
			pass(time.Second)
			return reply(1), nil
		})
		begin := time.Now()
		resp, err := model.Record(inner, &sink{takes: time.Hour}).Generate(ctx, model.Request{})
		if err != nil {
			t.Error(err)
		}
		wantWorked(t, clock, time.Second)
		wantPause(t, resp, begin, time.Hour)
	})
}
