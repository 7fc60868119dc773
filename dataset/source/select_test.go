package source

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

const nestedRows = `{"q":{"text":"one","lang":"en"},"a":["x","y"],"meta":{"level":1,"tags":["t"]},"split":"train"}
{"q":{"text":"two","lang":"de"},"a":["z"],"meta":{"level":2.5,"tags":[]},"split":"test"}
{"q":{"text":"three","lang":"en"},"a":["w","x"],"meta":{"level":null},"split":"test"}
{"q":{"text":"two","lang":"de"},"a":["z"],"meta":{"level":4,"tags":["t","u"]},"split":"test"}
`

func nestedOptions(t *testing.T) Options {
	t.Helper()
	return Options{
		Path:    write(t, "t.jsonl", []byte(nestedRows)),
		Columns: map[string]string{Input: "q.text", Target: "a.0", "language": "q.lang"},
		Keep:    []string{"meta.level", "split"},
		Require: []string{"meta.level", "split"},
	}
}

func TestNestedColumns(t *testing.T) {
	got := readAll(t, nestedOptions(t))
	want := []string{
		`one x en map[meta.level:1 split:train]`, `two z de map[meta.level:2.5 split:test]`,
		`three w en map[meta.level:<nil> split:test]`, `two z de map[meta.level:4 split:test]`,
	}
	lines := make([]string, len(got))
	for i, task := range got {
		lines[i] = fmt.Sprint(task.Input, " ", task.Target, " ", task.Row["language"], " ", task.Keep)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("tasks differ (-want +got):\n%s", diff)
	}
	if got[1].Occurrence != 0 || got[3].Occurrence != 1 || got[1].ID != got[3].ID {
		t.Error("the same mapped columns are not one task twice")
	}
	if want := `{"a":["x","y"],"meta":{"level":1,"tags":["t"]},"q":{"lang":"en","text":"one"}}`; got[0].Params != want {
		t.Errorf("params = %s, want %s", got[0].Params, want)
	}
}

func TestWhere(t *testing.T) {
	tests := []struct {
		where string
		want  []string // input and occurrence
		err   string
	}{
		{where: `split == "test"`, want: []string{"two 0", "three 0", "two 1"}},
		{where: `(meta.level ?? 0) > 2`, want: []string{"two 0", "two 1"}},
		{where: `meta.level == 4.0`, want: []string{"two 1"}},
		{where: `language == "en" and len(a) > 1 and input startsWith "t"`, want: []string{"three 0"}},
		{where: `let l = meta.level; l in [1, 4]`, want: []string{"one 0", "two 1"}},
		{where: `any(meta.tags ?? [], # == "u")`, want: []string{"two 1"}},
		{where: `"meta" in $env and $env["split"] != "train" and meta.level == nil`, want: []string{"three 0"}},
		{where: `meta.level > 2`, err: `:3: tasks.where: invalid operation: <nil> > int; ?? gives null a value, int() and float() make text a number`},
		{where: `split > 2`, err: `:1: tasks.where: invalid operation: string > int; ?? gives null a value, int() and float() make text a number`},
		{where: `a`, err: `:1: tasks.where: `},
		{where: `meta.level ?? true`, err: `:1: tasks.where: the condition is neither true nor false, but 1`},
		{where: `lvl == 1`, err: `: no row has the column "lvl" that where asks for: lvl == 1`},
		{where: `split == "none"`, err: `: not one of 4 rows is what where asks for: split == "none"`},
	}
	for _, test := range tests {
		t.Run(test.where, func(t *testing.T) {
			opts := nestedOptions(t)
			opts.Where = parsed(t, test.where)
			s, err := Open(opts)
			if err != nil {
				t.Fatal(err)
			}
			tasks, err := collect(s.Tasks())
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), opts.Path+test.err) {
					t.Errorf("error = %v, want ...%s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, inputs(tasks)); diff != "" {
				t.Errorf("tasks differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A row that the condition cannot judge is a bad row, and is numbered still.
func TestWhereAndBadRows(t *testing.T) {
	opts := nestedOptions(t)
	opts.SkipBadRows, opts.Where = true, parsed(t, `language == "de" ? meta.level > 3 : meta.level > 0`)
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := collect(s.Tasks())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one 0", "two 1"}, inputs(tasks)); diff != "" || s.Bad().Count != 1 {
		t.Errorf("%d bad rows, want 1; tasks differ (-want +got):\n%s", s.Bad().Count, diff)
	}
}

func TestBrokenConditions(t *testing.T) {
	for where, want := range map[string]string{
		`level >`:           `unexpected token EOF at character 7`,
		`level = 1`:         `unexpected token Operator("=") at character 7`,
		`len(level)`:        `the condition is neither true nor false, but int`,
		`"a" + 1`:           `invalid operation: + (mismatched types string and int) at character 5`,
		`now() > date("x")`: `there is no function now`,
		``:                  `unexpected token EOF at character 1`,
	} {
		_, err := ParseWhere(where)
		if err == nil || err.Error() != want {
			t.Errorf("%s: error = %v, want %s", where, err, want)
		}
	}
}

func parsed(t *testing.T, where string) *Where {
	t.Helper()
	w, err := ParseWhere(where)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func inputs(tasks []dataset.Task) []string {
	all := make([]string, 0, len(tasks))
	for _, task := range tasks {
		all = append(all, fmt.Sprintf("%s %d", task.Input, task.Occurrence))
	}
	return all
}

// Shuffled tasks are the same tasks, in an order that depends on the seed alone
// and that a limit cuts off.
func TestShuffle(t *testing.T) {
	rows := make([]string, 0, 100)
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"input":"%d","target":%d.50,"x":{"y":[%d,null]}}`, i%60, i%60, i%60))
	}
	shuffled := func(lines []string, seed int64, limit int, where string) []dataset.Task {
		opts := Options{
			Path: write(t, "t.jsonl", []byte(strings.Join(lines, "\n"))), Name: "n",
			Shuffle: &seed, Limit: limit, Keep: []string{"x.y"},
		}
		if where != "" {
			opts.Where = parsed(t, where)
		}
		return readAll(t, opts)
	}
	all := shuffled(rows, 7, 0, "")
	reversed := slices.Clone(rows)
	slices.Reverse(reversed)
	if diff := cmp.Diff(all, shuffled(reversed, 7, 0, "")); diff != "" {
		t.Errorf("the order of the rows makes a difference:\n%s", diff)
	}
	if diff := cmp.Diff(all[:10], shuffled(rows, 7, 10, "")); diff != "" {
		t.Errorf("a limit takes others than the first:\n%s", diff)
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(t dataset.Task) bool { return len(t.Input) < 2 })
	if diff := cmp.Diff(chosen[:5], shuffled(rows, 7, 5, "len(input) == 2")); diff != "" {
		t.Errorf("a condition changes the order:\n%s", diff)
	}
	if cmp.Equal(inputs(all), inputs(shuffled(rows, 8, 0, ""))) {
		t.Error("another seed gives the same order")
	}
	plain := readAll(t, Options{Path: write(t, "t.jsonl", []byte(strings.Join(rows, "\n"))), Name: "n", Keep: []string{"x.y"}})
	if cmp.Equal(inputs(plain), inputs(all)) {
		t.Error("the tasks are not shuffled")
	}
	byKey := func(a, b dataset.Task) int { return strings.Compare(a.Key(), b.Key()) }
	slices.SortFunc(plain, byKey)
	slices.SortFunc(all, byKey)
	if diff := cmp.Diff(plain, all); diff != "" {
		t.Errorf("shuffled tasks are others (-plain +shuffled):\n%s", diff)
	}
}

// The order is a promise: the first tasks of a shuffled dataset stay the first.
func TestShuffledOrder(t *testing.T) {
	seed := int64(1)
	text := `{"id":"a","input":"1","target":""}` + "\n" + `{"id":"b","input":"2","target":""}` + "\n" +
		`{"id":"c","input":"3","target":""}` + "\n" + `{"id":"a","input":"4","target":""}`
	got := readAll(t, Options{
		Path: write(t, "t.jsonl", []byte(text)), Columns: map[string]string{ID: "id"}, Shuffle: &seed,
	})
	if diff := cmp.Diff([]string{"4 1", "1 0", "3 0", "2 0"}, inputs(got)); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
}

// Tasks with files keep them.
func TestShuffledFolders(t *testing.T) {
	seed := int64(3)
	tasks := readAll(t, Options{Path: "bundled:terminal", Shuffle: &seed, Limit: 5})
	if len(tasks) != 5 {
		t.Fatalf("%d tasks, want 5", len(tasks))
	}
	for _, task := range tasks {
		f, err := task.Files.Open("task.toml")
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
}

// Nothing is left behind.
func TestShuffleLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	seed := int64(3)
	columns := map[string]string{Input: "question", Target: "answer"}
	s, err := Open(Options{Path: "bundled:quickstart", Columns: columns, Shuffle: &seed})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Tasks() {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func FuzzWhere(f *testing.F) {
	for _, seed := range []string{`a > 1`, `a.b[0] == "x" ?? true`, `let x = a; x in [1]`, `$env["a"] matches "^x"`, `all(a, # > 1)`, `1..3 == a`, `a?.b`, `"\xff"`} {
		f.Add(seed, `{"a":[1,"x",null],"b":{"c":2.5}}`)
	}
	f.Fuzz(func(t *testing.T, where, row string) {
		values, err := decodeRow([]byte(row))
		if err != nil {
			return
		}
		w, err := ParseWhere(where)
		if err == nil {
			_, err = w.holds(values, nil, map[string]bool{})
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("an error of several lines: %q", err)
		}
		if again, _ := json.Marshal(values); !json.Valid(again) {
			t.Fatalf("the row was changed: %s", again)
		}
	})
}
