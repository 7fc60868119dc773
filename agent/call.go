package agent

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// errNoReturn stands for the error of a model call that panicked.
var errNoReturn = errors.New("the model panicked")

// generate asks the model once. The message in resp is the caller's to keep or
// discard.
func (a *attempt) generate(ctx context.Context, resp *model.Response) *end {
	req := a.request()
	a.call = a.begin(dataset.SpanModel, a.spanID(dataset.SpanModel), "generate")
	a.tr.Spans[a.call].CallID = req.CallID
	returned := false
	defer func() {
		if !returned { // it panics, and may have been paid for
			a.book(ctx, &req, &model.Response{Unreported: 1}, errNoReturn)
		}
	}()
	var err error
	*resp, err = a.loop.model.Generate(ctx, req)
	returned = true
	a.book(ctx, &req, resp, err)
	if err != nil {
		return callFailure(ctx, err)
	}
	a.reply(&resp.Message)
	return nil
}

// request is the next call. It shares the history with tr: a model changes
// nothing, and the loop only appends.
func (a *attempt) request() model.Request {
	req := model.Request{
		Messages: a.tr.Messages, Tools: a.tools.specs, Sampling: a.loop.sampling,
		CallID: model.CallID(a.ep, a.turn), Agent: dataset.AgentPolicy, Episode: a.ep,
	}
	a.turn++
	return req
}

// reply marks a message as the policy's.
func (a *attempt) reply(m *dataset.Message) {
	m.Role, m.Policy, m.Agent = dataset.Assistant, true, dataset.AgentPolicy
	m.Turn, m.SpanID, m.CreatedAt = a.turn, a.tr.Spans[a.call].ID, time.Now()
	m.ToolCalls = slices.Clone(m.ToolCalls) // results are noted in them, and a script may share its own
}

// book records what is known of a finished call, as the ledger does.
func (a *attempt) book(ctx context.Context, req *model.Request, resp *model.Response, err error) {
	a.tr.Books.Add(model.EndOf(req, resp, err))
	took := a.finish(ctx, a.call, err)
	a.tr.Model += max(took-resp.Paused, 0)
	a.tr.Throttle += resp.Paused
	if resp.PriceVersion != "" {
		a.tr.PriceVersion = resp.PriceVersion
	}
	a.tr.ModelsServed = addDistinct(a.tr.ModelsServed, resp.ModelServed)
	a.tr.Fingerprints = addDistinct(a.tr.Fingerprints, resp.Fingerprint)
	a.tr.Upstream = addDistinct(a.tr.Upstream, resp.Upstream)

	s := &a.tr.Spans[a.call]
	s.ErrorClass = model.ClassOf(err)
	s.RequestID, s.ModelServed, s.TTFT = resp.RequestID, resp.ModelServed, resp.TTFT
	s.Usage, s.CostNanoUSD = resp.Usage, resp.CostNanoUSD
	a.addTries(resp.Tries)
}

// addTries adds the spans of failed tries and pauses within the last call.
func (a *attempt) addTries(tries []model.Try) {
	counts := map[string]int{}
	for _, try := range tries {
		parent := &a.tr.Spans[a.call]
		n := counts[try.Kind]
		counts[try.Kind]++
		s := dataset.Span{
			ID: parent.ID + "-" + try.Kind + "-" + strconv.Itoa(n), ParentID: parent.ID,
			Kind: try.Kind, Name: try.Kind, Turn: a.turn, Agent: dataset.AgentPolicy,
			Start: try.Start.Sub(a.tr.StartedAt), Duration: try.Duration, Status: statusOK,
			ErrorClass: try.ErrorClass, CallID: parent.CallID, RequestID: try.RequestID,
		}
		if try.Kind == dataset.SpanRetry {
			s.Retry, s.Status = n, tryStatus(try)
		}
		if try.Status != 0 {
			s.Attrs = map[string]any{"http_status": try.Status}
		}
		a.tr.Spans = append(a.tr.Spans, s)
	}
}

func tryStatus(try model.Try) string {
	if try.ErrorClass == model.ClassCancelled {
		return statusCancelled
	}
	return statusError
}

// discard throws the last reply away: it was paid for, and the history stays
// as it was.
func (a *attempt) discard(why string) {
	a.tr.DiscardedGenerations++
	a.tr.Spans[a.call].Attrs = map[string]any{"discarded": why}
}

func addDistinct(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
