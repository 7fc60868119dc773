package configs

import (
	"reflect"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// Variant is one point of a sweep.
type Variant struct {
	// Name is stable: it depends on the swept keys and the point's values, not
	// on what else is swept over.
	Name   string
	Params map[string]any // swept key to value
	Run    *Run           // the config with the values applied and without sweep
}

// DefaultVariant is the name of the only variant of a run without sweep.
const DefaultVariant = "default"

// maxVariants bounds a sweep: beyond it something was written by mistake.
const maxVariants = 1000

// Variants expands the sweep, in the order of its keys in the file, the last
// one changing fastest.
func (r *Run) Variants() ([]Variant, error) {
	if len(r.Sweep) == 0 {
		return []Variant{{Name: DefaultVariant, Params: map[string]any{}, Run: r}}, nil
	}
	variants, bad := r.expand()
	for _, v := range variants {
		v.Run.doc.checkVariant(v.Run)
		bad = append(bad, v.Run.doc.problems...)
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	return variants, nil
}

// expand makes the variants of a sweep. They are decoded but not checked.
func (r *Run) expand() ([]Variant, problems) {
	var bad problems
	total := 1
	for i := range r.Sweep {
		r.checkAxis(i, &bad)
		total = min(total*len(r.Sweep[i].values), maxVariants+1)
	}
	if total > maxVariants {
		bad.add(r.doc.place(sweepKey), sweepKey, "the sweep has more than %d variants; sweep over fewer values", maxVariants)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	names := shortNames(r.Sweep)
	variants := make([]Variant, 0, total)
	for n := range total {
		v, problems := r.variant(r.Sweep.point(n), names)
		variants = append(variants, v)
		bad = append(bad, problems...)
	}
	return variants, bad
}

// point is the n-th combination of values.
func (s Sweep) point(n int) []*value {
	values := make([]*value, len(s))
	for i, a := range slices.Backward(s) {
		values[i] = a.values[n%len(a.values)]
		n /= len(a.values)
	}
	return values
}

func (r *Run) variant(values []*value, names []string) (Variant, problems) {
	d := &document{root: r.doc.root.clone()}
	d.root.remove(sweepKey)
	v := Variant{Params: make(map[string]any, len(values))}
	parts := make([]string, len(values))
	for i, a := range r.Sweep {
		v.Params[a.Key] = values[i].plain()
		parts[i] = names[i] + "=" + valueName(values[i])
		d.setPath(d.root, strings.Split(a.Key, "."), values[i].clone(), "", values[i].at)
	}
	v.Name = strings.Join(parts, ",")
	at := *r.doc
	at.problems = nil
	v.Run = at.decode(d.root)
	return v, append(d.problems, at.problems...)
}

// sweepable are the keys that say what a variant is. All variants share the
// rest: tasks, seed, samples and how the run is carried out.
func sweepable() []string { return []string{"agent", "env", "prompt", "few_shot", "limits.episode"} }

func (r *Run) checkAxis(i int, bad *problems) {
	a := r.Sweep[i]
	key := sweepKey + "." + a.Key
	path := strings.Split(a.Key, ".")
	if near := unknownAxis(path); near != "" {
		bad.add(a.at, key, "%s", near)
		return
	}
	if !slices.ContainsFunc(sweepable(), func(root string) bool { return under(a.Key, root) }) {
		bad.add(a.at, key, "all variants share this key; only %s and what is beneath them can be swept", strings.Join(sweepable(), ", "))
	}
	for _, b := range r.Sweep[:i] {
		if under(a.Key, b.Key) || under(b.Key, a.Key) {
			bad.add(a.at, key, "it overlaps with the swept key %s; sweep over one of them", b.Key)
		}
	}
	seen := map[string]bool{}
	for _, v := range a.values {
		c := dataset.Canonical(v.plain())
		if seen[c] {
			bad.add(v.at, key, "the value %s is there twice; remove one", shorten(c, 60))
		}
		seen[c] = true
	}
}

// unknownAxis says what is meant by a swept key that no config has.
func unknownAxis(path []string) string {
	t := reflect.TypeFor[Run]()
	for i, segment := range path {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || customType(t) {
			return "" // beneath it the keys are free
		}
		if next, ok := fieldNamed(t, segment); ok {
			t = next.typ
			continue
		}
		var siblings []string
		for _, f := range fieldsOf(t) {
			if f.rest {
				return ""
			}
			siblings = append(siblings, f.name)
		}
		return unknownKey(strings.Join(path[:i+1], "."), segment, siblings)
	}
	return ""
}

// shortNames gives each axis the shortest end of its key that no other axis
// ends with.
func shortNames(s Sweep) []string {
	names := make([]string, len(s))
	for i, a := range s {
		parts := strings.Split(a.Key, ".")
		for n := 1; n <= len(parts); n++ {
			names[i] = strings.Join(parts[len(parts)-n:], ".")
			if !slices.ContainsFunc(s, func(b Axis) bool { return b.Key != a.Key && strings.HasSuffix("."+b.Key, "."+names[i]) }) {
				break
			}
		}
	}
	return names
}

// maxValueName bounds a value within a variant's name, which is read in tables
// and typed after RUN: on the command line.
const maxValueName = 40

// valueName is a value in its canonical form where that is short and free of
// what a name is made of, else its beginning and a hash. Different values have
// different names.
func valueName(v *value) string {
	s := dataset.Text(v.plain())
	switch {
	case v.kind == null:
		return "~null"
	case v.kind == text && s == "":
		return "''"
	case v.kind == list && len(v.items) > 0:
		s = joinElements(v.items)
	case v.kind == list:
		return "[]"
	}
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(",=~\"'{}[]", r) {
			return '_'
		}
		return r
	}, s)
	if clean == s && len(s) <= maxValueName {
		return s
	}
	short := strings.TrimSuffix(shorten(clean, maxValueName-16), "...")
	return short + "~" + dataset.ID("value", dataset.Canonical(v.plain()))[:8]
}

// joinElements joins a list by +; an element with a + of its own is put in
// quotes, which no name keeps.
func joinElements(items []*value) string {
	parts := make([]string, len(items))
	for i, e := range items {
		parts[i] = dataset.Text(e.plain())
		if strings.Contains(parts[i], "+") || parts[i] == "" {
			parts[i] = "'" + parts[i] + "'"
		}
	}
	return strings.Join(parts, "+")
}

// checkDistinct refuses variants that are the same thing under two names: they
// would claim the same episodes.
func checkDistinct(r *Run, variants []Variant) problems {
	var bad problems
	for source := range r.Tasks {
		first := map[string]string{}
		for _, v := range variants {
			hash := v.Run.VariantHash(source)
			if other, ok := first[hash]; ok {
				bad.add(r.doc.place(sweepKey), sweepKey, "the variants %s and %s are the same for %s: what differs is not part of their identity, "+
					"or that source has an env of its own", other, v.Name, r.tasksKey(source))
				return bad
			}
			first[hash] = v.Name
		}
	}
	return bad
}
