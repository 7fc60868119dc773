package source

import (
	"fmt"
	"strings"
	"testing"
)

// The ids of released tasks never change: episodes are recorded under them.
func TestIDs(t *testing.T) {
	text := strings.Join([]string{
		`{"input":"2+2?","target":4}`,
		`{"input":"2+2?","target":4.0}`,           // the same number: the same task
		`{"target":"4","input":"2+2?","extra":1}`, // as text, in another order, with a column that is not mapped
		`{"input":"2+2?","target":"four"}`,        // another target: another task
		`{"input":{"b":[1,null],"a":true},"target":""}`,
		`{"input":"é < ü","target":"\u00e9"}`,
		`{"input":9007199254740993,"target":1e2}`,
	}, "\n")
	var report strings.Builder
	for _, columns := range []map[string]string{nil, {"extra": "target"}, {ID: "input"}} {
		fmt.Fprintf(&report, "columns %v\n", columns)
		opts := Options{Path: write(t, "t.jsonl", []byte(text)), Columns: columns, SkipBadRows: true}
		for _, task := range readAll(t, opts) {
			fmt.Fprintf(&report, "%s %s %d %q %q\n", task.ID, task.Hash, task.Occurrence, task.Input, task.Target)
		}
	}
	golden(t, "ids.golden", report.String())
}
