//go:build cgo

package query_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/evaltest"
	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/table"
)

// odd is a run under a name with everything that could be taken for a pattern
// or a partition, and what lies beside it.
func odd(t *testing.T) (db *query.DB, dir, secret string) {
	t.Helper()
	root := t.TempDir()
	dir = filepath.Join(root, "it's a=b [1] *?")
	if err := os.CopyFS(dir, os.DirFS(evaltest.Alpha(t).Dir)); err != nil {
		t.Fatal(err)
	}
	secret = filepath.Join(root, "it's a=b [1] *?2")
	if err := os.WriteFile(secret, []byte("a\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	return evaltest.DB(t, &evaltest.Run{Dir: filepath.Join(root, "link")}), dir, secret
}

func quoted(path ...string) string {
	return "'" + strings.ReplaceAll(filepath.Join(path...), "'", "''") + "'"
}

func TestOddNamesAndSymlinks(t *testing.T) {
	db, dir, _ := odd(t)
	got := printed(t, db, table.CSV, "SELECT count(*) AS n, count(DISTINCT run_id) AS runs FROM all_attempts")
	if want := "n,runs\n21,1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	if got := printed(t, db, table.CSV, "SELECT count(*) AS n FROM read_json("+quoted(link, "manifest.jsonl")+")"); got == "n\n0\n" {
		t.Error("a file of the run is not readable")
	}
	if got := printed(t, db, table.CSV, "SELECT count(*) AS n FROM glob("+quoted(link, "attempts", "*")+")"); got == "n\n0\n" {
		t.Error("the files of the run are not listed")
	}
}

// TestLockedDown: SQL reads the runs named, and writes nowhere.
func TestLockedDown(t *testing.T) {
	db, dir, secret := odd(t)
	before := listing(t, filepath.Dir(dir))
	const (
		closed    = "file system operations are disabled by configuration"
		forbidden = "is not allowed: SQL here reads runs"
		locked    = "the configuration has been locked"
	)
	link := filepath.Join(filepath.Dir(dir), "link")
	tests := []struct{ sql, want string }{
		{"FROM read_text('/etc/passwd')", closed},
		{"FROM read_csv('/etc/passwd')", closed},
		{"FROM '/etc/passwd'", ""},
		{"FROM read_blob('/proc/self/environ')", closed},
		{"FROM glob('/etc/*')", closed},
		{"FROM read_text(" + quoted(secret) + ")", closed},
		{"FROM read_text('" + link + "/../" + strings.ReplaceAll(filepath.Base(secret), "'", "''") + "')", closed},
		{"INSTALL httpfs", forbidden},
		{"LOAD httpfs", forbidden},
		{"FROM read_parquet('https://example.com/x.parquet')", ""},
		{"SET threads = 1", forbidden},
		{"SET GLOBAL TimeZone = 'Europe/Berlin'", forbidden},
		{"RESET memory_limit", forbidden},
		{"PRAGMA threads = 1", forbidden},
		{"COPY (SELECT 1) TO " + quoted(filepath.Dir(dir), "x.csv"), forbidden},
		{"COPY (SELECT 1) TO " + quoted(link, "x.csv"), forbidden},
		{"EXPLAIN ANALYZE COPY (SELECT 1) TO " + quoted(link, "x.csv"), forbidden},
		{"EXPLAIN /* SELECT */ ANALYZE COPY (SELECT 1) TO " + quoted(link, "x.csv"), forbidden},
		{"SELECT 1; COPY (SELECT 1) TO " + quoted(link, "x.csv"), forbidden},
		{"SELECT 1; COPY (SELECT 1) TO " + quoted(link, "x.csv") + "; SELECT 2", forbidden},
		{"PREPARE p AS COPY (SELECT 1) TO " + quoted(link, "x.csv"), forbidden},
		{"EXPORT DATABASE " + quoted(link, "x"), forbidden},
		{"ATTACH " + quoted(link, "x.db"), forbidden},
		{"FROM enable_logging(storage = 'file', storage_config = {'path': " + quoted(link, "log") + "})", locked},
		{"CALL enable_logging()", forbidden},
		{"CREATE TABLE x AS FROM read_text('/etc/passwd')", closed},
	}
	for _, tt := range tests {
		err := db.Print(t.Context(), &strings.Builder{}, table.CSV, tt.sql)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one with %q", tt.sql, err, tt.want)
		}
	}
	if diff := gocmp.Diff(before, listing(t, filepath.Dir(dir))); diff != "" {
		t.Errorf("files before and after (-before +after):\n%s", diff)
	}
}

func listing(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSettings(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	sql := `SELECT current_setting('TimeZone') AS tz, current_setting('threads') AS threads, current_setting('memory_limit') AS memory,
		current_setting('autoinstall_known_extensions') OR current_setting('autoload_known_extensions')
		OR current_setting('allow_community_extensions') AS extensions`
	want := "tz,threads,memory,extensions\nUTC,2,3.7 GiB,false\n"
	var wg sync.WaitGroup
	for range 4 { // connections of their own
		wg.Go(func() {
			if diff := gocmp.Diff(want, printed(t, db, table.CSV, sql)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	wg.Wait()
}

func TestValues(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	tests := []struct{ name, sql, want string }{
		{
			"integers", "SELECT 9007199254740993 AS a, 170141183460469231731687303715884105727::HUGEINT AS b, -5::TINYINT AS c, 18446744073709551615::UBIGINT AS d, 123456789012345678901234567890123456789012::BIGNUM AS e",
			`{"a":9007199254740993,"b":170141183460469231731687303715884105727,"c":-5,"d":18446744073709551615,"e":123456789012345678901234567890123456789012}`,
		},
		{"floats", "SELECT 'nan'::DOUBLE AS a, '-inf'::FLOAT AS b, 0.1::FLOAT AS c, 1e300 AS d", `{"a":null,"b":null,"c":0.1,"d":1e+300}`},
		{"decimals", "SELECT 1.50::DECIMAL(5, 2) AS a, 0.1 AS b, avg(1) AS c", `{"a":1.50,"b":0.1,"c":1}`},
		{
			"times", "SELECT TIMESTAMPTZ '2026-01-02 03:04:05.000006+01' AS a, DATE '2026-01-02' AS b, TIMESTAMP '2026-01-02 03:04:05' AS c, TIMESTAMP_NS '2026-01-02 03:04:05.123456789' AS d, INTERVAL 3 DAYS AS e",
			`{"a":"2026-01-02T02:04:05.000006Z","b":"2026-01-02","c":"2026-01-02 03:04:05","d":"2026-01-02 03:04:05.123456789","e":"3 days"}`,
		},
		{
			"nested", "SELECT [1, NULL] AS a, {'z': 1, 'a': 'NaN \" Infinity', 'n': 'nan'::DOUBLE} AS b, MAP {'k': [1.5]} AS c, 5::VARIANT AS d, [{'x': 9007199254740993}] AS e",
			`{"a":[1,null],"b":{"z":1,"a":"NaN \" Infinity","n":null},"c":{"k":[1.5]},"d":5,"e":[{"x":9007199254740993}]}`,
		},
		{
			"JSON", `SELECT '{"b": 12345678901234567890, "a": 1.0}'::JSON AS a, ['1'::JSON] AS b, NULL::JSON AS c`,
			`{"a":{"b":12345678901234567890,"a":1.0},"b":[1],"c":null}`,
		},
		{
			"others", `SELECT '\xAA\x00'::BLOB AS a, 'f47ac10b-58cc-4372-a567-0e02b2c3d479'::UUID AS b, true AS c, 'x'::ENUM ('x', 'y') AS d, '101'::BIT AS e, NULL AS f, chr(0) || 'é' AS g`,
			`{"a":"\\xAA\\x00","b":"f47ac10b-58cc-4372-a567-0e02b2c3d479","c":true,"d":"x","e":"101","f":null,"g":"\u0000é"}`,
		},
		{"names that come twice", "SELECT 1 AS a, 2 AS a, [3] AS a", `{"a":1,"a_2":2,"a_3":[3]}`},
		{"order", "SELECT x, [x] AS l FROM range(3) r(x) ORDER BY x DESC -- done", "{\"x\":2,\"l\":[2]}\n{\"x\":1,\"l\":[1]}\n{\"x\":0,\"l\":[0]}"},
		{"several statements", "CREATE TEMP TABLE x AS SELECT 1 AS a; INSERT INTO x VALUES (2); SELECT sum(a) AS s FROM x;", `{"s":3}`},
		{"a statement without rows", "CREATE TABLE y AS FROM range(4)", `{"Count":4}`},
		{"DESCRIBE", "DESCRIBE SELECT 1 AS a", `{"column_name":"a","column_type":"INTEGER","null":"YES","key":null,"default":null,"extra":null}`},
		{"PIVOT", "PIVOT (SELECT 'a' AS k, 1 AS v) ON k USING sum(v)", `{"a":1}`},
		{"VALUES", "VALUES (1, [2])", `{"col0":1,"col1":[2]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := gocmp.Diff(tt.want+"\n", printed(t, db, table.JSONL, tt.sql)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsAreOneSentence(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	tests := []struct{ sql, want string }{
		{"SELECT rewad FROM episodes", `Binder Error: Referenced column "rewad" not found in FROM clause! Candidate bindings: "reward", `},
		{"SELECT 1 FROM episode", `Catalog Error: Table with name episode does not exist! Did you mean "episodes`},
		{"SELECT 1 FORM x", "Parser Error: syntax error at or near \"x\""},
		{"SELECT 'x'::INTEGER", "Conversion Error: Could not convert string 'x' to INT32"},
		{"SELECT error('mine')", "Invalid Input Error: mine"},
		{" ; -- nothing", "there is no SQL to run"},
		{"CREATE TABLE episodes (a INTEGER)", "Catalog Error: "},
	}
	for _, tt := range tests {
		err := db.Print(t.Context(), &strings.Builder{}, table.JSON, tt.sql)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line that begins with %s", tt.sql, err, tt.want)
		}
	}
}

// TestMistakesHaveTheirPlace: what is wrong with a statement is found before it
// runs, and told with where in the whole text it is.
func TestMistakesHaveTheirPlace(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	long := strings.Repeat("reward, ", 30)
	tests := []struct {
		sql          string
		line, column int
		want         string
	}{
		{"SELEC 1", 1, 1, `syntax error at or near "SELEC"`},
		{"  SELEC 1", 1, 3, `syntax error at or near "SELEC"`},
		{"SELECT 1; SELEC 1", 1, 11, `syntax error at or near "SELEC"`},
		{"SELECT 1;\n\n SELECT 1 FORM x", 3, 16, `syntax error at or near "x"`},
		{"-- a comment\nSELECT\n  rewad\nFROM episodes;", 3, 3, `"rewad" not found`},
		{"SELECT 'é', \"ü\" FROM episodes", 1, 13, `"ü" not found`},
		{"SELECT " + long + "rewad, " + long + "1 FROM episodes", 1, 8 + len(long), `"rewad" not found`},
		{"SELECT 1 FROM episode", 1, 15, "Did you mean"},
		{"SELECT 'a", 1, 8, "unterminated"},
		{"FROM read_text('/etc/passwd')", 1, 6, "Permission Error"},
		{"COPY (SELECT 1) TO 'x'", 0, 0, "COPY is not allowed"},
		{"COPY (SELECT 1) TOO 'x'", 1, 17, "syntax error"},
		{";", 0, 0, "there is no SQL"},
	}
	for _, format := range []table.Format{table.JSON, table.Parquet} {
		for _, tt := range tests {
			err := db.Print(t.Context(), &strings.Builder{}, format, tt.sql)
			e, ok := errors.AsType[*query.StatementError](err)
			if !ok {
				t.Errorf("%s: got %v, want a StatementError", tt.sql, err)
				continue
			}
			if e.Line != tt.line || e.Column != tt.column || !strings.Contains(e.Text, tt.want) {
				t.Errorf("%s: got %v, want %s (line %d, column %d)", tt.sql, e, tt.want, tt.line, tt.column)
			}
		}
	}
}

func TestParquetIsReadBack(t *testing.T) {
	run := evaltest.Beta(t)
	db := evaltest.DB(t, run)
	var b bytes.Buffer
	if err := db.Print(t.Context(), &b, table.Parquet, "CREATE TEMP TABLE n AS SELECT 1 AS one; SELECT e.*, n.one FROM episodes e, n ORDER BY episode_id"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rows.parquet"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := query.Open(t.Context(), []query.Input{{Dir: dir, Run: store.Run{RunID: "x"}}}, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	sql := "SELECT * FROM " + quoted(dir, "rows.parquet") + " ORDER BY episode_id"
	want := printed(t, db, table.JSONL, "SELECT *, 1 AS one FROM episodes ORDER BY episode_id")
	if diff := gocmp.Diff(want, printed(t, reader, table.JSONL, sql)); diff != "" {
		t.Errorf("(-asked +read back):\n%s", diff)
	}
	if err := db.Print(t.Context(), &b, table.Parquet, "CREATE TABLE z AS SELECT 1"); err == nil {
		t.Error("a statement without rows was written as parquet")
	}
}

func TestConcurrentQueries(t *testing.T) {
	db := evaltest.DB(t, evaltest.Alpha(t), evaltest.Beta(t))
	const sql = "SELECT r.name, g.mean, g.cost_usd FROM groups g JOIN runs r USING (run_id) ORDER BY ALL"
	want := printed(t, db, table.JSON, sql)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if diff := gocmp.Diff(want, printed(t, db, table.JSON, sql)); diff != "" {
				t.Errorf("(-alone +together):\n%s", diff)
			}
		})
	}
	wg.Wait()
}

func TestCancelInterrupts(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	want := errors.New("enough")
	for _, format := range []table.Format{table.JSON, table.Parquet} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, want)
		err := db.Print(ctx, &strings.Builder{}, format,
			"SELECT sum(hash(a.x + b.x)::HUGEINT) AS s FROM range(10000000) a(x), range(10000000) b(x)")
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", format, err, want)
		}
		cancel()
	}
	if got := printed(t, db, table.CSV, "SELECT 1 AS a"); got != "a\n1\n" {
		t.Errorf("after the interrupt: got %q", got)
	}
}

func TestCloseRemovesItsFolder(t *testing.T) {
	dir := t.TempDir()
	db, err := query.Open(t.Context(), nil, query.Options{TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	result, err := db.Query(t.Context(), "SELECT count(*) AS n FROM episodes")
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil || row[0] != int64(0) {
			t.Errorf("got %v, %v, want 0", row, err)
		}
	}
	if err := errors.Join(result.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if left := listing(t, dir); len(left) != 1 {
		t.Errorf("left behind: %v", left[1:])
	}
}

func TestSelectIsStrict(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	type row struct {
		A int `json:"a"`
	}
	got, err := query.Select[row](t.Context(), db, "SELECT ?::INTEGER AS a", 7)
	if err != nil || len(got) != 1 || got[0].A != 7 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := query.Select[row](t.Context(), db, "SELECT 1 AS a, 2 AS b"); err == nil {
		t.Error("a column without a field was passed over")
	}
}

func TestRecordedRowsAreWhole(t *testing.T) {
	db := evaltest.DB(t, evaltest.Beta(t))
	got, err := query.Recorded[store.SequenceRow](t.Context(), db, "sequences", "")
	if err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	if diff := gocmp.Diff([]byte{0, 255, 1}, got[0].RoutedExperts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	attempts, err := query.Recorded[store.AttemptRow](t.Context(), db, "all_attempts", "ORDER BY started_at LIMIT ?", 1)
	if err != nil || len(attempts) != 1 {
		t.Fatal(len(attempts), err)
	}
	if got, want := attempts[0].StartedAt, evaltest.Start().UnixMicro(); got != want {
		t.Errorf("started at %d, want %d", got, want)
	}
}

// TestRefresh: a database sees what a run has recorded since it was opened, and
// keeps what SQL has made.
func TestRefresh(t *testing.T) {
	run := evaltest.Growing(t)
	db := evaltest.DB(t, run.Run)
	const sql = "SELECT count(*) AS n, count(DISTINCT t.meta_level) AS kept FROM episodes e JOIN tasks t USING (run_id, task_id, occurrence)"
	if got := printed(t, db, table.CSV, "CREATE TABLE mine AS SELECT 5 AS five; SELECT count(*) AS n FROM episodes"); got != "n\n0\n" {
		t.Fatalf("before: got %q", got)
	}
	for i, want := range []string{"n,kept\n1,1\n", "n,kept\n2,2\n", "n,kept\n3,2\n"} {
		run.Write(i)
		view, err := store.OpenView(run.Dir, db.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Refresh(t.Context(), []query.Input{query.FromView(view, run.Dir)}); err != nil {
			t.Fatal(err)
		}
		if got := printed(t, db, table.CSV, sql); got != want {
			t.Errorf("after %d: got %q, want %q", i+1, got, want)
		}
	}
	if got := printed(t, db, table.CSV, "FROM mine"); got != "five\n5\n" {
		t.Errorf("a table of before: got %q", got)
	}
}
