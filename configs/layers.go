package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Options are what stands above a config file.
type Options struct {
	// Flags are named command-line flags that set one key each.
	Flags []Flag
	// Set are the values of --set: key=value.
	Set []string
	// Model are the values of -m: one is agent.model, several sweep it.
	Model []string
	// Env looks up an environment variable; nil: there are none.
	Env func(string) (string, bool)
	// Dir is what relative paths in the file are relative to. Load and Parse
	// take the file's folder where it is "".
	Dir string
	// Recorded keeps the content hashes of a resolved config instead of
	// reading its files again; only [FromResolved] heeds it. Two configs
	// loaded with and without it differ where a file has changed.
	Recorded bool
}

// Flag is a command-line flag that sets a key as --set does, but is named in
// errors by its own name.
type Flag struct {
	Name  string // as typed, with its dashes
	Key   string
	Value string
}

// override is one value that stands above the file.
type override struct {
	key, raw string
	at       place
}

const (
	envPrefix = "TALARIA_"
	modelKey  = "agent.model"
	sweepKey  = "sweep"
	tasksKey  = "tasks"
)

// overrides lists what stands above the file, lowest first.
func (o Options) overrides(dir string) ([]override, problems) {
	var list []override
	var bad problems
	for name, key := range o.variables() {
		if raw, ok := o.Env(name); ok && raw != "" {
			list = append(list, override{key: key, raw: raw, at: place{file: name, dir: dir}})
		}
	}
	slices.SortStableFunc(list, func(a, b override) int { return strings.Compare(a.key, b.key) })
	for _, f := range o.Flags {
		list = append(list, override{key: f.Key, raw: f.Value, at: place{file: f.Name, dir: dir}})
	}
	for _, s := range o.Set {
		at := place{file: "--set", dir: dir}
		key, raw, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			bad.add(at, "", "%q is not key=value, such as --set samples=4", shorten(s, 60))
			continue
		}
		list = append(list, override{key: strings.TrimSpace(key), raw: raw, at: at})
	}
	return list, bad
}

// variables maps the environment variable of each key to the key.
func (o Options) variables() map[string]string {
	names := map[string]string{}
	if o.Env == nil {
		return names
	}
	for _, l := range leaves(reflect.TypeFor[Run](), "") {
		if l.field.rest || l.key == "version" {
			continue
		}
		key := l.key
		if rest, ok := strings.CutPrefix(key, "score."); ok {
			key = strings.TrimSuffix(key, "."+rest) // a scorer has no variable, their list has
		}
		if strings.HasPrefix(key, "tasks.score.") {
			key = "tasks.score"
		}
		names[envName(key)] = key
	}
	return names
}

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// override lays one value over the document.
func (d *document) override(o override) {
	path := strings.Split(o.key, ".")
	if path[0] == sweepKey && len(path) > 1 {
		path = []string{sweepKey, strings.Join(path[1:], ".")}
	}
	if slices.Contains(path, "") {
		d.add(o.at, o.key, "a key has no empty parts; write it as a.b.c")
		return
	}
	v, err := overrideValue(o, path)
	if err != nil {
		d.add(o.at, o.key, "%v", err)
		return
	}
	d.unsweep(o)
	d.setPath(d.root, path, v, "", o.at)
}

// overrideValue parses the value of a flag or variable. Text is taken as it
// stands, for much of it is not YAML: {question}, ####, /A: (.*)/.
func overrideValue(o override, path []string) (*value, error) {
	if f, ok := fieldAt(reflect.TypeFor[Run](), path); ok && isText(f.typ) {
		switch o.raw {
		case "null", "~":
			return &value{at: o.at}, nil
		}
		if !quoted(o.raw) {
			return textValue(o.raw, o.at), nil
		}
	}
	v, err := parseValue(o.at, o.raw)
	if p, ok := err.(problem); ok { //nolint:errorlint // ours, never wrapped
		return nil, fmt.Errorf("the value is %s", p.msg)
	}
	return v, err
}

func isText(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.String
}

func quoted(s string) bool {
	return len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0]
}

// unsweep takes a key that is set explicitly out of the sweep.
func (d *document) unsweep(o override) {
	sweep := d.root.get(sweepKey)
	if sweep == nil || sweep.kind != object {
		return
	}
	for _, e := range slices.Clone(sweep.entries) {
		switch {
		case under(e.key, o.key):
			sweep.remove(e.key)
		case under(o.key, e.key):
			d.add(o.at, o.key, "the sweep sets all of %s; change sweep.%s instead", e.key, e.key)
		}
	}
}

// setPath sets the key at path beneath v and makes what is missing on the way.
// The path is not empty.
func (d *document) setPath(v *value, path []string, leaf *value, key string, at place) {
	segment, rest := path[0], path[1:] //nolint:gosec // G602: a key has at least one part
	child := join(key, segment)
	switch {
	case v.kind == list:
		d.setElement(v, segment, rest, leaf, key, at)
	case v.kind != object:
		d.add(at, child, "%s is %s and has no keys", key, v.describe())
	case len(rest) == 0:
		v.set(segment, leaf, at)
	default:
		next := v.get(segment)
		if next == nil || next.kind == null {
			next = container(child, rest[0], at)
			v.set(segment, next, at)
		}
		d.setPath(next, rest, leaf, child, at)
	}
}

// container is what a key is set in where there is nothing yet.
func container(key, segment string, at place) *value {
	if _, ok := index(segment, 0); ok || key == tasksKey {
		return &value{kind: list, single: !ok, at: at}
	}
	return newObject(at)
}

// setElement goes on beneath an element of a list: by index, all of them by *,
// a new one by +, or the only one.
func (d *document) setElement(v *value, segment string, rest []string, leaf *value, key string, at place) {
	i, ok := index(segment, len(v.items))
	switch {
	case segment == "*":
		for i := range v.items {
			d.setAt(v, i, rest, leaf.clone(), key, at)
		}
	case ok && i > len(v.items):
		d.add(at, join(key, segment), "the list has %d elements; + adds one", len(v.items))
	case ok:
		v.single = false
		d.setAt(v, i, rest, leaf, key, at)
	case len(v.items) > 1:
		d.add(at, join(key, segment), "%s is a list of %d; say which one: %s.0.%s, or all: %s.*.%s",
			key, len(v.items), key, segment, key, segment)
	default:
		d.setAt(v, 0, append([]string{segment}, rest...), leaf, key, at)
	}
}

func (d *document) setAt(v *value, i int, path []string, leaf *value, key string, at place) {
	if i == len(v.items) {
		v.items = append(v.items, newObject(at))
	}
	if len(path) == 0 {
		v.items[i] = leaf
		return
	}
	d.setPath(v.items[i], path, leaf, join(key, strconv.Itoa(i)), at)
}

// index parses a segment that addresses an element of a list of n.
func index(segment string, n int) (int, bool) {
	if segment == "+" {
		return n, true
	}
	i, err := strconv.Atoi(segment)
	return i, err == nil && i >= 0
}

// models puts the values of -m in place.
func (d *document) models(models []string, dir string) {
	at := place{file: "-m", dir: dir}
	if len(models) == 0 {
		return
	}
	d.unsweep(override{key: modelKey, at: at})
	if len(models) == 1 {
		d.setPath(d.root, strings.Split(modelKey, "."), textValue(models[0], at), "", at)
		return
	}
	axis := &value{kind: list, at: at}
	for _, m := range models {
		axis.items = append(axis.items, textValue(m, at))
	}
	d.setPath(d.root, []string{sweepKey, modelKey}, axis, "", at)
}
