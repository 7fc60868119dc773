package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
)

// runOfPage makes the run of docs/duckdb.md from the files that the page holds.
func runOfPage(t *testing.T, page string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{}
	for _, f := range regexp.MustCompile("(?s)`([a-z]+\\.[a-z]+)`:\n\n```[a-z]+\n(.+?\n)```").FindAllStringSubmatch(page, -1) {
		files[f[1]] = f[2]
	}
	script, err := lab.ReadScript(strings.NewReader(files["lab.json"]))
	if err != nil {
		t.Fatal(err)
	}
	config, found := strings.CutPrefix(files["numbers.yaml"], "version: 1\n")
	if !found {
		t.Fatalf("the page has no numbers.yaml: %v", files)
	}
	files["numbers.yaml"] = "version: 1\n" + strings.Replace(config, "http://127.0.0.1:8093/v1", newLab(t, script).base, 1)
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	run := filepath.Join(dir, "run")
	mustExit(t, 0, "run", filepath.Join(dir, "numbers.yaml"), "--out", run, "--quiet")
	return run
}

// TestDuckDBPage asks the run of docs/duckdb.md each question of the page, and
// wants the table that is shown below it; of what depends on time its heads.
func TestDuckDBPage(t *testing.T) {
	t.Parallel()
	if !sqlBuiltIn {
		t.Skip("this build has no SQL")
	}
	page := docs(t, "duckdb.md")
	dir := runOfPage(t, page)
	block := regexp.MustCompile("(?s)```sql\n(.+?)\n```\n\n(?:```text\n(.+?)\n```\n\n)?")
	questions := 0
	fresh := block.ReplaceAllStringFunc(page, func(found string) string {
		questions++
		m := block.FindStringSubmatch(found)
		sql, shown := m[1], m[2]
		out, _ := mustExit(t, 0, "query", dir, sql)
		got := strings.TrimSuffix(out, "\n")
		if rows := strings.Count(got, "\n"); rows < 2 || strings.HasPrefix(shown, "NULL") {
			t.Errorf("no rows:\n%s", sql)
		}
		want, have := shown, got
		if regexp.MustCompile("duration_us|ended_at").MatchString(sql) {
			want, have = heads(want), heads(have)
		}
		if diff := cmp.Diff(want, have); diff != "" && !*update {
			t.Errorf("%s (-page +run):\n%s", sql, diff)
		}
		return "```sql\n" + sql + "\n```\n\n```text\n" + got + "\n```\n\n"
	})
	if questions != 15 {
		t.Errorf("the page has %d questions, want 15", questions)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "duckdb.md"), []byte(fresh), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// heads are the names of a table's columns, whatever their width.
func heads(table string) string {
	line, _, _ := strings.Cut(table, "\n")
	return strings.Join(strings.Fields(line), " ")
}

// TestReadmeLinksAllPages: a page that nothing leads to is not read.
func TestReadmeLinksAllPages(t *testing.T) {
	readme := string(readFile(t, filepath.Join("..", "..", "README.md")))
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		if !strings.Contains(readme, "(docs/"+filepath.Base(page)+")") {
			t.Errorf("README.md does not link docs/%s", filepath.Base(page))
		}
	}
}
