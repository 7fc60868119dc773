package store

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"github.com/talaria-run/talaria/dataset"
)

// throughJournal takes rows through a journal record, as recovery reads it.
func throughJournal(tb testing.TB, rows *Rows) *Rows {
	tb.Helper()
	enc, err := newEncoder()
	if err != nil {
		tb.Fatal(err)
	}
	r, err := enc.rows(kindAttempt, lineAttempt, rows)
	if err != nil {
		tb.Fatal(err)
	}
	f, _, ok := frameAt(appendFrame(nil, r.kind, 1, r.body, r.sum))
	if !ok {
		tb.Fatal("a frame of ours is not read")
	}
	dec, err := newDecoder()
	if err != nil {
		tb.Fatal(err)
	}
	defer dec.close()
	var l line
	if err := dec.decode(f, &l); err != nil {
		tb.Fatal(err)
	}
	normalise(&l.Rows)
	return &l.Rows
}

// throughParquet takes rows through a part. Kept columns of tasks are columns
// there and are compared elsewhere.
func throughParquet(tb testing.TB, rows *Rows) *Rows {
	tb.Helper()
	fsys := newMemFS()
	got := partRows(tb, fsys, "/", writePartTo(tb, fsys, "/", rows))
	for i := range got.Tasks {
		got.Tasks[i].Meta = rows.Tasks[i].Meta
	}
	return got
}

// FuzzRoundTrip takes a trajectory made of anything through rows, the journal
// and Parquet, and compares the rows.
func FuzzRoundTrip(f *testing.F) {
	f.Add("text", `{"a":1}`, []byte{1, 2, 3}, int64(5), 0.5, true)
	f.Add("a\xffb\x00\u2028<&>", "not json", []byte{}, int64(-1), math.NaN(), false)
	f.Add("", "[]", []byte{255, 255, 255, 255, 0, 0, 128, 127}, int64(math.MaxInt64), math.Inf(1), true)
	f.Fuzz(func(t *testing.T, text, jsonText string, raw []byte, n int64, x float64, flag bool) {
		tr := fuzzTrajectory(text, jsonText, raw, n, x, flag)
		fl := newFlattener(sampleRun(), Options{})
		rows := &Rows{}
		fl.trajectory(rows, tr)
		rows.Tasks = append(rows.Tasks, fl.task(tr.Episode.Task))
		for name, got := range map[string]*Rows{
			"journal": throughJournal(t, rows), "Parquet": throughParquet(t, rows),
		} {
			if diff := cmp.Diff(rows, got); diff != "" {
				t.Errorf("through %s (-want +got):\n%s", name, diff)
			}
		}
		again := *rows.Attempts[0].trajectory()
		if again.Episode.ID != tr.Episode.ID || again.Books.Usage.Output != tr.Books.Usage.Output {
			t.Errorf("the trajectory is another one: %+v", again)
		}
	})
}

func fuzzTrajectory(text, jsonText string, raw []byte, n int64, x float64, flag bool) *dataset.Trajectory {
	tr := sampleTrajectory(int(uint64(n)%1000), true)
	tr.Episode.Task.Input, tr.Episode.Task.Params = text, jsonText
	tr.Episode.Task.Keep = map[string]any{
		"s" + text: text, "n": n, "x": x, "b": flag, "j": json.Number(jsonText), "l": []any{text, x}, "nil": nil,
	}
	tr.Error, tr.Flags, tr.Reward, tr.Passed = text, []string{text, jsonText}, &x, &flag
	tr.Extra = map[string]any{text: text, jsonText: x}
	tr.DiscardedGenerations, tr.Queued = int(n), time.Duration(n)
	tr.Books.Add(dataset.Call{Agent: dataset.AgentJudge, Usage: &dataset.Usage{Output: n}, CostNanoUSD: &n})
	m := &tr.Messages[2]
	m.Content, m.Parts, m.Reasoning = text, []byte(jsonText), jsonText
	m.ToolCalls[0].Arguments, m.ToolCalls[0].Coerced, m.ToolCalls[0].ExitCode = jsonText, text, new(int(n))
	tr.Spans[1].Attrs = map[string]any{text: []any{x, text, n}}
	tr.Rewards[0].Value, tr.Rewards[0].Explanation, tr.Rewards[0].Weight = &x, text, &x
	s := &tr.Sequences[0]
	for i, b := range raw {
		if i%3 == 0 && len(s.Logprobs) > 0 {
			s.Logprobs[i%len(s.Logprobs)] = math.Float32frombits(uint32(b) << 23 * uint32(i+1))
		}
		s.TokenIDs = append(s.TokenIDs, int32(b))
	}
	s.RoutedExperts, s.TeacherIDs = raw, []int32{}
	if flag {
		s.TeacherLogprobs, s.VerdictDetail, s.Turns = []float32{float32(x)}, text, nil
	}
	return tr
}

// TestMetaTypes gives each kept column the least type that holds its values.
func TestMetaTypes(t *testing.T) {
	const big = 1<<53 + 1
	tests := []struct {
		name   string
		values []any
		want   string
		cells  []any
	}{
		{"bools", []any{true, nil, false}, "BOOLEAN", []any{true, nil, false}},
		{"integers", []any{json.Number("1"), 2, int64(big)}, "INT64", []any{int64(1), int64(2), int64(big)}},
		{"integral floats", []any{1.0, json.Number("2.0")}, "INT64", []any{int64(1), int64(2)}},
		{"numbers", []any{json.Number("1"), 2.5}, "DOUBLE", []any{1.0, 2.5}},
		{"integers that no double holds", []any{int64(big), 2.5}, "BYTE_ARRAY", []any{"9007199254740993", "2.5"}},
		{"beyond int64", []any{json.Number("12345678901234567890"), 1}, "BYTE_ARRAY", []any{"12345678901234567890", "1"}},
		{"mixed", []any{true, 1, "x"}, "BYTE_ARRAY", []any{"true", "1", "x"}},
		{"lists", []any{[]any{"a", json.Number("1")}, nil}, "BYTE_ARRAY", []any{`["a",1]`, nil}},
		{"strings", []any{"a", ""}, "BYTE_ARRAY", []any{"a", ""}},
		{"nothing", []any{nil, math.NaN()}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := &Rows{}
			for _, v := range tt.values {
				task := sampleTask(1)
				task.Keep = map[string]any{"a.b, c": v}
				rows.Tasks = append(rows.Tasks, newFlattener(sampleRun(), Options{}).task(task))
			}
			for _, from := range []*Rows{rows, throughJournal(t, rows)} {
				kind, cells := metaColumn(t, from, "meta_a.b, c")
				if kind != tt.want {
					t.Errorf("type %q, want %q", kind, tt.want)
				}
				if diff := cmp.Diff(tt.cells, cells); diff != "" {
					t.Errorf("cells (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// metaColumn writes tasks and reads one column back.
func metaColumn(t *testing.T, rows *Rows, name string) (kind string, cells []any) {
	t.Helper()
	dir, p := writePart(t, rows)
	file := openPart(t, dir, p, tTasks)
	leaf, ok := file.Schema().Lookup(name)
	if !ok {
		return "", nil
	}
	kind = leaf.Node.Type().Kind().String()
	reader := file.RowGroups()[0].Rows()
	defer closeRead(reader)
	read := make([]parquet.Row, len(rows.Tasks)+1)
	n, err := reader.ReadRows(read)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for _, row := range read[:n] {
		cells = append(cells, cell(row[leaf.ColumnIndex]))
	}
	return kind, cells
}

func cell(v parquet.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Boolean:
		return v.Boolean()
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case v.Kind() == parquet.Double:
		return v.Double()
	}
	return string(v.ByteArray())
}

// TestTrajectoryRoundTrip compares a trajectory with what a view makes of its
// rows, in a part and in the journal.
func TestTrajectoryRoundTrip(t *testing.T) {
	dir := t.TempDir() + "/run"
	s := mustCreate(t, dir, Options{})
	want := []*dataset.Trajectory{sampleTrajectory(0, false), sampleTrajectory(3, false)}
	want[1].Messages[4].Parts = json.RawMessage(`[{"type":"text","text":"<b>"},{"type":"image","data":"` + strings.Repeat("A", maxInlinePart) + `"}]`)
	mustWrite(t, s, want...)
	fromJournal := viewed(t, dir)
	mustClose(t, s)
	fromPart := viewed(t, dir)

	for _, tr := range want { // as a trajectory comes back
		tr.Episode.Task.Row, tr.Episode.Task.Keep = nil, nil
		tr.Spans[1].Usage.Reasoning = nil // spans have no such column
		tr.Rewards[0].ScorerHash = sampleVariant().ScorerHash
	}
	opts := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(dataset.Books{}), rawJSON(), cmpopts.EquateApproxTime(time.Microsecond)}
	for name, got := range map[string][]*dataset.Trajectory{"journal": fromJournal, "part": fromPart} {
		if diff := cmp.Diff(want, got, opts); diff != "" {
			t.Errorf("from the %s (-want +got):\n%s", name, diff)
		}
	}
}

// rawJSON compares raw JSON by what it says.
func rawJSON() cmp.Option {
	some := func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 }
	return cmp.FilterValues(some, cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
	}))
}

func viewed(t *testing.T, dir string) []*dataset.Trajectory {
	t.Helper()
	v, err := OpenView(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var trs []*dataset.Trajectory
	for tr, err := range v.Trajectories(nil) {
		if err != nil {
			t.Fatal(err)
		}
		trs = append(trs, tr)
	}
	return trs
}
