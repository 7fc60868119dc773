package agent

import (
	"fmt"

	"github.com/talaria-run/talaria/dataset"
)

// Values of [dataset.Message.InjectedBy]: results that no tool gave.
const (
	InjectedRepair    = "repair"    // tells the model what to mend
	InjectedSynthetic = "synthetic" // stands where a call was not run or did not return
)

// Values of [dataset.ToolCall.BlockedBy]: why a call was not run.
const (
	BlockedUnknownTool      = "unknown_tool"
	BlockedInvalidArguments = "invalid_arguments"
	BlockedSkipped          = "skipped" // another call of the reply could not be run
	BlockedEnd              = "episode_end"
)

// refusal is the result of a call that no tool gave.
type refusal struct {
	by       string
	injected string
	text     string
}

func (r refusal) message() dataset.Message {
	return dataset.Message{Content: r.text, IsError: true, InjectedBy: r.injected}
}

func noTool(name, names string) refusal {
	if names == "" {
		return refusal{BlockedUnknownTool, InjectedRepair, fmt.Sprintf("There is no tool %q. There are no tools.", name)}
	}
	return refusal{BlockedUnknownTool, InjectedRepair, fmt.Sprintf("There is no tool %q. Valid tools: %s.", name, names)}
}

// noName is terse: weak models that send empty names loop when they are shown
// the catalogue.
func noName() refusal {
	return refusal{BlockedUnknownTool, InjectedRepair, "A tool call needs a name."}
}

func badArguments(err error) refusal {
	return refusal{BlockedInvalidArguments, InjectedRepair, "Not run: " + err.Error() + "."}
}

func skipped() refusal {
	return refusal{BlockedSkipped, InjectedRepair, "Skipped: another tool call of the same reply was invalid."}
}

func notRun(stop *end) refusal {
	return refusal{BlockedEnd, InjectedSynthetic, fmt.Sprintf("Not run: the episode ended (%s).", stop.reason)}
}

// broken answers a call that began and did not return.
func broken(stop *end) refusal {
	return refusal{"", InjectedSynthetic, fmt.Sprintf("The tool did not return: the episode ended (%s).", stop.reason)}
}
