package store

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docColumn is a row of the tables of columns in docs/recording.md.
type docColumn struct{ Name, Type string }

// TestRecordingPage wants docs/recording.md to list the columns of every table
// in their order, with their types.
func TestRecordingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/recording.md")
	if err != nil {
		t.Fatal(err)
	}
	for f := range reflect.TypeFor[Rows]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want := docColumns(f.Type.Elem())
		if diff := cmp.Diff(want, pageColumns(string(page), name)); diff != "" {
			t.Errorf("docs/recording.md: columns of %s (-code +page):\n%s", name, diff)
		}
	}
}

// pageColumns reads the section of a table. JSON is text to the code.
func pageColumns(page, table string) []docColumn {
	_, section, _ := strings.Cut(page, "\n### "+table+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	row := regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| ((?:list of )?(?:text|JSON|bool|int32|int64|float|double|time|bytes|struct)\\??) \\| .*\\|$")
	matches := row.FindAllStringSubmatch(section, -1)
	columns := make([]docColumn, len(matches))
	for i, m := range matches {
		columns[i] = docColumn{m[1], strings.Replace(m[2], "JSON", "text", 1)}
	}
	return columns
}

func docColumns(row reflect.Type) []docColumn {
	var columns []docColumn
	for f := range row.Fields() {
		tag := f.Tag.Get("parquet")
		name, _, _ := strings.Cut(tag, ",")
		if name == "-" {
			continue
		}
		typ := docType(f.Type)
		if strings.Contains(tag, "timestamp(") {
			typ = "time"
		}
		if strings.Contains(tag, ",optional") {
			typ += "?"
		}
		columns = append(columns, docColumn{name, typ})
	}
	return columns
}

func docType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return docType(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "list of " + docType(t.Elem())
	default:
		names := map[reflect.Kind]string{reflect.String: "text", reflect.Float32: "float", reflect.Float64: "double"}
		if name, ok := names[t.Kind()]; ok {
			return name
		}
		return t.Kind().String()
	}
}
