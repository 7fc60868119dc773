package store

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/talaria-run/talaria/dataset"
)

// metaPrefix begins the name of a column that was kept from the dataset.
const metaPrefix = "meta_"

// metaValue is a kept value as bool, int64, float64, string or nil. It is the
// same before and after a way through the journal's JSON.
func (c cleaner) metaValue(v any) any {
	switch v := v.(type) {
	case nil, bool, int64:
		return v
	case string:
		return c.text(v)
	case json.Number:
		return c.metaNumber(v.String())
	case float64:
		return metaFloat(v)
	case float32:
		return c.metaNumber(dataset.Text(v))
	case int, int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return c.metaNumber(dataset.Text(v))
	}
	return c.text(dataset.Text(c.value(v)))
}

func metaFloat(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return f
}

// metaNumber is a number of a JSON text; one that no type holds exactly stays
// text.
func (c cleaner) metaNumber(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return c.text(s)
	}
	if _, isInt := strconv.ParseUint(s, 10, 64); isInt == nil && strconv.FormatFloat(f, 'f', -1, 64) != s {
		return s
	}
	return metaFloat(f)
}

// metaType is the type of a meta column within one part.
type metaType int

const (
	metaNone metaType = iota // only nulls
	metaBool
	metaInt
	metaDouble
	metaString
)

// maxExactInt is the largest integer up to which a double holds every integer.
const maxExactInt = 1 << 53

func metaTypeOf(v any) metaType {
	switch v.(type) {
	case nil:
		return metaNone
	case bool:
		return metaBool
	case int64:
		return metaInt
	case float64:
		return metaDouble
	}
	return metaString
}

// join is the least type that holds the values of both; exact tells that every
// integer so far fits a double.
func (t metaType) join(u metaType, exact bool) metaType {
	switch {
	case t == u || u == metaNone:
		return t
	case t == metaNone:
		return u
	case min(t, u) == metaInt && max(t, u) == metaDouble && exact:
		return metaDouble
	}
	return metaString
}

// metaColumns finds the meta columns of the rows of a part and their types.
type metaColumns struct {
	types map[string]metaType
	big   map[string]bool // has an integer that no double holds
}

func (m *metaColumns) add(meta map[string]any) {
	if m.types == nil {
		m.types = map[string]metaType{}
	}
	if m.big == nil {
		m.big = map[string]bool{}
	}
	for name, v := range meta {
		if n, ok := v.(int64); ok && (n > maxExactInt || n < -maxExactInt) {
			m.big[name] = true
		}
		m.types[name] = m.types[name].join(metaTypeOf(v), !m.big[name])
	}
}

// names of the columns that have a value, sorted.
func (m *metaColumns) names() []string {
	names := slices.Sorted(maps.Keys(m.types))
	return slices.DeleteFunc(names, func(n string) bool { return m.types[n] == metaNone })
}

func (t metaType) node() parquet.Node {
	switch t {
	case metaBool:
		return parquet.Optional(parquet.Leaf(parquet.BooleanType))
	case metaInt:
		return parquet.Optional(parquet.Int(64))
	case metaDouble:
		return parquet.Optional(parquet.Leaf(parquet.DoubleType))
	default:
		return parquet.Optional(parquet.String())
	}
}

// value is v in a column of type t.
func (t metaType) value(v any) parquet.Value {
	if v == nil {
		return parquet.NullValue()
	}
	switch t {
	case metaBool:
		if b, ok := v.(bool); ok {
			return parquet.BooleanValue(b)
		}
	case metaInt:
		if n, ok := v.(int64); ok {
			return parquet.Int64Value(n)
		}
	case metaDouble:
		switch n := v.(type) {
		case int64:
			return parquet.DoubleValue(float64(n))
		case float64:
			return parquet.DoubleValue(n)
		}
	default:
	}
	return parquet.ByteArrayValue([]byte(dataset.Text(v)))
}
