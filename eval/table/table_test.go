package table

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() ([]Column, Rows) {
	columns := []Column{{Name: "name"}, {Name: "n", Number: true}, {Name: "n", Number: true}, {Name: "list"}}
	return columns, All([][]any{
		{"plain", int64(9007199254740993), 0.5, json.RawMessage(`[1,2]`)},
		{"a \"b\",\nc <d>", int32(-7), math.NaN(), nil},
		{"", nil, json.RawMessage("170141183460469231731687303715884105727"), json.RawMessage(`{"k":null}`)},
		{"\x1b[31mred\u202e", true, float32(0.1), "x"},
	})
}

func TestWrite(t *testing.T) {
	tests := []struct {
		format Format
		want   string
	}{
		{Table, `name                              n                                        n  list
──────────────────────────────────────────────────────────────────────────────────────────
plain              9007199254740993                                      0.5  [1,2]
a "b",\nc <d>                    -7                                      NaN  NULL
                               NULL  170141183460469231731687303715884105727  {"k":null}
\x1b[31mred\u202e              true                                      0.1  x
`},
		{JSON, `[
{"name":"plain","n":9007199254740993,"n_2":0.5,"list":[1,2]},
{"name":"a \"b\",\nc <d>","n":-7,"n_2":null,"list":null},
{"name":"","n":null,"n_2":170141183460469231731687303715884105727,"list":{"k":null}},
{"name":"\u001b[31mred` + "\u202e" + `","n":true,"n_2":0.1,"list":"x"}
]
`},
		{JSONL, `{"name":"plain","n":9007199254740993,"n_2":0.5,"list":[1,2]}
{"name":"a \"b\",\nc <d>","n":-7,"n_2":null,"list":null}
{"name":"","n":null,"n_2":170141183460469231731687303715884105727,"list":{"k":null}}
{"name":"\u001b[31mred` + "\u202e" + `","n":true,"n_2":0.1,"list":"x"}
`},
		{CSV, `name,n,n,list
plain,9007199254740993,0.5,"[1,2]"
"a ""b"",
c <d>",-7,NaN,
"",,170141183460469231731687303715884105727,"{""k"":null}"
` + "\x1b[31mred\u202e,true,0.1,x\n"},
	}
	for _, tt := range tests {
		t.Run(string(tt.format), func(t *testing.T) {
			var b strings.Builder
			columns, rows := sample()
			if err := Write(&b, tt.format, columns, rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteOfNoRows(t *testing.T) {
	want := map[Format]string{Table: "a\n───\n", JSON: "[]\n", JSONL: "", CSV: "a\n"}
	for format, want := range want {
		var b strings.Builder
		if err := Write(&b, format, []Column{{Name: "a"}}, All(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

func TestCSVIsReadBack(t *testing.T) {
	values := []string{"", "a,b", "line\r\nend", `"`, " lead", "x"}
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = v
	}
	var b strings.Builder
	if err := Write(&b, CSV, make([]Column, len(values)), All([][]any{row})); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	values[2] = "line\nend" // the reader's rule, not ours
	if diff := cmp.Diff(values, records[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteReportsTheErrorOfItsRows(t *testing.T) {
	want := errors.New("broken")
	failing := func(yield func([]any, error) bool) {
		_ = yield([]any{1}, nil) && yield(nil, want)
	}
	for _, format := range []Format{Table, JSON, JSONL, CSV} {
		if err := Write(&strings.Builder{}, format, []Column{{Name: "a"}}, failing); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", format, err, want)
		}
	}
	if err := Write(&strings.Builder{}, Parquet, nil, All(nil)); err == nil {
		t.Error("parquet: no error")
	}
}

func TestLongCellsAreCut(t *testing.T) {
	var b strings.Builder
	row := []any{strings.Repeat("日", 60)}
	if err := Write(&b, Table, []Column{{Name: "a"}}, All([][]any{row})); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("日", 39) + "…"
	if got := strings.Split(b.String(), "\n")[2]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEscapes(t *testing.T) {
	tests := []struct{ name, in, safe, oneLine string }{
		{"plain text is untouched", "héllo 日本 👩‍🚀 a\u00a0b", "héllo 日本 👩‍🚀 a\u00a0b", "héllo 日本 👩‍🚀 a\u00a0b"},
		{"line ends and tabs", "a\n\tb", "a\n\tb", `a\n\tb`},
		{"carriage return could overwrite", "safe\rrm", `safe\rrm`, `safe\rrm`},
		{"escape sequences", "\x1b]0;t\x07", `\x1b]0;t\x07`, `\x1b]0;t\x07`},
		{"C1 controls", "\u009b2J", `\x9b2J`, `\x9b2J`},
		{"reversed text", "a\u202eb\u2066", `a\u202eb\u2066`, `a\u202eb\u2066`},
		{"line separator", "a\u2028b", `a\u2028b`, `a\u2028b`},
		{"no UTF-8", "a\xffb", `a\xffb`, `a\xffb`},
		{"a real replacement character stays", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, want := []string{Safe(tt.in), OneLine(tt.in)}, []string{tt.safe, tt.oneLine}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseFormat(t *testing.T) {
	if got, err := ParseFormat("csv", Table, CSV); got != CSV || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := ParseFormat("xml", Table, CSV)
	if want := `unknown format "xml": choose one of table, csv`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
