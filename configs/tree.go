package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	list
	object
)

// value is a node of a config document, whether it came from YAML, from a flag
// or from run.json. Unlike a yaml.Node it knows its file, holds no aliases and
// has no duplicate keys.
type value struct {
	kind    kind
	raw     string // a scalar as written
	bool    bool
	int     int64
	float   float64 // finite
	items   []*value
	entries []entry // in the order of the document
	single  bool    // a list that was written as its only element
	at      place
}

type entry struct {
	key   string
	at    place
	value *value
}

// place is where a value was written. dir is what a relative path there is
// relative to.
type place struct {
	file string // or the flag or the variable
	line int    // 0: has none
	dir  string
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return p.file + ":" + strconv.Itoa(p.line)
}

func newObject(at place) *value { return &value{kind: object, at: at} }

func textValue(s string, at place) *value { return &value{kind: text, raw: s, at: at} }

func intValue(i int64) *value { return &value{kind: integer, int: i, raw: strconv.FormatInt(i, 10)} }

func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for i := range v.entries {
		if v.entries[i].key == key {
			return v.entries[i].value
		}
	}
	return nil
}

// set replaces a key in its place or adds it at the end.
func (v *value) set(key string, e *value, at place) {
	for i := range v.entries {
		if v.entries[i].key == key {
			v.entries[i].value, v.entries[i].at = e, at
			return
		}
	}
	v.entries = append(v.entries, entry{key: key, at: at, value: e})
}

func (v *value) remove(key string) {
	v.entries = slices.DeleteFunc(v.entries, func(e entry) bool { return e.key == key })
}

// clone copies the tree, so that setting a key in it leaves v alone.
func (v *value) clone() *value {
	c := *v
	c.items = slices.Clone(v.items)
	for i, e := range c.items {
		c.items[i] = e.clone()
	}
	c.entries = slices.Clone(v.entries)
	for i, e := range c.entries {
		c.entries[i].value = e.value.clone()
	}
	return &c
}

// plain is the value as encoding/json would decode it, but with integers as
// int64.
func (v *value) plain() any {
	switch v.kind {
	case null:
		return nil
	case boolean:
		return v.bool
	case integer:
		return v.int
	case float:
		return v.float
	case text:
		return v.raw
	case list:
		l := make([]any, len(v.items))
		for i, e := range v.items {
			l[i] = e.plain()
		}
		return l
	case object:
		m := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			m[e.key] = e.value.plain()
		}
		return m
	}
	panic(fmt.Sprintf("configs: value of unknown kind %d", v.kind))
}

// describe names the value in an error message.
func (v *value) describe() string {
	switch v.kind {
	case null:
		return "nothing"
	case list:
		return "a list"
	case object:
		return "an object"
	case text:
		return "the text " + strconv.Quote(shorten(v.raw, 40))
	case boolean, integer, float:
	}
	return shorten(v.raw, 40)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// join appends a segment to a key; the empty key is the root.
func join(key, segment string) string {
	if key == "" {
		return segment
	}
	return key + "." + segment
}

// under reports whether key is parent or lies beneath it.
func under(key, parent string) bool {
	return key == parent || strings.HasPrefix(key, parent+".")
}
