package configs

import (
	"reflect"
	"strings"
	"unicode"
)

// field is a key of a struct.
type field struct {
	name  string
	index []int
	typ   reflect.Type
	tag   reflect.StructTag
	rest  bool // takes the keys that have no field
}

// fieldsOf lists the keys of a struct in order. A key's name is its tag yaml,
// else json, else the field's name in snake case; embedded structs count as
// part of the struct.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		name, opts := fieldName(f)
		if !f.IsExported() || name == "-" || f.Anonymous {
			continue
		}
		rest := opts == "rest" && f.Type == restType
		fields = append(fields, field{name: name, index: f.Index, typ: f.Type, tag: f.Tag, rest: rest})
	}
	return fields
}

func fieldName(f reflect.StructField) (name, opts string) {
	for _, key := range []string{"yaml", "json"} {
		if tag, ok := f.Tag.Lookup(key); ok {
			name, opts, _ = strings.Cut(tag, ",")
			break
		}
	}
	if name == "" && opts != "rest" {
		name = snake(f.Name)
	}
	return name, opts
}

// snake turns MaxTokens into max_tokens and BaseURL into base_url.
func snake(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		startsWord := unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if startsWord {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// fieldAt is the field that a key stands for; ok is false where the key is
// unknown or belongs to a plug-in.
func fieldAt(t reflect.Type, path []string) (f field, ok bool) {
	f.typ = t
	for _, segment := range path {
		t := f.typ
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Struct:
			if f, ok = fieldNamed(t, segment); !ok {
				return field{}, false
			}
		case reflect.Slice, reflect.Map:
			f = field{typ: t.Elem()}
		default:
			return field{}, false
		}
	}
	return f, true
}

func fieldNamed(t reflect.Type, name string) (field, bool) {
	for _, f := range fieldsOf(t) {
		if f.name == name && !f.rest {
			return f, true
		}
	}
	return field{}, false
}

// leaf is a key of a config that holds no further keys of its own.
type leaf struct {
	key   string
	class string
	field field
}

// leaves lists every key of a struct type, in order. Within a list of structs
// a key has the list's name as its parent, without index.
func leaves(t reflect.Type, parent string) []leaf {
	var out []leaf
	for _, f := range fieldsOf(t) {
		key := join(parent, f.name)
		if f.rest {
			key = join(parent, "*")
		}
		inner := f.typ
		for !customType(inner) && (inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice) {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || f.rest || customType(inner) {
			out = append(out, leaf{key: key, class: f.tag.Get("class"), field: f})
			continue
		}
		out = append(out, leaves(inner, key)...)
	}
	return out
}

func customType(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[treeDecoder]())
}
