package configs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder puts values into Go values, strictly, and collects what does not fit.
// A key that is null or absent leaves what is there already: the default.
type decoder struct {
	problems
	// unknown completes the report of an unknown key. The siblings are the
	// keys that are known in its place.
	unknown func(key, name string, siblings []string) string
}

// treeDecoder is a type with a form of its own in a config.
type treeDecoder interface {
	decodeTree(d *decoder, v *value, key string)
}

// restType takes the keys of a struct that have no field.
var restType = reflect.TypeFor[Params]() //nolint:gochecknoglobals // constant: reflect has no constant types

func (d *decoder) decode(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	if v == nil || v.kind == null {
		return
	}
	if dst.Kind() == reflect.Pointer {
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		d.decode(dst.Elem(), v, key, tag)
		return
	}
	if d.decodeCustom(dst, v, key) {
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		d.structure(dst, v, key, tag)
	case reflect.Map:
		d.mapping(dst, v, key, tag)
	case reflect.Slice:
		d.slice(dst, v, key, tag)
	case reflect.Interface:
		dst.Set(reflect.ValueOf(v.plain()))
	default:
		d.scalar(dst, v, key, tag)
	}
}

// decodeCustom serves types that decode themselves.
func (d *decoder) decodeCustom(dst reflect.Value, v *value, key string) bool {
	if !dst.CanAddr() {
		return false
	}
	var err error
	switch t := dst.Addr().Interface().(type) {
	case treeDecoder:
		t.decodeTree(d, v, key)
	case *time.Duration:
		*t, err = duration(v)
	case json.Unmarshaler:
		err = t.UnmarshalJSON(v.appendJSON(nil, ""))
	case encoding.TextUnmarshaler:
		if !v.scalar() {
			d.add(v.at, key, "want text, got %s", v.describe())
			return true
		}
		err = t.UnmarshalText([]byte(v.raw))
	default:
		return false
	}
	if err != nil {
		d.add(v.at, key, "%v", err)
	}
	return true
}

func (v *value) scalar() bool { return v.kind != list && v.kind != object && v.kind != null }

func duration(v *value) (time.Duration, error) {
	if v.kind == integer && v.int == 0 {
		return 0, nil
	}
	t, err := time.ParseDuration(v.raw)
	switch {
	case v.kind != text && v.scalar(), v.kind == text && err != nil:
		return 0, fmt.Errorf("want a duration with its unit, such as 500ms, 30s, 5m or 24h, got %s", v.describe())
	case err != nil:
		return 0, fmt.Errorf("want a duration such as 30s, got %s", v.describe())
	case t < 0:
		return 0, fmt.Errorf("want a duration of 0 or more, got %s", v.describe())
	}
	return t, nil
}

func (d *decoder) structure(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	if v.kind != object {
		d.mismatch(v, key, "an object of keys", tag)
		return
	}
	fields := fieldsOf(dst.Type())
	for _, e := range v.entries {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.key })
		if i < 0 {
			d.rest(dst, fields, e, key)
			continue
		}
		d.decode(dst.FieldByIndex(fields[i].index), e.value, join(key, e.key), fields[i].tag)
	}
}

// rest keeps a key that has no field, where the struct has room for it.
func (d *decoder) rest(dst reflect.Value, fields []field, e entry, key string) {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		if f.rest {
			p := dst.FieldByIndex(f.index).Addr().Interface().(*Params) //nolint:forcetypeassert // fieldsOf checked it
			p.add(e, key)
			return
		}
		names = append(names, f.name)
	}
	d.add(e.at, join(key, e.key), "%s", d.unknown(join(key, e.key), e.key, names))
}

func (d *decoder) mapping(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	if v.kind != object || dst.Type().Key().Kind() != reflect.String {
		d.mismatch(v, key, "an object of keys", tag)
		return
	}
	m := reflect.MakeMapWithSize(dst.Type(), len(v.entries))
	for _, e := range v.entries {
		elem := reflect.New(dst.Type().Elem()).Elem()
		d.decode(elem, e.value, join(key, e.key), "")
		m.SetMapIndex(reflect.ValueOf(e.key).Convert(dst.Type().Key()), elem)
	}
	dst.Set(m)
}

func (d *decoder) slice(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	if v.kind != list {
		d.mismatch(v, key, "a list", tag)
		return
	}
	s := reflect.MakeSlice(dst.Type(), len(v.items), len(v.items))
	for i, e := range v.items {
		k := join(key, strconv.Itoa(i))
		if v.single {
			k = key
		}
		if e.kind == null {
			d.add(e.at, k, "an element of the list is empty; remove it")
		}
		d.decode(s.Index(i), e, k, "")
	}
	dst.Set(s)
}

func (d *decoder) scalar(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	switch dst.Kind() {
	case reflect.String:
		if v.kind != text && v.kind != integer && v.kind != float {
			d.mismatch(v, key, "text", tag)
			return
		}
		dst.SetString(v.raw)
	case reflect.Bool:
		if v.kind != boolean {
			d.mismatch(v, key, "true or false", tag)
			return
		}
		dst.SetBool(v.bool)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.integer(dst, v, key, tag)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.unsigned(dst, v, key, tag)
	case reflect.Float32, reflect.Float64:
		d.float(dst, v, key, tag)
	default:
		panic(fmt.Sprintf("configs: %s has a type that no config can hold: %s", key, dst.Type()))
	}
}

func (d *decoder) integer(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	i, ok := v.integral()
	if !ok || dst.OverflowInt(i) {
		d.mismatch(v, key, "a whole number", tag)
		return
	}
	if d.inRange(v, key, float64(i), tag) {
		dst.SetInt(i)
	}
}

func (d *decoder) unsigned(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	i, ok := v.integral()
	if !ok || i < 0 || dst.OverflowUint(uint64(i)) {
		d.mismatch(v, key, "a whole number of 0 or more", tag)
		return
	}
	if d.inRange(v, key, float64(i), tag) {
		dst.SetUint(uint64(i))
	}
}

// integral takes 1e6 and 200.0 for what they are.
func (v *value) integral() (int64, bool) {
	if v.kind == float && v.float == math.Trunc(v.float) && math.Abs(v.float) < 1<<53 {
		return int64(v.float), true
	}
	return v.int, v.kind == integer
}

func (d *decoder) float(dst reflect.Value, v *value, key string, tag reflect.StructTag) {
	f := v.float
	if v.kind == integer {
		f = float64(v.int)
	} else if v.kind != float {
		d.mismatch(v, key, "a number", tag)
		return
	}
	if d.inRange(v, key, f, tag) {
		dst.SetFloat(f)
	}
}

// inRange checks the tags min and max, which are ours and therefore valid.
func (d *decoder) inRange(v *value, key string, f float64, tag reflect.StructTag) bool {
	if s := tag.Get("min"); s != "" {
		if low, _ := strconv.ParseFloat(s, 64); f < low {
			d.add(v.at, key, "%s is too small; it must be at least %s", v.raw, s)
			return false
		}
	}
	if s := tag.Get("max"); s != "" {
		if high, _ := strconv.ParseFloat(s, 64); f > high {
			d.add(v.at, key, "%s is too large; it must be at most %s", v.raw, s)
			return false
		}
	}
	return true
}

func (d *decoder) mismatch(v *value, key, want string, tag reflect.StructTag) {
	if example := tag.Get("example"); example != "" {
		want += ", such as " + example
	}
	hint := ""
	if v.kind == boolean && strings.HasPrefix(want, "text") {
		hint = "; put it in quotes if it is meant as text"
	}
	d.add(v.at, key, "want %s, got %s%s", want, v.describe(), hint)
}
