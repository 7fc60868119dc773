package source

import (
	"os"
	"strings"
	"testing"
)

// realData is public data beside the project, where it is present.
const realData = "../../../shared/data/gsm8k/"

func TestRealData(t *testing.T) {
	if _, err := os.Stat(realData); err != nil {
		t.Skip("the public data set is not beside the project")
	}
	columns := map[string]string{Input: "question", Target: "answer"}
	tasks := readAll(t, Options{Path: realData + "test-*.jsonl", Columns: columns})
	inputs := map[string]bool{}
	for _, task := range tasks {
		inputs[task.Input] = true
		if task.Occurrence != 0 || task.ID != task.Hash || !strings.Contains(task.Target, "\n#### ") {
			t.Errorf("task %+v", task)
		}
	}
	if len(tasks) != 1000 || len(inputs) != 1000 {
		t.Errorf("%d tasks with %d inputs, want 1000", len(tasks), len(inputs))
	}
	answers := readAll(t, Options{Path: realData + "model-solutions-*.jsonl", Columns: columns, Lenient: true})
	for i, a := range answers {
		solution, ok := a.Row["175b_verification"].(map[string]any)
		if a.Input != tasks[i].Input || !ok || solution["solution"] == nil {
			t.Fatalf("answer %d does not match its task: %+v", i, a)
		}
	}
	if len(answers) != len(tasks) {
		t.Errorf("%d answers, want %d", len(answers), len(tasks))
	}
}
