package configs

import (
	"reflect"
	"time"

	"github.com/talaria-run/talaria/dataset"
)

// Identity holds the identity keys that are not zero, with the source's env,
// by dotted key.
func (r *Run) Identity(source int) map[string]any {
	m := r.sharedIdentity()
	flatten(m, reflect.ValueOf(r.env(source)), "env")
	return m
}

// sharedIdentity is the identity without an env.
func (r *Run) sharedIdentity() map[string]any {
	m := map[string]any{}
	v := reflect.ValueOf(*r)
	for _, f := range fieldsOf(v.Type()) {
		if f.name != tasksKey && f.name != "env" {
			flattenField(m, v, f, "")
		}
	}
	return m
}

// flatten adds the identity keys of a struct.
func flatten(m map[string]any, v reflect.Value, key string) {
	for _, f := range fieldsOf(v.Type()) {
		flattenField(m, v, f, key)
	}
}

func flattenField(m map[string]any, parent reflect.Value, f field, key string) {
	v := parent.FieldByIndex(f.index)
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct {
		v = v.Elem()
	}
	if f.rest {
		if f.tag.Get("class") == classIdentity {
			for k, e := range v.Interface().(Params).Map() { //nolint:forcetypeassert // fieldsOf checked it
				m[join(key, k)] = e
			}
		}
		return
	}
	if v.Kind() == reflect.Struct && !customType(v.Type()) {
		flatten(m, v, join(key, f.name))
		return
	}
	if f.tag.Get("class") == classIdentity && !v.IsZero() {
		m[join(key, f.name)] = identityValue(v)
	}
}

func identityValue(v reflect.Value) any {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return d.String()
	}
	return encode(v).plain()
}

// Classes of keys, see the package comment.
const (
	classIdentity  = "identity"
	classSelection = "selection"
	classOperation = "operation"
)

// VariantHash identifies what an episode of a source is, seed included. It is
// asked of a variant's Run.
func (r *Run) VariantHash(source int) string {
	return dataset.ID("variant", dataset.Canonical(r.Identity(source)))
}

// ScorerHash identifies how a source is scored: another one means to score
// again, not to run again.
func (r *Run) ScorerHash(source int) string {
	written, _ := r.scorers(source)
	scores := make([]any, len(written))
	for i, s := range r.scores(source) {
		m := map[string]any{"name": s.Name, "chosen": s.Chosen}
		for key, v := range map[string]string{"extract": s.Extract, "target_extract": s.TargetExtract} {
			if v != "" {
				m[key] = v
			}
		}
		if p := written[i].Params; !p.empty() {
			m["params"] = p.Map()
		}
		scores[i] = m
	}
	return dataset.ID("scorer", dataset.Canonical(scores))
}

// ConfigHash identifies the whole resolved config, paths and operation keys
// included. Asked of the Run that was loaded it is one for all variants.
func (r *Run) ConfigHash() string {
	return dataset.ID("config", dataset.Canonical(encode(reflect.ValueOf(*r)).plain()))
}
