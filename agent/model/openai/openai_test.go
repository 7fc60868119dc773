package openai

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/agent/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	modeltest.Run(t, lab.ServerOpenAI, func(url string) model.Model {
		c, err := New(Options{Options: endpoint.Options{BaseURL: url, APIKey: modeltest.APIKey}, Model: modeltest.ModelName})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func TestConformanceOfDialects(t *testing.T) {
	for _, d := range []Dialect{VLLM, SGLang, LlamaCpp, OpenRouter} {
		t.Run(string(d), func(t *testing.T) {
			modeltest.Run(t, string(d), func(url string) model.Model {
				at := endpoint.Options{BaseURL: url, APIKey: modeltest.APIKey}
				c, err := New(Options{Options: at, Model: modeltest.ModelName, Dialect: d})
				if err != nil {
					t.Fatal(err)
				}
				return c
			})
		})
	}
}
