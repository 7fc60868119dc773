package query

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset/store"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		rest     string
	}{
		{"one", "select 1", nil, "select 1"},
		{"one with its end", " select 1 ; ", []string{"select 1"}, ""},
		{"two", "select 1; select 2", []string{"select 1"}, "select 2"},
		{"strings", `select ';', ";"";", 'it''s;'; x`, []string{`select ';', ";"";", 'it''s;'`}, "x"},
		{"escape string", `select e'\';' , E'\\'; x`, []string{`select e'\';' , E'\\'`}, "x"},
		{"a name that ends in e is no escape string", `select type'\'; x`, []string{`select type'\'`}, "x"},
		{"dollar quotes", "select $$;$$, $a$ $$; $a$; $1; x", []string{"select $$;$$, $a$ $$; $a$", "$1"}, "x"},
		{"comments", "-- a;\nselect 1 /* ; */; -- b", []string{"-- a;\nselect 1 /* ; */"}, ""},
		{"blank statements", ";; /* x */ ;\n--\n;", nil, ""},
		{"an open string", "select 'a; b", nil, "select 'a; b"},
		{"an open comment", "select 1 /* ;", nil, "select 1 /* ;"},
		{"nothing", " \n", nil, ""},
		{"not ASCII", "select 'ü;' as é; x", []string{"select 'ü;' as é"}, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, rest := Split(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" || rest != tt.rest {
				t.Errorf("rest %q, want %q (-want +got):\n%s", rest, tt.rest, diff)
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("select 1; select ';' -- ;\n; $a$;$a$")
	f.Add("e'\\")
	f.Fuzz(func(t *testing.T, sql string) {
		statements, rest := Split(sql)
		for _, s := range append(statements, rest) {
			if !strings.Contains(sql, s) {
				t.Errorf("%q is no part of %q", s, sql)
			}
		}
		again, _ := Split(strings.Join(statements, ";\n") + ";")
		for _, s := range statements {
			if strings.Contains(s, "--") || strings.Contains(s, "/*") {
				return // a comment that ends a statement takes the semicolon with it
			}
		}
		if diff := cmp.Diff(statements, again); diff != "" {
			t.Errorf("split again (-first +again):\n%s", diff)
		}
	})
}

func TestReadsOnly(t *testing.T) {
	for _, sql := range []string{
		"select 1", "WITH x AS (SELECT 1) FROM x", "from x", "(select 1)", "values (1)", "/* copy */ select 1", "-- x\nsummarize t",
		"explain select 1", "EXPLAIN ANALYZE select 1", "explain (analyze) select 1", "create table t as select 1",
	} {
		if err := readsOnly(sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{
		"copy t to 'x'", "COPY(select 1) to 'x'", "/* select */ copy t to 'x'", "explain analyze copy t to 'x'",
		"explain /* select */ analyze copy t to 'x'", "explain (analyze) copy t to 'x'", "export database 'x'", "attach 'x'",
		"install x", "load x", "set threads = 1", "pragma x", "prepare p as copy t to 'x'", "execute p", "call x()", "checkpoint", "", "'select'",
	} {
		if err := readsOnly(sql); err == nil {
			t.Errorf("%s: it is allowed", sql)
		}
	}
}

func TestFinite(t *testing.T) {
	tests := map[string]string{
		`{"a":NaN,"b":[-Infinity,Infinity, 1]}`: `{"a":null,"b":[null,null, 1]}`,
		`{"NaN":"Infinity \" NaN"}`:             `{"NaN":"Infinity \" NaN"}`,
		`NaN`:                                   `null`,
		`{"a":1}`:                               `{"a":1}`,
		`["\\",NaN]`:                            `["\\",null]`,
	}
	for in, want := range tests {
		if got := finite(in); got != want {
			t.Errorf("finite(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]kind{
		"INTEGER": asIs, "VARCHAR": asIs, "DOUBLE": asIs, "BOOLEAN": asIs,
		"HUGEINT": asNumber, "DECIMAL(18,3)": asNumber,
		"TIMESTAMP WITH TIME ZONE": asTime, "TIMESTAMP": asText, "UUID": asText, "BLOB": asText, "ENUM('a]', 'b')": asText,
		"INTEGER[]": asJSON, "INTEGER[3]": asJSON, `STRUCT("a" INTEGER)`: asJSON, "MAP(VARCHAR, INTEGER)": asJSON, "JSON": asJSON,
		"TIMESTAMP WITH TIME ZONE[]": asJSON,
	}
	for typ, want := range tests {
		if got := kindOf(typ); got != want {
			t.Errorf("kindOf(%s) = %d, want %d", typ, got, want)
		}
	}
}

// TestEveryRowHasItsColumns holds the schema against the rows: a field without
// a column would be lost in every view.
func TestEveryRowHasItsColumns(t *testing.T) {
	rows := reflect.TypeFor[store.Rows]()
	for i, r := range relations() {
		fields := rows.Field(i).Type.Elem()
		want := fields.NumField()
		if r.name == "tasks" {
			want-- // Meta, whose columns differ from run to run
		}
		if len(r.columns) != want {
			t.Errorf("%s has %d columns, want %d", r.name, len(r.columns), want)
		}
		for j, c := range r.columns {
			if json := firstOf(fields.Field(j).Tag.Get("json")); c.name != json {
				t.Errorf("%s: column %s is %s in the journal", r.name, c.name, json)
			}
		}
	}
}

func TestMetaTypes(t *testing.T) {
	number := func(s string) json.Number { return json.Number(s) }
	tests := []struct {
		name   string
		values []any
		want   metaType
	}{
		{"integers", []any{number("1"), nil, number("-2")}, metaInt},
		{"an integer and a float", []any{number("1"), number("0.5")}, metaFloat},
		{"a float and an integer", []any{number("0.5"), number("1")}, metaFloat},
		{"booleans", []any{true, false}, metaBool},
		{"text", []any{"a"}, metaText},
		{"mixed", []any{true, number("1")}, metaText},
		{"a number and text", []any{number("1.5"), "a"}, metaText},
		{"nothing", []any{nil}, metaUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got metaType
			for _, v := range tt.values {
				got = got.with(v)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFromViewKeepsThePathAsNamed(t *testing.T) {
	v := &store.View{Dir: "/abs/runs/a", Files: map[string][]string{"attempts": {"/abs/runs/a/attempts/part-00000.parquet"}}}
	got := FromView(v, "runs/a")
	want := Input{Dir: "runs/a", Files: map[string][]string{"attempts": {"runs/a/attempts/part-00000.parquet"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunIsNamedOnce(t *testing.T) {
	a, b := Input{Dir: "a", Run: store.Run{RunID: "x"}}, Input{Dir: "b", Run: store.Run{RunID: "x"}}
	err := PrintViews(&strings.Builder{}, []Input{a, b})
	if want := "a and b are the same run (x): name it once"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPathsAreNoPatterns(t *testing.T) {
	if got, want := pathLiteral("it's [a]*?.parquet"), "'it''s [[]a][*][?].parquet'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOneLine(t *testing.T) {
	tests := []struct{ in, want string }{
		{"select 1", "select 1"},
		{"  select\n\t1 -- one\n  ; ", "select 1 ;"},
		{"select '--\n' /* x */ as a", "select '--\n' as a"},
		{"select a--b\nfrom t", "select a from t"},
		{"-- nothing", ""},
	}
	for _, tt := range tests {
		if got := OneLine(tt.in); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestAboutNamesAllViews: a view that nobody is told of is a view that nobody
// finds.
func TestAboutNamesAllViews(t *testing.T) {
	about := About()
	got := make([]string, len(about))
	for i, v := range about {
		got[i] = v.Name
	}
	var want []string
	for _, v := range views(nil, journalSource{}) {
		if !strings.HasPrefix(v.name, "_") {
			want = append(want, v.name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-views +about):\n%s", diff)
	}
}
