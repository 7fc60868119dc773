package openai

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	modeltest.Run(t, func(url string) model.Model {
		c, err := New(Options{BaseURL: url, Model: modeltest.ModelName, APIKey: modeltest.APIKey})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}
