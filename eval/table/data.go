package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

func writeJSON(w io.Writer, columns []Column, rows Rows) error {
	keys := objectKeys(columns)
	open, between := "[\n", ",\n"
	for row, err := range rows {
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, open+object(keys, row)); err != nil {
			return err
		}
		open = between
	}
	end := "\n]\n"
	if open != between {
		end = "[]\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

func writeJSONL(w io.Writer, columns []Column, rows Rows) error {
	keys := objectKeys(columns)
	for row, err := range rows {
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, object(keys, row)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// objectKeys are the columns' names as JSON strings. A name that comes again
// gets a number, since a reader would keep only one of the two.
func objectKeys(columns []Column) []string {
	seen := map[string]bool{}
	keys := make([]string, len(columns))
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}
		seen[name] = true
		keys[i] = quote(name)
	}
	return keys
}

func object(keys []string, row []any) string {
	var b strings.Builder
	for i, v := range row {
		b.WriteString(separator(i, "{", ","))
		b.WriteString(keys[i])
		b.WriteByte(':')
		b.WriteString(jsonText(v))
	}
	b.WriteByte('}')
	return b.String()
}

func separator(i int, first, other string) string {
	if i == 0 {
		return first
	}
	return other
}

// jsonText is a value as JSON. Numbers that JSON cannot hold are null.
func jsonText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case json.RawMessage:
		return string(v)
	case float32:
		return floatText(float64(v), 32)
	case float64:
		return floatText(v, 64)
	case string:
		return quote(v)
	default:
		return fmt.Sprint(v) // a bool or an integer
	}
}

func floatText(v float64, bits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "null"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("table: a string that is no JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plain is a value as text, JSON where it is a list or a struct.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case json.RawMessage:
		return string(v)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// writeCSV writes RFC 4180 with bare line feeds. A null is nothing between two
// commas and an empty string is "", so that the two can be told apart.
func writeCSV(w io.Writer, columns []Column, rows Rows) error {
	names := make([]any, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	if err := writeRecord(w, names); err != nil {
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		if err := writeRecord(w, row); err != nil {
			return err
		}
	}
	return nil
}

func writeRecord(w io.Writer, row []any) error {
	var b strings.Builder
	for i, v := range row {
		b.WriteString(separator(i, "", ","))
		b.WriteString(field(v))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func field(v any) string {
	s := plain(v)
	if v == nil || s != "" && !strings.ContainsAny(s, "\",\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
