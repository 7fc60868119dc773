package answer_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/answer"
	"github.com/talaria-run/talaria/env/envtest"
)

func prompt(t dataset.Task) ([]dataset.Message, error) {
	if t.Input == "" {
		return nil, errors.New("no input")
	}
	return []dataset.Message{
		{Role: dataset.User, Content: "1+1?"},
		{Role: dataset.Assistant, Content: "2"},
		{Role: dataset.User, Content: t.Input},
	}, nil
}

func TestConformance(t *testing.T) {
	envtest.Run(t, envtest.Case{
		New:      func() (env.Factory, error) { return answer.New(env.Setup{Prompt: prompt}) },
		Episodes: []dataset.Episode{{ID: "a", Task: dataset.Task{ID: "1", Input: "2+2?"}}, {ID: "b", Task: dataset.Task{ID: "2", Input: "capital of France?"}, Seed: 7}},
		Broken:   []dataset.Episode{{ID: "c", Task: dataset.Task{ID: "3"}}},
	})
}

func TestFirstReplyEndsTheEpisode(t *testing.T) {
	f, err := answer.New(env.Setup{Prompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.New()
	if err != nil {
		t.Fatal(err)
	}
	messages, err := e.Reset(t.Context(), dataset.Episode{Task: dataset.Task{Input: "2+2?"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := messages[len(messages)-1].Content, "2+2?"; got != want {
		t.Errorf("last message: got %q, want %q", got, want)
	}
	got, err := e.Step(t.Context(), dataset.Message{Role: dataset.Assistant, Content: "4"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(env.Result{Done: true}, got); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	bad := errors.New("run.yaml:3: unknown key env.colour")
	tests := []struct {
		name  string
		setup env.Setup
		want  error
	}{
		{"no prompt", env.Setup{}, nil},
		{"a parameter", env.Setup{Prompt: prompt, Decode: func(any) error { return bad }}, bad},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := answer.New(tt.setup)
			if err == nil {
				t.Fatal("no error")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v in its chain", err, tt.want)
			}
		})
	}
}
