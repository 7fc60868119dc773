package configs

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Every key has a class; the golden file makes a change of one a decision.
func TestClasses(t *testing.T) {
	var report strings.Builder
	for _, l := range leaves(reflect.TypeFor[Run](), "") {
		switch l.class {
		case classIdentity, classSelection, classOperation:
		default:
			t.Errorf("%s has class %q, want one of the three", l.key, l.class)
		}
		fmt.Fprintf(&report, "%-36s %s\n", l.key, l.class)
	}
	golden(t, "classes.golden", report.String())
}

// A variable stands for one key, or it could not be told which.
func TestVariableNames(t *testing.T) {
	o := Options{Env: func(string) (string, bool) { return "", false }}
	keys := map[string]string{}
	for _, l := range leaves(reflect.TypeFor[Run](), "") {
		name := envName(l.key)
		if other, ok := keys[name]; ok {
			t.Errorf("%s stands for %s and %s", name, other, l.key)
		}
		keys[name] = l.key
	}
	variables := o.variables()
	for name, key := range map[string]string{
		"TALARIA_AGENT_MODEL":                "agent.model",
		"TALARIA_LIMITS_RUN_COST_USD":        "limits.run.cost_usd",
		"TALARIA_TASKS_PATH":                 "tasks.path",
		"TALARIA_TASKS_SCORE":                "tasks.score",
		"TALARIA_SCORE":                      "score",
		"TALARIA_ENV_NAME":                   "env.name",
		"TALARIA_SWEEP":                      "sweep",
		"TALARIA_AGENT_SAMPLING_TEMPERATURE": "agent.sampling.temperature",
		"TALARIA_VERSION":                    "",
		"TALARIA_SCORE_NAME":                 "",
	} {
		if variables[name] != key {
			t.Errorf("%s stands for %q, want %q", name, variables[name], key)
		}
	}
}
