package query

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/talaria-run/talaria/eval/table"
)

// Column is a column of a result, with its DuckDB type.
type Column struct{ Name, Type string }

// kind is how the values of a type come to Go.
type kind int

const (
	asIs     kind = iota // booleans, integers, floats, text
	asNumber             // numbers that Go has no type for: as their digits
	asTime               // instants: RFC 3339 in UTC
	asText               // as DuckDB prints it
	asJSON               // lists, structs, maps, JSON
)

func kindOf(typ string) kind {
	switch name, _, _ := strings.Cut(typ, "("); {
	case strings.HasSuffix(typ, "]"):
		return asJSON
	case name == "STRUCT", name == "MAP", name == "UNION", name == "JSON", name == "VARIANT":
		return asJSON
	case name == "DECIMAL", name == "HUGEINT", name == "UHUGEINT", name == "BIGNUM":
		return asNumber
	case typ == "TIMESTAMP WITH TIME ZONE":
		return asTime
	case typ == "VARCHAR", isMachineNumber(typ), typ == "BOOLEAN":
		return asIs
	default:
		return asText
	}
}

// expression reads the n-th column of a subquery.
func (k kind) expression(n int) string {
	switch k {
	case asNumber, asText:
		return fmt.Sprintf("CAST(#%d AS VARCHAR)", n)
	case asTime:
		return fmt.Sprintf("strftime(#%d, '%%Y-%%m-%%dT%%H:%%M:%%S.%%fZ')", n)
	case asJSON:
		return fmt.Sprintf("CAST(to_json(#%d) AS VARCHAR)", n)
	default:
		return fmt.Sprintf("#%d", n)
	}
}

// value is what the driver gave for a column of this kind.
func (k kind) value(v any) any {
	text, ok := v.(string)
	switch {
	case ok && k == asJSON:
		return json.RawMessage(finite(text))
	case ok && k == asNumber:
		return json.RawMessage(text)
	default:
		return v
	}
}

func isMachineNumber(typ string) bool {
	switch typ {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE":
		return true
	default:
		return false
	}
}

// Header is the columns as a table prints them.
func Header(columns []Column) []table.Column {
	heads := make([]table.Column, len(columns))
	for i, c := range columns {
		heads[i] = table.Column{Name: c.Name, Number: isMachineNumber(c.Type) || kindOf(c.Type) == asNumber}
	}
	return heads
}

// readable is a statement that selects what the given one does, in types that
// Go reads without loss.
func readable(statement string, columns []Column) string {
	plain := true
	fields := make([]string, len(columns))
	for i, c := range columns {
		k := kindOf(c.Type)
		fields[i] = k.expression(i+1) + " AS " + identifier(c.Name)
		plain = plain && k == asIs
	}
	if plain {
		return statement
	}
	return "SELECT " + strings.Join(fields, ", ") + " FROM (\n" + statement + "\n)"
}

// finite replaces the numbers in JSON text that JSON does not have, by null.
func finite(text string) string {
	if !strings.Contains(text, "NaN") && !strings.Contains(text, "Infinity") {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		n := jsonToken(text)
		if t := text[:n]; t == "NaN" || t == "Infinity" || t == "-Infinity" {
			b.WriteString("null")
		} else {
			b.WriteString(t)
		}
		text = text[n:]
	}
	return b.String()
}

// jsonToken is the length of the string, word or mark that s begins with.
func jsonToken(s string) int {
	if s[0] == '"' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(s)
	}
	if i := strings.IndexAny(s, "\",:[]{} \n"); i > 0 {
		return i
	} else if i == 0 {
		return 1
	}
	return len(s)
}
