package main

import (
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/agent/model/scripted"
	"github.com/talaria-run/talaria/agent/tool"
	"github.com/talaria-run/talaria/eval/score"
)

func docs(t *testing.T, name string) string {
	t.Helper()
	return string(readFile(t, filepath.Join("..", "..", "docs", name)))
}

// TestQueryingPage runs each SQL block of docs/querying.md on a quickstart run.
// It has to give rows, under the heads of the table that is shown below it.
func TestQueryingPage(t *testing.T) {
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	dir := filepath.Join(t.TempDir(), "quickstart")
	mustExit(t, 0, "run", "bundled:quickstart", "--out", dir, "--samples", "2", "--set", "tasks.1.limit=2", "--quiet")
	block := regexp.MustCompile("(?s)\n```sql\n(.+?)\n```\n(?:\n```\n(.+?)\n)?")
	blocks := block.FindAllStringSubmatch(docs(t, "querying.md"), -1)
	if len(blocks) < 8 {
		t.Fatalf("the page has %d SQL blocks, want at least 8", len(blocks))
	}
	for _, b := range blocks {
		sql, heads := strings.ReplaceAll(b[1], "RUN/", dir+"/"), b[2]
		out, errs, code := talaria(t, "query", dir, sql)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		switch {
		case code != 0:
			t.Errorf("exit code %d: %s\n%s", code, errs, sql)
		case len(lines) < 3:
			t.Errorf("no row:\n%s", sql)
		case heads != "" && !slices.Equal(strings.Fields(heads), strings.Fields(lines[0])):
			t.Errorf("the page shows %q, the query %q:\n%s", heads, lines[0], sql)
		}
	}
}

// TestConfigPageNames wants docs/config.md to name everything that a config can
// choose by name.
func TestConfigPageNames(t *testing.T) {
	page := docs(t, "config.md")
	builtin := tool.Builtin()
	for _, names := range [][]string{
		envs().Names(),
		slices.Collect(maps.Keys(score.Builtin())),
		slices.Collect(maps.Keys(builtin.Sets)),
		slices.Collect(maps.Keys(builtin.Tools)),
	} {
		for _, name := range names {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/config.md does not name `%s`", name)
			}
		}
	}
}

// TestRunningPageNames wants docs/running.md to name all scripted models, exit
// codes and commands.
func TestRunningPageNames(t *testing.T) {
	page := docs(t, "running.md")
	names := scripted.Names()
	for i, name := range names {
		names[i] = "scripted/" + name
	}
	for _, path := range allCommands()[1:] {
		names = append(names, commandName(path))
	}
	for _, name := range append(names, "0", "1", "2", "3", "4", "5", "130") {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/running.md does not name `%s`", name)
		}
	}
}

// TestLabPage wants docs/lab.md to name every key of a script, of a fault, of
// the ledger and of the metrics, and every kind of fault.
func TestLabPage(t *testing.T) {
	names := append(lab.Faults(), lab.Servers()...)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[lab.Script](), reflect.TypeFor[lab.Tool](), reflect.TypeFor[lab.Fault](),
		reflect.TypeFor[lab.Entry](), reflect.TypeFor[lab.Gauge](),
	} {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	page := docs(t, "lab.md")
	for _, name := range names {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/lab.md does not name `%s`", name)
		}
	}
}
