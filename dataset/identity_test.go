package dataset_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// TestGoldenIdentities fixes every derivation. Rows of older releases are
// joined by these ids: a change here breaks every run that was recorded.
func TestGoldenIdentities(t *testing.T) {
	task := dataset.Task{ID: "task-1", Occurrence: 2}
	group := dataset.GroupID(7, task, "variant-hash", 3)
	got := map[string]any{
		"id":              dataset.ID("kind", "a", "b"),
		"id of no fields": dataset.ID("kind"),
		"task hash":       dataset.TaskHash(map[string]any{"input": "What is 1+1?", "target": json.Number("2")}),
		"group":           group,
		"episode":         dataset.EpisodeID(group, 1),
		"child":           dataset.ChildID(dataset.EpisodeID(group, 1), 0),
		"seed":            dataset.EpisodeSeed(7, task, 1),
		"seed, other run": dataset.EpisodeSeed(-7, task, 1),
		"shard of 97":     dataset.Shard(task, 97),
	}
	want := map[string]any{
		"id":              "bb3adb9aac39234d4c51d219b703a93b",
		"id of no fields": "57546a4cc31ce9718404519dcb48a486",
		"task hash":       "bf042cd2faebad292dd0191ea0621890",
		"group":           "0c00faa20b073caec49769fbdf8b4f6e",
		"episode":         "3b7cf8325db07e3005cde803d42b13b4",
		"child":           "f7c4ac4fa6c3989209d6a7e1ec4ee7a8",
		"seed":            int64(7932114004267108945),
		"seed, other run": int64(5272742426524798121),
		"shard of 97":     58,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}
}

// TestIdentitiesDiffer: fields are length-prefixed, so that no two lists of
// fields run into each other.
func TestIdentitiesDiffer(t *testing.T) {
	task := dataset.Task{ID: "t", Occurrence: 1}
	ids := []string{
		dataset.ID("k", "ab", "c"), dataset.ID("k", "a", "bc"), dataset.ID("k", "abc"), dataset.ID("k", "abc", ""),
		dataset.ID("ka", "b", "c"),
		dataset.GroupID(1, task, "v", 0), dataset.GroupID(2, task, "v", 0), dataset.GroupID(1, task, "w", 0),
		dataset.GroupID(1, task, "v", 1), dataset.GroupID(1, dataset.Task{ID: "t", Occurrence: 0}, "v", 0),
		dataset.GroupID(1, dataset.Task{ID: "t1"}, "v", 0),
		dataset.EpisodeID("g", 0), dataset.EpisodeID("g", 1), dataset.ChildID("g", 0), dataset.ChildID("g", 1),
	}
	seen := map[string]int{}
	for i, id := range ids {
		if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
			t.Errorf("id %q is not 32 hex digits", id)
		}
		if j, ok := seen[id]; ok {
			t.Errorf("ids %d and %d are equal", i, j)
		}
		seen[id] = i
	}
}

// TestSeedsArePaired: variants and epochs of a task's sample draw alike.
func TestSeedsArePaired(t *testing.T) {
	a, b := dataset.Task{ID: "a"}, dataset.Task{ID: "a", Occurrence: 1}
	seeds := map[int64]bool{}
	for sample := range 100 {
		for _, task := range []dataset.Task{a, b} {
			seed := dataset.EpisodeSeed(1, task, sample)
			if seed < 0 || seeds[seed] {
				t.Fatalf("seed %d of sample %d is negative or comes twice", seed, sample)
			}
			seeds[seed] = true
		}
	}
	withText := dataset.Task{ID: "a", Hash: "h", Input: "text", Dataset: "d"}
	if dataset.EpisodeSeed(1, a, 0) != dataset.EpisodeSeed(1, withText, 0) {
		t.Error("the seed depends on more than run seed, task key and sample")
	}
}

func TestShardsAreEven(t *testing.T) {
	const n, tasks = 4, 4000
	var count [n]int
	for i := range tasks {
		count[dataset.Shard(dataset.Task{ID: "t", Occurrence: i}, n)]++
	}
	for shard, got := range count {
		if got < tasks/n*8/10 || got > tasks/n*12/10 {
			t.Errorf("shard %d of %d has %d of %d tasks", shard, n, got, tasks)
		}
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct {
		name string
		in   any
		want string
	}{
		{"keys are sorted", map[string]any{"b": "2", "a": "1"}, `{"a":"1","b":"2"}`},
		{"scalars are strings", map[string]any{"i": 1, "b": true, "f": 0.5}, `{"b":"true","f":"0.5","i":"1"}`},
		{"null and absent alike", map[string]any{"a": nil, "b": "x"}, `{"b":"x"}`},
		{"lists keep nulls and order", []any{"b", nil, json.Number("1")}, `["b",null,"1"]`},
		{"nested", map[string]any{"m": map[string]any{"z": []any{}, "y": map[string]any{}}}, `{"m":{"y":{},"z":[]}}`},
		{"no HTML escapes", "<a&b>", `"<a&b>"`},
		{"quotes and controls", "a\"\\\n\x01", `"a\"\\\n\u0001"`},
		{"invalid UTF-8", "a\xffb", "\"a\uFFFDb\""},
		{"unicode", "ü→", `"ü→"`},
		{"nothing", nil, "null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := dataset.Canonical(tt.in); got != tt.want {
				t.Errorf("Canonical = %s, want %s", got, tt.want)
			}
		})
	}
}

// TestScalarsHashAlike: the same row has one hash whether it came from CSV,
// where all is text, from JSON, or from Parquet, where it is typed.
func TestScalarsHashAlike(t *testing.T) {
	tests := []struct {
		name string
		text string // as CSV has it
		same []any  // as JSON and Parquet have it
	}{
		{"integer", "5", []any{json.Number("5"), json.Number("5.0"), json.Number("5e0"), json.Number("0.5e1"), 5, int32(5), uint8(5), 5.0, float32(5)}},
		{"negative", "-12", []any{json.Number("-12"), json.Number("-12.000"), int64(-12), -12.0}},
		{"zero", "0", []any{json.Number("0"), json.Number("-0"), json.Number("-0.0"), json.Number("0e9"), 0, 0.0, math.Copysign(0, -1)}},
		{"fraction", "0.1", []any{json.Number("0.1"), json.Number("0.10"), json.Number("1e-1"), 0.1, float32(0.1)}},
		{"beyond float", "9007199254740993", []any{json.Number("9007199254740993"), int64(9007199254740993), uint64(9007199254740993)}},
		{"beyond int64", "18446744073709551616", []any{json.Number("18446744073709551616"), json.Number("18446744073709551616.0")}},
		{"uint64", "18446744073709551615", []any{json.Number("18446744073709551615"), uint64(math.MaxUint64)}},
		{"large float", "10000000000000000000000", []any{json.Number("1e22"), 1e22}},
		{"huge float", "1.5e+300", []any{json.Number("1.5e300"), json.Number("15E+299"), 1.5e300}},
		{"at the edge", "1e+64", []any{json.Number("1e64"), json.Number("10e63"), 1e64}},
		{"small float", "1e-07", []any{json.Number("1e-7"), json.Number("0.0000001"), 1e-7}},
		{"tiny float", "1.5e-300", []any{json.Number("1.5e-300"), 1.5e-300}},
		{"bool", "true", []any{true}},
		{"text", "007", []any{"007"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := dataset.TaskHash(map[string]any{"x": tt.text})
			for _, v := range tt.same {
				if got := dataset.TaskHash(map[string]any{"x": v}); got != want {
					t.Errorf("%T %v is %q in the hash, want %q", v, v, dataset.Text(v), tt.text)
				}
			}
		})
	}
}

func TestText(t *testing.T) {
	tests := []struct {
		in   any
		want string
	}{
		{nil, ""},
		{"as it is \xff", "as it is \xff"},
		{json.Number("1e400"), "1e400"}, // beyond any type: as it was written
		{json.Number("1e-400"), "1e-400"},
		{json.Number("1e999999999"), "1e999999999"},
		{json.Number("1p999999999"), "1p999999999"}, // no number at all
		{json.Number("Infinity"), "Infinity"},
		{[]any{1, "<a>", nil}, `[1,"<a>",null]`},
		{map[string]any{"b": 1, "a": []any{}}, `{"a":[],"b":1}`},
		{struct{ A int }{1}, `{"A":1}`},
		{math.NaN(), "NaN"},
	}
	for _, tt := range tests {
		if got := dataset.Text(tt.in); got != tt.want {
			t.Errorf("Text(%T %v) = %q, want %q", tt.in, tt.in, got, tt.want)
		}
	}
}

func TestTaskKeys(t *testing.T) {
	if a, b := (dataset.Task{ID: "a1"}).Key(), (dataset.Task{ID: "a", Occurrence: 10}).Key(); a == b {
		t.Errorf("two tasks have key %q", a)
	}
}

// FuzzText makes sure that no number, however written, takes long or panics,
// and that text as a number names the same value.
func FuzzText(f *testing.F) {
	for _, s := range []string{"1", "-0.0", "1e64", "0x1p99", "1_000", "9e-64", ".5", "1e+", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := dataset.Text(json.Number(s))
		if twice := dataset.Text(json.Number(once)); twice != once {
			t.Errorf("%q becomes %q, and that %q", s, once, twice)
		}
	})
}
