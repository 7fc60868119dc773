package model_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generator is a Model made of a function.
type generator func(context.Context, model.Request) (model.Response, error)

func (g generator) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	return g(ctx, req)
}

// reply is an answer that used n tokens of input and of output each.
func reply(n int64) model.Response {
	return model.Response{
		Message: dataset.Message{Role: dataset.Assistant, Content: "ok", FinishReason: model.FinishStop},
		Usage:   &dataset.Usage{Input: n, Output: n},
	}
}

// wantClass checks what a failed call says.
func wantClass(t *testing.T, err error, class string, causes ...error) {
	t.Helper()
	if got := model.ClassOf(err); got != class {
		t.Errorf("class %q, want %q: %v", got, class, err)
	}
	for _, cause := range causes {
		if !errors.Is(err, cause) {
			t.Errorf("error %v has no %v in its chain", err, cause)
		}
	}
}

func TestAs(t *testing.T) {
	inner := generator(func(context.Context, model.Request) (model.Response, error) { return reply(1), nil })
	stack := model.Record(model.Price(model.Gate(model.Retry(model.Limit(inner, model.NewLimiter(1, model.LimiterOptions{})),
		model.RetryOptions{}), nil, model.Rates{}), model.EmbeddedPrices(), "p", "m"), nil)
	if _, ok := model.As[generator](stack); !ok {
		t.Error("the innermost model is not found through the wrappers")
	}
	if _, ok := model.As[interface{ Tokenize() }](stack); ok {
		t.Error("found what is not there")
	}
}

func TestCallID(t *testing.T) {
	if got, want := model.CallID(&dataset.Episode{ID: "abc", Attempt: 2}, 10), "abc-2-10"; got != want {
		t.Errorf("CallID = %q, want %q", got, want)
	}
}

func TestClassOf(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("odd"), model.ClassUnknown},
		{context.Canceled, model.ClassCancelled},
		{dataset.ErrInterrupted, model.ClassCancelled},
		{dataset.ErrEpisodeTime, model.ClassCancelled},
		{dataset.ErrRunBudget, model.ClassRunBudget},
		{dataset.ErrTask, model.ClassTask},
		{errors.Join(errors.New("a"), &model.Error{Class: model.ClassServer, Err: context.Canceled}), model.ClassServer},
	}
	for _, tt := range tests {
		if got := model.ClassOf(tt.err); got != tt.want {
			t.Errorf("ClassOf(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
