package dataset

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The values of a row are those that JSON has: nil, bool, string,
// [json.Number], []any and map[string]any. What typed formats have besides is
// turned into them here, so that a row is the same from every format.

// Lookup finds a value of a row by its column: a name, or a dotted path that
// goes into objects by key and into lists by index from 0. A key may have dots
// in it: of the keys that fit, the longest whose rest is found wins, so that a
// column of exactly that name goes first.
func Lookup(row map[string]any, column string) (value any, ok bool) {
	if v, ok := row[column]; ok {
		return v, true
	}
	if !strings.Contains(column, ".") {
		return nil, false
	}
	return lookup(row, strings.Split(column, "."))
}

func lookup(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		for n := len(path); n > 0; n-- {
			if next, ok := v[strings.Join(path[:n], ".")]; ok {
				if found, ok := lookup(next, path[n:]); ok {
					return found, true
				}
			}
		}
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(v) {
			return lookup(v[i], path[1:])
		}
	}
	return nil, false
}

// Integer is a signed integer as a value of a row.
func Integer(i int64) any { return json.Number(strconv.FormatInt(i, 10)) }

// Unsigned is an unsigned integer as a value of a row.
func Unsigned(i uint64) any { return json.Number(strconv.FormatUint(i, 10)) }

// Float is a number of 32 or 64 bits as a value of a row: in its shortest exact
// form, and nil where it is not finite, which JSON cannot say.
func Float(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return json.Number(floatText(f, bits))
}

// Decimal is unscaled / 10^scale as a value of a row, exactly.
func Decimal(unscaled *big.Int, scale int) any {
	digits := new(big.Int).Abs(unscaled).String()
	if scale <= 0 {
		digits += strings.Repeat("0", -scale)
	} else {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		digits = strings.TrimRight(digits[:len(digits)-scale]+"."+digits[len(digits)-scale:], "0")
		digits = strings.TrimSuffix(digits, ".")
	}
	if unscaled.Sign() < 0 && digits != "0" {
		digits = "-" + digits
	}
	return json.Number(digits)
}

// Binary is bytes as a value of a row: as text where they are UTF-8, else in
// base64.
func Binary(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// Timestamp is a point in time as a value of a row, in RFC 3339: in UTC if the
// column has a time zone, else as the clock on the wall showed it.
func Timestamp(t time.Time, zoned bool) any {
	if zoned {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999999")
}

// Date is so many days after 1970-01-01 as a value of a row.
func Date(days int64) any {
	return time.Unix(days*24*60*60, 0).UTC().Format(time.DateOnly)
}

// TimeOfDay is a time of the day as a value of a row.
func TimeOfDay(d time.Duration) any {
	return time.Unix(0, int64(d)).UTC().Format("15:04:05.999999999")
}
