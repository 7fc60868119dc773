//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// python is a Python with what scripts/interop/requirements.txt names. The
// environment tells which; without it the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TALARIA_PYTHON")
	if path == "" {
		t.Skip("TALARIA_PYTHON names no Python with the packages of scripts/interop/requirements.txt")
	}
	return path
}

// agree runs scripts/interop/agree.py.
func agree(t *testing.T, args ...string) {
	t.Helper()
	script := filepath.Join("..", "..", "scripts", "interop", "agree.py")
	cmd := exec.CommandContext(t.Context(), python(t), append([]string{script}, args...)...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
}

// TestIntegrationReaders reads every table of runs with other programs, each
// with one call, and compares with talaria query.
func TestIntegrationReaders(t *testing.T) {
	python(t)
	runs := []string{quickstartInParts(t), filledRun(t)}
	for _, reader := range []string{"pyarrow", "polars", "duckdb", "datasets"} {
		t.Run(reader, func(t *testing.T) { agree(t, append([]string{reader}, runs...)...) })
	}
	t.Run("views", func(t *testing.T) { agree(t, append([]string{"views"}, runs...)...) })
}

// TestIntegrationPythonPage runs the Python of docs/python.md, one block after
// the other.
func TestIntegrationPythonPage(t *testing.T) {
	interpreter := python(t)
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	mustExit(t, 0, "run", "bundled:quickstart", "--quiet", "--out", run, "--samples", "1", "--set", "tasks.1.limit=2")
	views, _ := mustExit(t, 0, "query", run, "--print-views")
	writeFile(t, filepath.Join(dir, "views.sql"), views)
	blocks := regexp.MustCompile("(?s)\n```python\n(.+?)\n```\n").FindAllStringSubmatch(docs(t, "python.md"), -1)
	if len(blocks) < 8 {
		t.Fatalf("the page has %d blocks of Python, want at least 8", len(blocks))
	}
	var script strings.Builder
	for _, b := range blocks {
		script.WriteString(strings.ReplaceAll(b[1], "RUN/", "run/") + "\n")
	}
	cmd := exec.CommandContext(t.Context(), interpreter, "-W", "error::SyntaxWarning", "-c", script.String())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HF_HOME="+t.TempDir(), "HF_HUB_OFFLINE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n := bytes.Count(out, []byte("\n")); n < len(blocks)-1 {
		t.Errorf("%d blocks of Python say only\n%s", len(blocks), out)
	}
}

// quickstartInParts is a run of the quickstart in two invocations: the first
// sees only tasks of the first source, whose column is kept.
func quickstartInParts(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "quickstart")
	mustExit(t, 0, "run", "bundled:quickstart", "--quiet", "--out", dir, "--set", "tasks.0.limit=20", "--set", "tasks.1.limit=2")
	mustExit(t, 0, "resume", dir, "--quiet", "--set", "tasks.0.limit=0", "--set", "tasks.1.limit=0")
	return dir
}

// filledRun is a run in which every column of every table has a value in one
// row, and no value in another if it may have none.
func filledRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "filled")
	var variant dataset.Variant
	fill(reflect.ValueOf(&variant).Elem(), new(int))
	full, empty := fullTrajectory(variant), emptyTrajectory()
	var kept store.KeptTypes
	kept.Add(full.Episode.Task.Keep)
	kept.Add(empty.Episode.Task.Keep)
	run := store.Run{
		RunID: dataset.ID("run", "filled"), Name: "filled", Config: json.RawMessage(`{}`), State: store.StateComplete,
		CreatedAt: time.Now().UTC(), Variants: []dataset.Variant{variant},
	}
	st, err := store.Create(dir, run, store.Options{PartRows: 1, Kept: &kept})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	for _, tr := range []*dataset.Trajectory{full, empty} {
		if err := st.Write(ctx, []*dataset.Trajectory{tr}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	checkFilled(t, dir)
	return dir
}

// checkFilled makes sure that the run is what filledRun says.
func checkFilled(t *testing.T, dir string) {
	t.Helper()
	for table := range reflect.TypeFor[store.Rows]().Fields() {
		name := table.Tag.Get("json")
		name, _, _ = strings.Cut(name, ",")
		filled := askOne[map[string]int](t, dir, `SELECT count(COLUMNS(*)) AS "\0" FROM all_`+name)
		rows := askOne[struct{ Rows int }](t, dir, "SELECT count(*) AS rows FROM all_"+name).Rows
		for column := range table.Type.Elem().Fields() {
			key := column.Tag.Get("json")
			if key == "meta,omitempty" {
				key = "meta_level"
			}
			switch n, ok := filled[key]; {
			case !ok || n == 0:
				t.Errorf("%s.%s has no value in any row", name, key)
			case column.Type.Kind() == reflect.Pointer && n == rows:
				t.Errorf("%s.%s has a value in all %d rows", name, key, rows)
			}
		}
	}
}

// fullTrajectory has a value wherever one can be.
func fullTrajectory(v dataset.Variant) *dataset.Trajectory {
	tr, n := new(dataset.Trajectory), new(int)
	fill(reflect.ValueOf(tr).Elem(), n)
	ep := &tr.Episode
	ep.VariantHash, ep.Attempt, ep.Task.Params = v.Hash, 0, `{"hint": "none"}`
	ep.Task.Keep = map[string]any{
		"level": json.Number("3"), "easy": true, "rate": json.Number("0.25"), "kind": "sum", "list": []any{json.Number("1"), "x"},
	}
	tr.ExitReason, tr.Books.Unpriced, tr.Books.Unreported = dataset.ExitSubmitted, 0, 0
	tr.Children, tr.EndedAt = nil, tr.StartedAt.Add(time.Minute)
	m := &tr.Messages[0]
	m.Parts = json.RawMessage(`[{"type":"text","text":"` + strings.Repeat("long ", 20_000) + `"},{"type":"text","text":"short"}]`)
	m.Content = strings.Repeat("a long text \n", 50_000)
	m.ToolCalls[0].ResultPosition = 1
	tr.Rewards[0].Chosen = true
	tr.ChooseReward()
	s := &tr.Sequences[0]
	s.TokenIDs = []int32{0, 1, math.MaxInt32}
	s.LossMask, s.Logprobs = []bool{false, true, true}, []float32{0, -0.1, -math.MaxFloat32}
	s.RoutedExperts = []byte{0, 255, '\\', 'x'}
	return tr
}

// emptyTrajectory has a row in every table and nothing in it that may be left
// out.
func emptyTrajectory() *dataset.Trajectory {
	return &dataset.Trajectory{
		Episode: dataset.Episode{
			ID:   dataset.ID("episode", "empty"),
			Task: dataset.Task{ID: "empty", Keep: map[string]any{"level": json.Number("4"), "late": "only here"}},
		},
		ExitReason: dataset.ExitProviderError,
		Books:      dataset.Books{Unpriced: 1},
		Messages:   []dataset.Message{{Role: dataset.Assistant, ToolCalls: []dataset.ToolCall{{}}}},
		Spans:      []dataset.Span{{}},
		Rewards:    []dataset.Reward{{}},
		Sequences:  []dataset.Sequence{{}},
		StartedAt:  time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC), // before the epoch
	}
}

// fill gives every exported field in v a value; n counts, so that most values
// differ.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 8, 1, 12, 0, 0, *n*1000, time.UTC)))
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, n)
			}
		}
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeFor[dataset.Trajectory]() {
			return // of a child
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, *n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]any{"key": "it's \u2028 ü", "n": *n, "deep": map[string]any{"list": []any{1.5, nil}}}))
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d: \"quoted\" 'single' \\ ü 𝄞 \u2028\r\n\t", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.1 * float64(*n))
	case reflect.Int32:
		v.SetInt(math.MaxInt32 - int64(*n))
	case reflect.Int64:
		v.SetInt(1<<60 + int64(*n)) // beyond what a double holds
	case reflect.Int:
		v.SetInt(int64(*n))
	default: // an interface stays nil
	}
}
