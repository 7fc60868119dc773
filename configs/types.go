package configs

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Params are keys that a plug-in owns: an env, a scorer, a provider's sampling.
// The zero Params is empty.
type Params struct {
	tree *value // an object, nil if empty
	key  string // of the object that the keys stand in
}

func (p *Params) add(e entry, key string) {
	if p.tree == nil {
		p.tree, p.key = newObject(e.at), key
	}
	p.tree.set(e.key, e.value, e.at)
}

func (p Params) empty() bool { return p.tree == nil || len(p.tree.entries) == 0 }

// Map holds the parameters as encoding/json would decode them, with whole
// numbers as int64.
func (p Params) Map() map[string]any {
	if p.empty() {
		return map[string]any{}
	}
	return p.tree.plain().(map[string]any) //nolint:forcetypeassert // tree is an object
}

// Decode decodes the parameters strictly into a pointer to a struct, whose
// fields are named by tag yaml or json, else by their names in snake case.
// Fields keep what they hold where a parameter is absent. Tags min and max
// bound numbers, example:"..." is shown in errors. The error names every problem with file, line and key.
func (p Params) Decode(into any) error {
	dst := reflect.ValueOf(into)
	if dst.Kind() != reflect.Pointer || dst.IsNil() || dst.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("configs: parameters are decoded into a pointer to a struct, not into %T", into))
	}
	if p.empty() {
		return nil
	}
	d := &decoder{unknown: unknownParameter}
	d.structure(dst.Elem(), p.tree, p.key, "")
	return d.err()
}

func unknownParameter(_, name string, siblings []string) string {
	if len(siblings) == 0 {
		return "unknown key; there are no parameters here, remove it"
	}
	if near := nearest(name, siblings); near != "" {
		return fmt.Sprintf("unknown key; did you mean %s?", near)
	}
	return "unknown key; known are " + strings.Join(siblings, ", ")
}

// Size is a number of bytes; in a config a number or a text such as 64MiB.
type Size int64

func (s *Size) decodeTree(d *decoder, v *value, key string) {
	if i, ok := v.integral(); ok && i >= 0 {
		*s = Size(i)
		return
	}
	n, ok := parseSize(v.raw)
	if v.kind != text || !ok {
		d.add(v.at, key, "want a number of bytes, such as 1000000 or 64MiB, got %s", v.describe())
		return
	}
	*s = n
}

func (s Size) encodeTree() *value { return intValue(int64(s)) }

func parseSize(s string) (Size, bool) {
	units := []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(f >= 0 && f*u.bytes < 1<<60) {
			return 0, false
		}
		return Size(f * u.bytes), true
	}
	return 0, false
}

// Unconfined says which tasks may run commands outside of a sandbox.
type Unconfined string

// The values of [Unconfined].
const (
	UnconfinedNever   Unconfined = ""        // none
	UnconfinedBundled Unconfined = "bundled" // embedded ones, played by scripted models
	UnconfinedAlways  Unconfined = "true"    // all: what the model asks for runs with the user's rights
)

func (u *Unconfined) decodeTree(d *decoder, v *value, key string) {
	switch {
	case v.raw == string(UnconfinedBundled), v.raw == string(UnconfinedAlways), v.raw == string(UnconfinedNever):
		*u = Unconfined(v.raw)
	case v.raw == "false":
		*u = UnconfinedNever
	default:
		d.add(v.at, key, "want bundled, true or false, got %s", v.describe())
	}
}

func (u Unconfined) encodeTree() *value { return textValue(string(u), place{}) }

func (k *Keep) decodeTree(d *decoder, v *value, key string) {
	if v.kind == text && v.raw == "all" {
		*k = Keep{All: true}
		return
	}
	if v.kind != list {
		d.add(v.at, key, "want a list of columns, such as [level, topic], or all; got %s", v.describe())
		return
	}
	d.decode(reflect.ValueOf(&k.Names).Elem(), v, key, "")
}

func (k Keep) encodeTree() *value {
	if k.All {
		return textValue("all", place{})
	}
	return encode(reflect.ValueOf(k.Names))
}

// Shuffle says whether tasks are shuffled, and under which seed.
type Shuffle struct {
	On   bool
	Seed *int64 // nil: the run's
}

func (s *Shuffle) decodeTree(d *decoder, v *value, key string) {
	if i, ok := v.integral(); ok {
		*s = Shuffle{On: true, Seed: &i}
		return
	}
	if v.kind != boolean {
		d.add(v.at, key, "want true, false or a seed, such as 7; got %s", v.describe())
		return
	}
	*s = Shuffle{On: v.bool}
}

func (s Shuffle) encodeTree() *value {
	if s.Seed != nil {
		return intValue(*s.Seed)
	}
	return encode(reflect.ValueOf(s.On))
}

// Axis is a swept key and its values, in order.
type Axis struct {
	Key    string
	values []*value
	at     place
}

// Values holds the values as encoding/json would decode them, with whole
// numbers as int64.
func (a Axis) Values() []any {
	values := make([]any, len(a.values))
	for i, v := range a.values {
		values[i] = v.plain()
	}
	return values
}

// Sweep is the axes of a sweep in the order of the file: every combination of
// their values is a variant.
type Sweep []Axis

func (s *Sweep) decodeTree(d *decoder, v *value, key string) {
	*s = nil
	if v.kind != object {
		d.add(v.at, key, "want an object of keys with lists of values, such as {agent.model: [openai/a, openai/b]}; got %s", v.describe())
		return
	}
	for _, e := range v.entries {
		if e.value.kind != list || len(e.value.items) == 0 {
			d.add(e.at, join(key, e.key), "want a list of one or more values, got %s; the key itself is where a single value belongs", e.value.describe())
			continue
		}
		*s = append(*s, Axis{Key: e.key, values: e.value.items, at: e.at})
	}
}

func (s Sweep) encodeTree() *value {
	v := newObject(place{})
	for _, a := range s {
		v.set(a.Key, &value{kind: list, items: a.values}, place{})
	}
	return v
}
