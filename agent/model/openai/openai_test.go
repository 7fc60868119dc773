package openai

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	modeltest.Run(t, func(url string) model.Model {
		c, err := New(Options{Options: endpoint.Options{BaseURL: url, APIKey: modeltest.APIKey}, Model: modeltest.ModelName})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}
