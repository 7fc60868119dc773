package scripted

import (
	"bufio"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

// row makes a row as a source reads it; id is mapped unless it is "".
func row(t *testing.T, id, input, text string) dataset.Task {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	task := dataset.Task{ID: id, Hash: "hash of " + input, Input: input}
	if err := dec.Decode(&task.Row); err != nil {
		t.Fatal(err)
	}
	if id == "" {
		task.ID = task.Hash
	}
	return task
}

func rows(tasks ...dataset.Task) iter.Seq2[dataset.Task, error] {
	return func(yield func(dataset.Task, error) bool) {
		for _, task := range tasks {
			if !yield(task, nil) {
				return
			}
		}
	}
}

func replayOf(t *testing.T, column string, tasks ...dataset.Task) *Model {
	t.Helper()
	r, err := NewReplay(rows(tasks...), column)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, "replay", Options{Replay: r})
}

func TestReplayColumn(t *testing.T) {
	tests := []struct{ name, row, column, want string }{
		{"plain", `{"a":"x"}`, "a", "x"},
		{"path", `{"a":{"b":{"c":"x"}}}`, "a.b.c", "x"},
		{"digits in a key", `{"175b_verification":{"solution":"x"}}`, "175b_verification.solution", "x"},
		{"a key of digits", `{"7":{"0":"x"}}`, "7.0", "x"},
		{"index", `{"a":[{"b":"no"},{"b":"x"}]}`, "a.1.b", "x"},
		{"dots in a key", `{"gpt-4.1":{"v1.0":"x"}}`, "gpt-4.1.v1.0", "x"},
		{"the longest key first", `{"a":{"b":"no"},"a.b":"x"}`, "a.b", "x"},
		{"the longest whose rest is found", `{"a":{"b":{"c":"x"}},"a.b":{"d":"no"}}`, "a.b.c", "x"},
		{"number", `{"a":18.50}`, "a", "18.5"},
		{"empty text", `{"a":""}`, "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			task := row(t, "", "in", tt.row)
			got := play(t, replayOf(t, tt.column, task), ask(dataset.Episode{Task: task}, submitTool), 5)
			want := []dataset.Message{{Role: dataset.Assistant, Content: tt.want, FinishReason: model.FinishStop}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplayJoins(t *testing.T) {
	tests := []struct {
		name   string
		rows   []dataset.Task
		task   dataset.Task
		sample int
		want   string // "": the task is at fault
	}{
		{"by input", []dataset.Task{row(t, "", "p", `{"a":"1"}`), row(t, "", "q", `{"a":"2"}`)}, dataset.Task{ID: "h", Hash: "h", Input: "q"}, 0, "2"},
		{"by input though the tasks have ids", []dataset.Task{row(t, "", "q", `{"a":"2"}`)}, dataset.Task{ID: "id", Hash: "h", Input: "q"}, 0, "2"},
		{"by id, not by input", []dataset.Task{row(t, "x", "q", `{"a":"1"}`), row(t, "y", "p", `{"a":"2"}`)}, dataset.Task{ID: "y", Hash: "h", Input: "q"}, 0, "2"},
		{"the n-th is sample n", []dataset.Task{row(t, "", "q", `{"a":"1"}`), row(t, "", "p", `{"a":"2"}`), row(t, "", "q", `{"a":"3"}`)}, dataset.Task{Input: "q"}, 1, "3"},
		{"an occurrence changes nothing", []dataset.Task{row(t, "", "q", `{"a":"1"}`), row(t, "", "q", `{"a":"3"}`)}, dataset.Task{Input: "q", Occurrence: 1}, 0, "1"},
		{"too few", []dataset.Task{row(t, "", "q", `{"a":"1"}`)}, dataset.Task{ID: "t", Input: "q"}, 1, ""},
		{"none", []dataset.Task{row(t, "", "q", `{"a":"1"}`)}, dataset.Task{ID: "t", Input: "p"}, 0, ""},
		{"null keeps its place", []dataset.Task{row(t, "", "q", `{"a":null}`), row(t, "", "q", `{"a":"2"}`)}, dataset.Task{ID: "t", Input: "q"}, 1, "2"},
		{"null", []dataset.Task{row(t, "", "q", `{"a":null}`), row(t, "", "q", `{"a":"2"}`)}, dataset.Task{ID: "t", Input: "q"}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replayOf(t, "a", tt.rows...).Generate(t.Context(), ask(dataset.Episode{Task: tt.task, Sample: tt.sample}))
			if tt.want == "" {
				if !errors.Is(err, dataset.ErrTask) || !strings.Contains(err.Error(), `task "t"`) {
					t.Errorf("error %v: want the task's fault, with its id", err)
				}
				return
			}
			if err != nil || got.Message.Content != tt.want {
				t.Errorf("content %q, want %q; error %v", got.Message.Content, tt.want, err)
			}
		})
	}
}

func TestReplayConversation(t *testing.T) {
	task := row(t, "t", "q", `{"traj":[
		{"role":"system","content":"s"},{"role":"user","content":"q"},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},
			{"id":"c1","type":"function","function":{"name":"g","arguments":{"b":[1]}}}]},
		{"role":"tool","tool_call_id":"c1","name":"f","content":"1"},{"role":"tool","tool_call_id":"c1","content":"2"},
		{"role":"assistant","content":[{"type":"text","text":"do"},{"type":"text","text":"ne"}],"reasoning_content":"hm"},
		{"role":"user","content":"sure?"}]}`)
	m := replayOf(t, "traj", task)
	want := []dataset.Message{
		{Role: dataset.Assistant, FinishReason: model.FinishToolCalls, ToolCalls: []dataset.ToolCall{
			{ID: "c1", Name: "f", Arguments: `{"a": 1}`},
			{ID: "c1", Name: "g", Arguments: `{"b":[1]}`},
		}},
		{
			Role: dataset.Assistant, FinishReason: model.FinishStop, Content: "done", Reasoning: "hm",
			Parts: json.RawMessage(`[{"text":"do","type":"text"},{"text":"ne","type":"text"}]`),
		},
	}
	req := ask(dataset.Episode{Task: task})
	if diff := cmp.Diff(want, play(t, m, req, 5)); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	req.Messages = append(req.Messages, dataset.Message{Policy: true}, dataset.Message{Policy: true})
	if _, err := m.Generate(t.Context(), req); !errors.Is(err, dataset.ErrTask) || !strings.Contains(err.Error(), "ends after 2 replies") {
		t.Errorf("after the last reply: %v", err)
	}
}

func TestNewReplayRefuses(t *testing.T) {
	tests := []struct {
		name, column string
		rows         iter.Seq2[dataset.Task, error]
		want         string
	}{
		{"no rows", "a", rows(), "there are no rows"},
		{"no such column", "b.c", rows(row(t, "", "q", `{"b":{"d":1},"a":2}`)), `no row has column "b.c"; the first row has a, b`},
		{"a list of something else", "a", rows(row(t, "", "q", `{"a":["x"]}`)), `row 1, task "hash of q": column "a": message 0 is no OpenAI message`},
		{"no role", "a", rows(row(t, "", "q", `{"a":[{"content":"x"}]}`)), `message 0 has role ""`},
		{"a bad row", "a", func(yield func(dataset.Task, error) bool) { yield(dataset.Task{}, errors.New("line 3: bad")) }, "line 3: bad"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewReplay(tt.rows, tt.column)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// shared is a file of real data that lies beside the project, where it does.
func shared(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no real data: %v", err)
	}
	return path
}

func lines(t *testing.T, path string) []map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []map[string]any
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		list = append(list, row(t, "", "", sc.Text()).Row)
	}
	return list
}

// TestReplayGSM8K joins 1,000 real answers of each of four models to their
// problems.
func TestReplayGSM8K(t *testing.T) {
	problems := lines(t, shared(t, "gsm8k/test-0000-0999.jsonl"))
	answers := make([]dataset.Task, 0, len(problems))
	for _, r := range lines(t, shared(t, "gsm8k/model-solutions-0000-0999.jsonl")) {
		answers = append(answers, dataset.Task{Input: r["question"].(string), Row: r})
	}
	for _, name := range []string{"6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"} {
		m := replayOf(t, name+".solution", answers...)
		for i, p := range problems {
			got := play(t, m, ask(dataset.Episode{Task: dataset.Task{Input: p["question"].(string)}}), 2)
			want := answers[i].Row[name].(map[string]any)["solution"]
			if len(got) != 1 || got[0].Content != want {
				t.Fatalf("%s, problem %d: %+v, want %q", name, i, got, want)
			}
		}
	}
}

// TestReplayTauBench replays 100 real conversations with tool calls.
func TestReplayTauBench(t *testing.T) {
	text, err := os.ReadFile(shared(t, "tau-bench/gpt-4o-airline-tasks-00-24.json"))
	if err != nil {
		t.Fatal(err)
	}
	var trials []map[string]any
	if err := json.Unmarshal(text, &trials); err != nil {
		t.Fatal(err)
	}
	records := make([]dataset.Task, 0, len(trials))
	for _, trial := range trials {
		records = append(records, dataset.Task{ID: strconv.Itoa(int(trial["task_id"].(float64))), Hash: "h", Row: trial})
	}
	m := replayOf(t, "traj", records...)
	samples, calls := map[string]int{}, 0
	for _, rec := range records {
		ep := dataset.Episode{Task: rec, Sample: samples[rec.ID]}
		samples[rec.ID]++
		req := model.Request{Episode: &ep}
		for _, raw := range rec.Row["traj"].([]any) {
			recorded := raw.(map[string]any)
			if recorded["role"] != "assistant" {
				continue
			}
			resp, err := m.Generate(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := recorded["content"].(string); resp.Message.Content != want {
				t.Errorf("content %q, want %q", resp.Message.Content, want)
			}
			calls += len(resp.Message.ToolCalls)
			resp.Message.Policy = true
			req.Messages = append(req.Messages, resp.Message)
		}
	}
	if len(samples) != 25 || calls == 0 {
		t.Errorf("%d tasks, %d tool calls", len(samples), calls)
	}
}
