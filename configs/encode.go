package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"
)

type treeEncoder interface{ encodeTree() *value }

// encode is the inverse of decoding: encoding a Run and decoding it again gives
// the same Run. Nil pointers, lists and maps are left out.
func encode(v reflect.Value) *value {
	switch x := v.Interface().(type) {
	case treeEncoder:
		return x.encodeTree()
	case time.Duration:
		return textValue(x.String(), place{})
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return &value{}
		}
		return encode(v.Elem())
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Map:
		return encodeMap(v)
	case reflect.Slice:
		return encodeSlice(v)
	default:
		return encodeScalar(v)
	}
}

func encodeStruct(v reflect.Value) *value {
	o := newObject(place{})
	for _, f := range fieldsOf(v.Type()) {
		e := v.FieldByIndex(f.index)
		if f.rest {
			o.addRest(e.Interface().(Params)) //nolint:forcetypeassert // fieldsOf checked it
			continue
		}
		if c := encode(e); c.kind != null {
			o.set(f.name, c, place{})
		}
	}
	return o
}

func (v *value) addRest(p Params) {
	if p.empty() {
		return
	}
	for _, e := range p.tree.entries {
		v.set(e.key, e.value, e.at)
	}
}

func encodeMap(v reflect.Value) *value {
	if v.IsNil() {
		return &value{}
	}
	o := newObject(place{})
	m := v.Interface().(map[string]string) //nolint:forcetypeassert // the only map in a Run
	for _, k := range slices.Sorted(maps.Keys(m)) {
		o.set(k, textValue(m[k], place{}), place{})
	}
	return o
}

func encodeSlice(v reflect.Value) *value {
	if v.IsNil() {
		return &value{}
	}
	l := &value{kind: list}
	for i := range v.Len() {
		l.items = append(l.items, encode(v.Index(i)))
	}
	return l
}

func encodeScalar(v reflect.Value) *value {
	switch v.Kind() {
	case reflect.String:
		return textValue(v.String(), place{})
	case reflect.Bool:
		return &value{kind: boolean, bool: v.Bool(), raw: strconv.FormatBool(v.Bool())}
	case reflect.Int, reflect.Int64:
		return intValue(v.Int())
	case reflect.Float64:
		return &value{kind: float, float: v.Float(), raw: floatJSON(v.Float())}
	default:
		panic(fmt.Sprintf("configs: a config cannot hold a %s", v.Type()))
	}
}
