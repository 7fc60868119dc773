package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// Change is an identity key that differs between two configs; nil: not set.
type Change struct {
	Key      string
	Old, New any
}

func (c Change) String() string {
	text := func(v any) string {
		if v == nil {
			return "(not set)"
		}
		return dataset.Text(v)
	}
	return fmt.Sprintf("%s: %s -> %s", c.Key, text(c.Old), text(c.New))
}

// DiffIdentity lists the identity keys that differ between an old and a new
// config, sorted. Swept keys are left out, for the points of a sweep are a
// selection; so are sources that only one of the two has, by name.
func DiffIdentity(was, now *Run) []Change {
	d := differ{swept: slices.Concat(was.Sweep, now.Sweep)}
	d.compare("", was.sharedIdentity(), now.sharedIdentity())
	shared := false
	for i := range now.Tasks {
		j := counterpart(was, now, i)
		if j < 0 {
			continue
		}
		prefix := ""
		if now.Tasks[i].Env != nil || was.Tasks[j].Env != nil {
			prefix = now.tasksKey(i) + "."
		} else if shared {
			continue // the run's env is compared once
		} else {
			shared = true
		}
		d.compare(prefix, envIdentity(was.env(j)), envIdentity(now.env(i)))
	}
	return d.changes
}

// counterpart is the index in was of a source of now, -1 if there is none.
func counterpart(was, now *Run, source int) int {
	if len(was.Tasks) == 1 && len(now.Tasks) == 1 {
		return 0
	}
	name := now.Tasks[source].name()
	return slices.IndexFunc(was.Tasks, func(t Tasks) bool { return t.name() == name })
}

type differ struct {
	swept   Sweep
	changes []Change
}

func (d *differ) compare(prefix string, was, now map[string]any) {
	keys := maps.Clone(was)
	maps.Copy(keys, now)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !d.isSwept(key) && dataset.Canonical(was[key]) != dataset.Canonical(now[key]) {
			d.changes = append(d.changes, Change{Key: prefix + key, Old: was[key], New: now[key]})
		}
	}
}

// isSwept also covers the hash of a file whose path is swept over.
func (d *differ) isSwept(key string) bool {
	path := key
	if parent, ok := strings.CutSuffix(key, ".sha256"); ok {
		path = parent + ".path"
	}
	return slices.ContainsFunc(d.swept, func(a Axis) bool { return under(key, a.Key) || under(path, a.Key) })
}

func envIdentity(e Env) map[string]any {
	m := map[string]any{}
	flatten(m, reflect.ValueOf(e), "env")
	return m
}
