package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Task is one row of a dataset: what to solve and how it is judged.
//
// The zero Task is not valid: sources fill ID, Hash and Occurrence.
type Task struct {
	ID         string // the mapped id column, else Hash
	Hash       string // [TaskHash] of the mapped columns
	Occurrence int    // how many earlier rows of the run's sources had this ID
	Source     int    // index of the source in the run's list of sources
	Dataset    string // name of the source, as in the config
	Revision   string // of the dataset where it has one
	Split      string // of the dataset where it has one

	Input  string // the mapped input column, as text
	Target string // the mapped target column, as text; JSON text where it is not a scalar
	// Row holds every column of the row under its own name, as decoded from
	// JSON with numbers kept as [json.Number]. It is read-only.
	Row map[string]any
	// Params is JSON text of the columns that are neither mapped nor kept.
	Params string
	// Files is the task's folder where it has one, read-only; else nil.
	Files fs.FS
	// Keep holds the columns named in tasks.keep; they become meta_<name>.
	Keep map[string]any
}

// Key is the identity of a task within a run, (task_id, occurrence), as text.
func (t Task) Key() string { return t.ID + "\x00" + strconv.Itoa(t.Occurrence) }

// TaskHash is the identity of a task by content: [ID] of the canonical JSON of
// its mapped columns, so that the same rows hash alike from CSV, JSON and
// Parquet. See [Canonical].
func TaskHash(mapped map[string]any) string { return ID("task", Canonical(mapped)) }

// Canonical is the canonical JSON of a value: object keys sorted, scalars as
// strings, integral numbers without a decimal point, null and absent alike.
// Values other than nil, bool, string, numbers, []any and map[string]any are
// first passed through encoding/json.
func Canonical(v any) string {
	var b bytes.Buffer
	b.Grow(1 << 10) // most values fit
	canonical(&b, v)
	return b.String()
}

func canonical(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k, e := range v {
			if e != nil {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			quote(b, k)
			b.WriteByte(':')
			canonical(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			canonical(b, e)
		}
		b.WriteByte(']')
	default:
		quote(b, Text(v))
	}
}

// quote writes s as encoding/json does; most text needs no escapes.
func quote(b *bytes.Buffer, s string) {
	if isPlain(s) {
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
		return
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(strings.ToValidUTF8(s, "\uFFFD")) // a string always encodes
	b.Truncate(b.Len() - 1)                          // the newline
}

// isPlain reports whether s stands in JSON as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Text is a column's value as text: strings as they are, numbers in their
// shortest exact form (integral ones without a decimal point), booleans as
// true or false, nil as the empty string, anything else as JSON.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return numberText(v.String())
	case float64:
		return floatText(v, 64)
	case float32:
		return floatText(float64(v), 32)
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v)
	case map[string]any, []any:
		return jsonText(v)
	}
	return jsonText(v)
}

func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxExactExponent bounds what is expanded to digits: a float of 1e64 and more,
// or a number written with such an exponent, keeps its exponent.
const maxExactExponent = 64

func numberText(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return s // not a JSON number
	}
	f, err := strconv.ParseFloat(s, 64)
	if strings.ContainsAny(s, "eE") {
		if err != nil || f == 0 && strings.ContainsAny(mantissa(s), "123456789") {
			return s // beyond a float: as it was written
		}
		if abs := math.Abs(f); abs >= math.Pow10(maxExactExponent) || abs < math.Pow10(-maxExactExponent) {
			return floatText(f, 64)
		}
	}
	if r, ok := new(big.Rat).SetString(s); ok && r.IsInt() {
		return r.Num().String()
	}
	if err != nil {
		return s
	}
	return floatText(f, 64)
}

func mantissa(s string) string { return s[:strings.IndexAny(s, "eE")] }

func floatText(f float64, bits int) string {
	if f == math.Trunc(f) && math.Abs(f) < math.Pow10(maxExactExponent) {
		if f == 0 {
			return "0" // and never -0
		}
		return strconv.FormatFloat(f, 'f', -1, bits)
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// idVersion is hashed into every id; a change of any derivation raises it.
const idVersion = "talaria-id-1"

// ID derives an identity: 32 hex digits, the first 16 bytes of SHA-256 over a
// version tag, the kind and length-prefixed fields.
func ID(kind string, fields ...string) string {
	sum := digest(kind, fields...)
	return hex.EncodeToString(sum[:16])
}

func digest(kind string, fields ...string) [sha256.Size]byte {
	size := 8 + len(idVersion) + 8 + len(kind)
	for _, f := range fields {
		size += 8 + len(f)
	}
	buf := make([]byte, 0, size)
	buf = appendField(buf, idVersion)
	buf = appendField(buf, kind)
	for _, f := range fields {
		buf = appendField(buf, f)
	}
	return sha256.Sum256(buf)
}

func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
