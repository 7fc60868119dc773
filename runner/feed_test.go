package runner

import (
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

func TestDue(t *testing.T) {
	// All cases have InfraRetries 2: an episode may end as infra three times.
	for _, test := range []struct {
		name  string
		st    store.State
		retry Retry
		want  bool
	}{
		{"no row", store.State{}, Retry{}, true},
		{"answered", store.State{Attempts: 1, Outcome: dataset.OutcomeModel}, Retry{Infra: true, Task: true, Budget: true}, false},
		{"unscored", store.State{Attempts: 1, Outcome: dataset.OutcomeModel, Unscored: true}, Retry{}, false},
		{"needs the world", store.State{Attempts: 1, Outcome: dataset.OutcomeModel, Unscored: true, NeedsWorld: true}, Retry{}, true},
		{
			"needs the world, and infra used up since",
			store.State{Attempts: 4, Outcome: dataset.OutcomeModel, Unscored: true, NeedsWorld: true, Infra: 3},
			Retry{},
			false,
		},
		{"task at fault", store.State{Attempts: 1, Outcome: dataset.OutcomeTask}, Retry{}, false},
		{"task at fault, asked for", store.State{Attempts: 1, Outcome: dataset.OutcomeTask}, Retry{Task: true}, true},
		{"infra once", store.State{Attempts: 1, Outcome: dataset.OutcomeInfra, Infra: 1}, Retry{}, true},
		{"infra used up", store.State{Attempts: 3, Current: 2, Outcome: dataset.OutcomeInfra, Infra: 3}, Retry{}, false},
		{"infra used up, asked for", store.State{Attempts: 3, Current: 2, Outcome: dataset.OutcomeInfra, Infra: 3}, Retry{Infra: true}, true},
		{"operator", store.State{Attempts: 1, Outcome: dataset.OutcomeOperator}, Retry{}, true},
		{"operator, infra used up before", store.State{Attempts: 4, Current: 3, Outcome: dataset.OutcomeOperator, Infra: 3}, Retry{}, true},
		{"budget", store.State{Attempts: 1, Outcome: dataset.OutcomeBudget}, Retry{}, true},
		{"budget, then one infra", store.State{Attempts: 2, Outcome: dataset.OutcomeBudget, Infra: 1}, Retry{}, true},
		{"budget, and infra used up since", store.State{Attempts: 4, Outcome: dataset.OutcomeBudget, Infra: 3}, Retry{}, false},
		{"the same, asked for", store.State{Attempts: 4, Outcome: dataset.OutcomeBudget, Infra: 3}, Retry{Budget: true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := due(test.st, Options{InfraRetries: 2, Retry: test.retry}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
