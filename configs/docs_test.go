package configs

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// docKey is a row of the tables of keys in docs/config.md.
type docKey struct{ Key, Class, Default string }

// TestConfigPage wants docs/config.md to have one row for every key, and no
// other, with its class and its default.
func TestConfigPage(t *testing.T) {
	page, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_.*]+)` \\| (identity|selection|operation) \\| (.+?) \\| .+ \\|$")
	rows := row.FindAllStringSubmatch(string(page), -1)
	got := make([]docKey, len(rows))
	for i, m := range rows {
		got[i] = docKey{m[1], m[2], strings.Trim(m[3], "`")}
	}
	keys := leaves(reflect.TypeFor[Run](), "")
	want := make([]docKey, len(keys))
	for i, l := range keys {
		want[i] = docKey{l.key, l.class, docDefault(l)}
	}
	byKey := func(a, b docKey) int { return strings.Compare(a.Key, b.Key) }
	slices.SortFunc(got, byKey)
	slices.SortFunc(want, byKey)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/config.md differs from the keys of Run (-code +page):\n%s", diff)
	}
}

// docDefault is a key's default as the page writes it.
func docDefault(l leaf) string {
	// What follows from other keys stands in words, see Defaults.
	derived := map[string]string{
		"name": "the file's name", "tasks.name": "the file's name", "tasks.on_bad_row": OnBadRowFail,
		"tasks.env.name": "the run's env", "tasks.score.name": "the run's scorers",
		"prompt": "the input column", "score.chosen": "the first of the list",
		"few_shot.sha256": "the file's", "agent.replay.sha256": "the file's", "agent.api_key_env": "the preset's",
		"tasks.limit": "0", "version": "none",
	}
	if words, ok := derived[l.key]; ok {
		return words
	}
	v := encode(reflect.ValueOf(Defaults()))
	for segment := range strings.SplitSeq(l.key, ".") {
		if v == nil || v.kind != object {
			return "none"
		}
		v = v.get(segment)
	}
	if v == nil || v.kind != text && v.kind != integer && v.kind != float || v.raw == "" {
		return "none"
	}
	return docValue(l.field.typ, v)
}

// docValue is a value as people write it.
func docValue(typ reflect.Type, v *value) string {
	switch {
	case typ == reflect.TypeFor[time.Duration]() && v.raw == "0s":
		return "0"
	case typ == reflect.TypeFor[time.Duration]():
		return strings.NewReplacer("m0s", "m", "h0m", "h").Replace(v.raw)
	case typ == reflect.TypeFor[Size]():
		return strconv.FormatInt(v.int>>20, 10) + "MiB"
	case v.kind == float:
		return strconv.FormatFloat(v.float, 'g', -1, 64)
	default:
		return v.raw
	}
}
