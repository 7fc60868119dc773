package arrowio

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/talaria-run/talaria/dataset"
)

// checkType refuses what has no meaning as a value of a row.
func checkType(t arrow.DataType) error {
	intervals := []arrow.Type{arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO}
	if slices.Contains(intervals, t.ID()) {
		return fmt.Errorf("intervals (%s), which no row can have; write them as text or leave the column out", t)
	}
	switch t := t.(type) {
	case arrow.ExtensionType:
		return checkType(t.StorageType())
	case *arrow.DictionaryType:
		return checkType(t.ValueType)
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if err := checkType(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// value is the i-th value of an array as a value of a row.
func value(a arrow.Array, i int) (any, error) {
	if a.IsNull(i) {
		return nil, nil
	}
	switch a := a.(type) {
	case *array.Null:
		return nil, nil
	case *array.Boolean:
		return a.Value(i), nil
	case array.ExtensionArray:
		return value(a.Storage(), i)
	case *array.Dictionary:
		return value(a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return value(a.Values(), a.GetPhysicalIndex(i))
	case array.Union:
		return value(a.Field(a.ChildID(i)), unionIndex(a, i))
	case *array.Struct:
		return structure(a, i)
	case *array.Map:
		return mapping(a, i)
	case array.ListLike:
		return list(a, i)
	}
	if v, ok := number(a, i); ok {
		return v, nil
	}
	if s, ok := text(a, i); ok {
		if !utf8.ValidString(s) {
			return nil, errors.New("its text is not valid UTF-8; write the column as binary or mend the text")
		}
		return s, nil
	}
	if b, ok := bytesOf(a, i); ok {
		return dataset.Binary(b), nil
	}
	if v, ok := when(a, i); ok {
		return v, nil
	}
	return nil, fmt.Errorf("the type %s is not supported; write the column in another type", a.DataType())
}

func unionIndex(a array.Union, i int) int {
	if dense, ok := a.(*array.DenseUnion); ok {
		return int(dense.ValueOffset(i))
	}
	return i
}

func number(a arrow.Array, i int) (any, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return dataset.Integer(int64(a.Value(i))), true
	case *array.Int16:
		return dataset.Integer(int64(a.Value(i))), true
	case *array.Int32:
		return dataset.Integer(int64(a.Value(i))), true
	case *array.Int64:
		return dataset.Integer(a.Value(i)), true
	case *array.Uint8:
		return dataset.Unsigned(uint64(a.Value(i))), true
	case *array.Uint16:
		return dataset.Unsigned(uint64(a.Value(i))), true
	case *array.Uint32:
		return dataset.Unsigned(uint64(a.Value(i))), true
	case *array.Uint64:
		return dataset.Unsigned(a.Value(i)), true
	case *array.Float16:
		return dataset.Float(float64(a.Value(i).Float32()), 32), true
	case *array.Float32:
		return dataset.Float(float64(a.Value(i)), 32), true
	case *array.Float64:
		return dataset.Float(a.Value(i), 64), true
	case *array.Decimal128:
		return dataset.Decimal(a.Value(i).BigInt(), scale(a)), true
	case *array.Decimal256:
		return dataset.Decimal(a.Value(i).BigInt(), scale(a)), true
	}
	return nil, false
}

func scale(a arrow.Array) int {
	if t, ok := a.DataType().(arrow.DecimalType); ok {
		return int(t.GetScale())
	}
	return 0
}

func text(a arrow.Array, i int) (string, bool) {
	switch a := a.(type) {
	case *array.String:
		return a.Value(i), true
	case *array.LargeString:
		return a.Value(i), true
	case *array.StringView:
		return a.Value(i), true
	}
	return "", false
}

func bytesOf(a arrow.Array, i int) ([]byte, bool) {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value(i), true
	case *array.LargeBinary:
		return a.Value(i), true
	case *array.BinaryView:
		return a.Value(i), true
	case *array.FixedSizeBinary:
		return a.Value(i), true
	}
	return nil, false
}

func when(a arrow.Array, i int) (any, bool) {
	switch a := a.(type) {
	case *array.Date32:
		return dataset.Date(int64(a.Value(i))), true
	case *array.Date64:
		return dataset.Date(int64(a.Value(i)) / (24 * time.Hour).Milliseconds()), true
	case *array.Time32:
		return dataset.TimeOfDay(time.Duration(a.Value(i)) * unit(a)), true
	case *array.Time64:
		return dataset.TimeOfDay(time.Duration(a.Value(i)) * unit(a)), true
	case *array.Timestamp:
		t, ok := a.DataType().(*arrow.TimestampType)
		return dataset.Timestamp(a.Value(i).ToTime(t.Unit), t.TimeZone != ""), ok
	case *array.Duration:
		nanos := new(big.Int).Mul(big.NewInt(int64(a.Value(i))), big.NewInt(int64(unit(a))))
		return dataset.Decimal(nanos, len("000000000")), true // in seconds
	}
	return nil, false
}

// unit of a column of times.
func unit(a arrow.Array) time.Duration {
	if t, ok := a.DataType().(arrow.TemporalWithUnit); ok {
		return t.TimeUnit().Multiplier()
	}
	return time.Nanosecond
}

func structure(a *array.Struct, i int) (any, error) {
	t, _ := a.DataType().(*arrow.StructType)
	object := make(map[string]any, a.NumField())
	for n, f := range t.Fields() {
		v, err := value(a.Field(n), i)
		if err != nil {
			return nil, err
		}
		object[f.Name] = v
	}
	return object, nil
}

func mapping(a *array.Map, i int) (any, error) {
	object := map[string]any{}
	start, end := a.ValueOffsets(i)
	for n := int(start); n < int(end); n++ {
		key, err := value(a.Keys(), n)
		if err != nil {
			return nil, err
		}
		name := dataset.Text(key)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the key %q is there twice in one map", name)
		}
		if object[name], err = value(a.Items(), n); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func list(a array.ListLike, i int) (any, error) {
	start, end := a.ValueOffsets(i)
	values := make([]any, 0, end-start)
	for n := int(start); n < int(end); n++ {
		v, err := value(a.ListValues(), n)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
