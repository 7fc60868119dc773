package source

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	pqformat "github.com/parquet-go/parquet-go/format"

	"github.com/talaria-run/talaria/dataset"
)

// parquetConverter makes values of a row from those of a leaf: what its
// annotation says, else what its physical type is.
func parquetConverter(e *pqformat.SchemaElement) func(parquet.Value) (any, error) {
	switch t := e.LogicalType.Value.(type) {
	case *pqformat.StringType, *pqformat.EnumType:
		return parquetText
	case *pqformat.JsonType:
		return parquetJSON
	case *pqformat.DecimalType:
		return parquetDecimal(int(t.Scale))
	case *pqformat.DateType:
		return parquetDate
	case *pqformat.TimeType:
		return parquetTime(parquetUnit(t.Unit))
	case *pqformat.TimestampType:
		return parquetTimestamp(parquetUnit(t.Unit), t.IsAdjustedToUTC)
	case *pqformat.IntType:
		return parquetInteger(!t.IsSigned)
	case *pqformat.UUIDType:
		return parquetUUID
	case *pqformat.Float16Type:
		return parquetHalf
	}
	if e.ConvertedType.Valid {
		if convert := convertedType(e); convert != nil {
			return convert
		}
	}
	return parquetPlain
}

// convertedType is for files of old writers, which have no logical types.
func convertedType(e *pqformat.SchemaElement) func(parquet.Value) (any, error) {
	switch e.ConvertedType.V {
	case deprecated.UTF8, deprecated.Enum:
		return parquetText
	case deprecated.Json:
		return parquetJSON
	case deprecated.Decimal:
		return parquetDecimal(int(e.Scale.V))
	case deprecated.Date:
		return parquetDate
	case deprecated.TimeMillis:
		return parquetTime(time.Millisecond)
	case deprecated.TimeMicros:
		return parquetTime(time.Microsecond)
	case deprecated.TimestampMillis:
		return parquetTimestamp(time.Millisecond, true)
	case deprecated.TimestampMicros:
		return parquetTimestamp(time.Microsecond, true)
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return parquetInteger(true)
	default:
		return nil
	}
}

func parquetPlain(v parquet.Value) (any, error) {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32, parquet.Int64:
		return dataset.Integer(signed(v)), nil
	case parquet.Int96:
		return dataset.Timestamp(julian(v.Int96()), true), nil
	case parquet.Float:
		return dataset.Float(float64(v.Float()), 32), nil
	case parquet.Double:
		return dataset.Float(v.Double(), 64), nil
	default:
		return dataset.Binary(v.ByteArray()), nil
	}
}

func signed(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// julian is a point in time as Impala and old Spark wrote it: nanoseconds of
// the day, and the day since 4713 BC.
func julian(t deprecated.Int96) time.Time {
	const epoch = 2440588 // 1970-01-01
	days := int64(t[2]) - epoch
	nanos := int64(uint64(t[1])<<32 | uint64(t[0])) //nolint:gosec // less than a day
	return time.Unix(days*24*60*60, nanos)
}

func parquetText(v parquet.Value) (any, error) {
	if !utf8.Valid(v.ByteArray()) {
		return nil, errors.New("its text is not valid UTF-8; write the column as binary or mend the text")
	}
	return string(v.ByteArray()), nil
}

func parquetJSON(v parquet.Value) (any, error) {
	text := v.ByteArray()
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("byte %d of its JSON is not valid UTF-8", invalidUTF8(text))
	}
	if err := checkSyntax(text); err != nil {
		return nil, err
	}
	return (&cursor{text: slices.Concat(text, []byte("\n"))}).value(0)
}

func parquetDecimal(scale int) func(parquet.Value) (any, error) {
	return func(v parquet.Value) (any, error) {
		if k := v.Kind(); k == parquet.Int32 || k == parquet.Int64 {
			return dataset.Decimal(big.NewInt(signed(v)), scale), nil
		}
		return dataset.Decimal(twosComplement(v.ByteArray()), scale), nil
	}
}

// twosComplement reads a signed integer of any size, its highest byte first.
func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}

func parquetDate(v parquet.Value) (any, error) { return dataset.Date(signed(v)), nil }

func parquetTime(unit time.Duration) func(parquet.Value) (any, error) {
	return func(v parquet.Value) (any, error) {
		return dataset.TimeOfDay(time.Duration(signed(v)) * unit), nil
	}
}

func parquetTimestamp(unit time.Duration, zoned bool) func(parquet.Value) (any, error) {
	perSecond := int64(time.Second / unit)
	return func(v parquet.Value) (any, error) {
		n := signed(v)
		return dataset.Timestamp(time.Unix(n/perSecond, n%perSecond*int64(unit)), zoned), nil
	}
}

func parquetUnit(u pqformat.TimeUnit) time.Duration {
	switch u.Value.(type) {
	case *pqformat.MilliSeconds:
		return time.Millisecond
	case *pqformat.MicroSeconds:
		return time.Microsecond
	}
	return time.Nanosecond
}

func parquetInteger(unsigned bool) func(parquet.Value) (any, error) {
	return func(v parquet.Value) (any, error) {
		switch {
		case !unsigned:
			return dataset.Integer(signed(v)), nil
		case v.Kind() == parquet.Int32:
			return dataset.Unsigned(uint64(v.Uint32())), nil
		}
		return dataset.Unsigned(v.Uint64()), nil
	}
}

func parquetUUID(v parquet.Value) (any, error) {
	b := v.ByteArray()
	if len(b) != 16 {
		return nil, fmt.Errorf("a UUID of %d bytes", len(b))
	}
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

func parquetHalf(v parquet.Value) (any, error) {
	b := v.ByteArray()
	if len(b) != 2 {
		return nil, fmt.Errorf("a half float of %d bytes", len(b))
	}
	return dataset.Float(half(binary.LittleEndian.Uint16(b)), 32), nil
}

// half is the value of a float of 16 bits.
func half(bits uint16) float64 {
	sign := 1 - 2*float64(bits>>15)
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)/1024
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -14)
	case 31:
		return math.Inf(int(sign)) // or no number; neither is kept
	}
	return sign * math.Ldexp(1+fraction, exponent-15)
}
