package configs

import (
	"path/filepath"
	"reflect"
	"strings"
)

// absolutePaths makes the paths of files independent of where they were
// written, also within the values of a sweep. Keys of plug-ins are theirs.
func (d *document) absolutePaths() {
	run := reflect.TypeFor[Run]()
	absolute(d.root, field{typ: run})
	sweep := d.root.get(sweepKey)
	if sweep == nil {
		return
	}
	for _, axis := range sweep.entries {
		if f, ok := fieldAt(run, strings.Split(axis.key, ".")); ok {
			for _, v := range axis.value.items {
				absolute(v, f)
			}
		}
	}
}

func absolute(v *value, f field) {
	t := f.typ
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v.kind == text && f.tag.Get("path") != "":
		v.raw = absolutePath(v.raw, v.at.dir)
	case v.kind == list && t.Kind() == reflect.Slice:
		for _, e := range v.items {
			absolute(e, field{typ: t.Elem()})
		}
	case v.kind == object && t.Kind() == reflect.Struct:
		for _, e := range v.entries {
			if next, ok := fieldNamed(t, e.key); ok {
				absolute(e.value, next)
			}
		}
	}
}

// harborPrefix stands before the directory of task folders.
const harborPrefix = "harbor:"

// hubPrefix stands before the name of a dataset on a hub.
const hubPrefix = "hf://"

// absolutePath leaves names of embedded files and of datasets on a hub alone.
func absolutePath(path, dir string) string {
	if folder, ok := strings.CutPrefix(path, harborPrefix); ok {
		return harborPrefix + absolutePath(folder, dir)
	}
	if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, bundledPrefix) || strings.HasPrefix(path, hubPrefix) {
		return path
	}
	return filepath.Join(dir, path)
}
