package store

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// cleaner makes values fit for a column: text is valid UTF-8 with every secret
// masked, floats are finite or null, JSON is JSON.
type cleaner struct {
	mask  func(string) string
	texts *texts // where nullable text lies; nil: each by itself
}

func (c cleaner) text(s string) string {
	s = dataset.ValidText(s)
	if c.mask == nil || s == "" {
		return s
	}
	if masked := c.mask(s); masked != s {
		return dataset.ValidText(masked)
	}
	return s
}

// texts holds the nullable texts of one attempt's rows side by side. Rows stay
// in memory until their part is written: dozens of small objects for each
// attempt would keep the garbage collector busy.
type texts struct{ free []string }

func (t *texts) keep(s string) *string {
	if t == nil {
		alone := s // as a variable of its own, or every s would be copied to the heap
		return &alone
	}
	if len(t.free) == 0 {
		t.free = make([]string, 32)
	}
	kept := &t.free[0]
	*kept, t.free = s, t.free[1:]
	return kept
}

// opt is nil for empty text.
func (c cleaner) opt(s string) *string {
	if s == "" {
		return nil
	}
	return c.texts.keep(c.text(s))
}

func (c cleaner) ptr(s *string) *string {
	if s == nil {
		return nil
	}
	return c.texts.keep(c.text(*s))
}

// list is never nil, so that it is read back from JSON and Parquet alike.
func (c cleaner) list(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = c.text(s)
	}
	return out
}

// object is a map as JSON text; "{}" for an empty one.
func (c cleaner) object(m map[string]any) string {
	if len(m) == 0 {
		return "{}"
	}
	b, err := json.Marshal(c.value(m))
	if err != nil {
		b = []byte(`{"unencodable":` + strconv.Quote(err.Error()) + `}`)
	}
	return c.text(string(b))
}

// value is v without what JSON cannot hold.
func (c cleaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.text(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[c.text(k)] = c.value(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = c.value(e)
		}
		return l
	}
	return v
}

// jsonText is text that must be JSON: what is not becomes a JSON string.
func (c cleaner) jsonText(s string) string {
	s = c.text(s)
	if json.Valid([]byte(s)) {
		return s
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("store: encoding a string: " + err.Error())
	}
	return string(b)
}

// logprobs makes each value finite and reports whether it had to. NaN becomes
// 0, an infinity the largest value of its sign.
func logprobs(in []float32) (out []float32, clamped bool) {
	if in == nil {
		return nil, false
	}
	out = make([]float32, len(in))
	for i, v := range in {
		out[i] = clamp(v)
		clamped = clamped || out[i] != v // NaN differs from everything
	}
	return out, clamped
}

func clamp(v float32) float32 {
	switch {
	case v != v:
		return 0
	case v > math.MaxFloat32:
		return math.MaxFloat32
	case v < -math.MaxFloat32:
		return -math.MaxFloat32
	}
	return v
}

// micros is a time as a column holds it, 0 if it is not known.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func millis(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

func fromMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func microsOf(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	us := d.Microseconds()
	return &us
}

func int32Of(v *int) *int32 {
	if v == nil {
		return nil
	}
	n := int32Clamp(*v)
	return &n
}

// int32Clamp keeps counts from wrapping round.
func int32Clamp[T int | int64](v T) int32 {
	return int32(max(min(v, math.MaxInt32), math.MinInt32))
}

func intOf(v *int32) *int {
	if v == nil {
		return nil
	}
	n := int(*v)
	return &n
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// objectOf is the map of a JSON object's text, nil for an empty one.
func objectOf(s string) map[string]any {
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil || len(m) == 0 {
		return nil
	}
	return m
}
