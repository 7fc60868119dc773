//go:build cgo

package query_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/evaltest"
	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/table"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func printed(t *testing.T, db *query.DB, format table.Format, sql string) string {
	t.Helper()
	var b strings.Builder
	if err := db.Print(t.Context(), &b, format, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return b.String()
}

// episode is what is computed of an episode without SQL.
type episode struct {
	RunID         string   `json:"run_id"`
	EpisodeID     string   `json:"episode_id"`
	Attempt       int      `json:"attempt"`
	AttemptCount  int      `json:"attempt_count"`
	Outcome       string   `json:"outcome"`
	Reward        *float64 `json:"reward"`
	Passed        *bool    `json:"passed"`
	RewardAtRun   *float64 `json:"reward_at_run"`
	CostUSD       *float64 `json:"cost_usd"`
	TreeCost      *float64 `json:"tree_cost_usd"`
	TreeCostKnown float64  `json:"tree_cost_known_usd"`
}

// count goes through what was recorded, one attempt after the other.
func count(run *evaltest.Run) []episode {
	attempts := map[string][]*dataset.Trajectory{}
	for _, tr := range run.Trajectories {
		attempts[tr.Episode.ID] = append(attempts[tr.Episode.ID], tr)
	}
	all := make([]episode, 0, len(attempts))
	for id, trs := range attempts {
		current := trs[len(trs)-1]
		for _, tr := range trs {
			if o := tr.Outcome(); o != dataset.OutcomeInfra && o != dataset.OutcomeOperator {
				current = tr
			}
		}
		e := episode{
			RunID: run.ID, EpisodeID: id, Attempt: current.Episode.Attempt, AttemptCount: len(trs),
			Outcome: string(current.Outcome()), Reward: current.Reward, Passed: current.Passed, RewardAtRun: current.Reward,
			CostUSD: dollars(current.Books.Cost()),
		}
		for _, late := range run.Late {
			if late.EpisodeID == id && late.Attempt == e.Attempt {
				passed := *late.Reward.Value >= 1
				e.Reward, e.Passed = late.Reward.Value, &passed
			}
		}
		known, complete := spent(trs)
		e.TreeCostKnown = float64(known) / 1e9
		if complete {
			e.TreeCost = &e.TreeCostKnown
		}
		all = append(all, e)
	}
	return all
}

func spent(trs []*dataset.Trajectory) (known int64, complete bool) {
	complete = true
	for _, tr := range trs {
		childKnown, childComplete := spent(tr.Children)
		known += tr.Books.CostKnown + childKnown
		complete = complete && childComplete && tr.Books.Cost() != nil
	}
	return known, complete
}

func dollars(nano *int64) *float64 {
	if nano == nil {
		return nil
	}
	usd := float64(*nano) / 1e9
	return &usd
}

func TestEpisodesAreWhatWasRecorded(t *testing.T) {
	alpha, beta := evaltest.Alpha(t), evaltest.Beta(t)
	db := evaltest.DB(t, alpha, beta)
	want := append(count(alpha), count(beta)...)
	slices.SortFunc(want, func(a, b episode) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.EpisodeID, b.EpisodeID))
	})
	got, err := query.Select[episode](t.Context(), db, `
		SELECT run_id, episode_id, attempt, attempt_count, outcome, reward, passed, reward_at_run,
			cost_usd, tree_cost_usd, tree_cost_known_usd
		FROM episodes ORDER BY run_id, episode_id`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestViews holds the views that are computed against a golden file; the
// numbers in it were checked by hand.
func TestViews(t *testing.T) {
	db := evaltest.DB(t, evaltest.Alpha(t), evaltest.Beta(t))
	var b bytes.Buffer
	for _, sql := range []string{
		"SELECT * EXCLUDE (dir) FROM runs ORDER BY name",
		"SELECT r.name, s.* EXCLUDE (run_id, variant_hash) FROM task_stats s JOIN runs r USING (run_id) ORDER BY ALL",
		"SELECT r.name, g.* EXCLUDE (run_id, group_id, variant_hash) FROM groups g JOIN runs r USING (run_id) ORDER BY ALL",
		"SELECT variant, task_id, sample, reward, cost_usd, root_episode_id = parent_episode_id AS direct FROM children ORDER BY ALL",
		"SELECT * EXCLUDE (run_id) FROM tasks ORDER BY run_id, task_id",
		"SELECT * EXCLUDE (run_id, episode_id, group_id) FROM sequences ORDER BY task_id, reward",
		"SELECT count(*), count(DISTINCT episode_id) FROM messages",
		"SELECT count(*), count(DISTINCT episode_id) FROM all_messages",
		"SELECT count(*) FROM tool_calls", "SELECT count(*) FROM all_tool_calls",
		"SELECT count(*) FROM spans", "SELECT count(*) FROM all_spans",
		"SELECT count(*) FROM rewards", "SELECT count(*) FROM all_rewards",
	} {
		fmt.Fprintf(&b, "-- %s\n%s\n", sql, printed(t, db, table.JSONL, sql))
	}
	golden(t, "views.golden", b.Bytes())
}

// TestJournalAndPartsAgree reads the same rows while they are in the journal
// and when they are in parts.
func TestJournalAndPartsAgree(t *testing.T) {
	run := evaltest.Beta(t)
	live := evaltest.DB(t, run)
	copied := filepath.Join(t.TempDir(), "closed")
	if err := os.CopyFS(copied, os.DirFS(run.Dir)); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(copied, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if in := evaltest.Input(t, copied); len(in.Journal) > 0 {
		t.Fatal("the closed run has a journal")
	}
	closed := evaltest.DB(t, &evaltest.Run{Dir: copied})
	for _, name := range store.Tables() {
		for _, sql := range []string{"SELECT * FROM all_%s ORDER BY ALL", "DESCRIBE all_%s"} {
			sql = fmt.Sprintf(sql, name)
			want, got := printed(t, closed, table.JSONL, sql), printed(t, live, table.JSONL, sql)
			if want == "" {
				t.Errorf("%s: the fixture has no row", sql)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-parts +journal):\n%s", sql, diff)
			}
		}
	}
}

// TestEmptyRunHasEveryColumn: a question about a table without rows has an
// answer, of the same types as ever.
func TestEmptyRunHasEveryColumn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "empty")
	s, err := store.Create(dir, store.Run{RunID: "empty"}, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	empty, full := evaltest.DB(t, &evaltest.Run{Dir: dir}), evaltest.DB(t, evaltest.Alpha(t))
	for _, name := range relations(t, full) {
		types := "SELECT column_name, column_type FROM (DESCRIBE " + name + ") WHERE NOT starts_with(column_name, 'meta_')"
		want, got := printed(t, full, table.JSONL, types), printed(t, empty, table.JSONL, types)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-full +empty):\n%s", name, diff)
		}
		if rows := printed(t, empty, table.JSONL, "FROM "+name); name != "runs" && rows != "" {
			t.Errorf("%s has rows: %s", name, rows)
		}
	}
}

func relations(t *testing.T, db *query.DB) []string {
	t.Helper()
	type row struct {
		Name string `json:"name"`
	}
	rows, err := query.Select[row](t.Context(), db, "SELECT name FROM (SHOW TABLES) WHERE name <> '_journal'")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	if len(names) < 20 {
		t.Fatalf("there are %d views: %v", len(names), names)
	}
	return names
}

// TestTornJournal: a record that is not whole was never acknowledged.
func TestTornJournal(t *testing.T) {
	run := evaltest.Beta(t)
	torn := filepath.Join(t.TempDir(), "torn")
	if err := os.CopyFS(torn, os.DirFS(run.Dir)); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(torn, "journal", "*.zst"))
	if err != nil || len(segments) == 0 {
		t.Fatal("the run has no journal", err)
	}
	last := segments[len(segments)-1]
	b, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(last, b[:len(b)-7], 0o644); err != nil { // into the late reward
		t.Fatal(err)
	}
	const sql = "SELECT count(*) AS n, count(reward) AS scored FROM episodes"
	got := []string{
		printed(t, evaltest.DB(t, run), table.CSV, sql),
		printed(t, evaltest.DB(t, &evaltest.Run{Dir: torn}), table.CSV, sql),
	}
	want := []string{"n,scored\n3,3\n", "n,scored\n3,2\n"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("whole, then torn (-want +got):\n%s", diff)
	}
}

// TestPrintedViewsAnswerAlike runs the printed SQL in a DuckDB of its own.
func TestPrintedViewsAnswerAlike(t *testing.T) {
	alpha, beta := evaltest.Alpha(t), evaltest.Beta(t)
	t.Chdir(filepath.Dir(alpha.Dir))
	inputs := []query.Input{evaltest.Input(t, "alpha"), evaltest.Input(t, beta.Dir)}
	var views strings.Builder
	if err := query.PrintViews(&views, inputs); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(views.String(), alpha.Dir) {
		t.Error("a run that was named by a relative path is printed with an absolute one")
	}
	fresh, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, err := fresh.ExecContext(t.Context(), views.String()); err != nil {
		t.Fatal(err)
	}
	ours, err := query.Open(t.Context(), inputs, query.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	for _, name := range relations(t, ours) {
		if name == "runs" {
			continue // the folder is absolute in one
		}
		all := "SELECT CAST(to_json(x) AS VARCHAR) AS row FROM " + name + " x ORDER BY 1"
		want, got := strings.Split(printed(t, ours, table.CSV, all), "\n"), rows(t, fresh, all)
		if len(got) != len(want)-2 {
			t.Errorf("%s: printed views have %d rows, ours %d", name, len(got), len(want)-2)
		}
		for i, row := range got {
			if quoted := `"` + strings.ReplaceAll(row, `"`, `""`) + `"`; quoted != want[i+1] {
				t.Errorf("%s: printed views have %s, ours %s", name, quoted, want[i+1])
			}
		}
	}
}

func rows(t *testing.T, db *sql.DB, statement string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
