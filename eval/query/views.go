package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// view is a name and the query behind it.
type view struct{ name, sql string }

// create makes or replaces the view.
func (v view) create() string {
	return fmt.Sprintf("CREATE OR REPLACE VIEW %s AS\n%s;\n", v.name, strings.TrimSpace(v.sql))
}

// views are all views over the inputs, each after those that it reads.
func views(inputs []Input, journal journalSource) []view {
	all := make([]view, 0, 32) // enough
	for _, r := range relations() {
		all = append(all, view{"all_" + r.name, everything(r, inputs, journal)})
	}
	all = append(all, view{"runs", runsOf(inputs)})
	all = append(all, derived()...)
	for _, name := range []string{"messages", "tool_calls", "spans", "rewards"} {
		all = append(all, view{name, ofCurrent(name)})
	}
	return all
}

// everything is all rows of a table: an empty relation that fixes names, types
// and order of the columns, the parts, and the journal.
func everything(r relation, inputs []Input, journal journalSource) string {
	branches := []string{nothing(r)}
	var files []string
	for _, in := range inputs {
		files = append(files, in.Files[r.name]...)
	}
	if len(files) > 0 {
		// Folders named a=b are no partitions.
		branches = append(branches, fmt.Sprintf(
			"SELECT * FROM read_parquet(%s, union_by_name=true, hive_partitioning=false)", pathList(files)))
	}
	if len(journal.files) > 0 {
		branches = append(branches, journal.rows(r))
	}
	return strings.Join(branches, "\nUNION ALL BY NAME\n")
}

func nothing(r relation) string {
	columns := make([]string, len(r.columns))
	for i, c := range r.columns {
		columns[i] = fmt.Sprintf("NULL::%s AS %s", c.typ, identifier(c.name))
	}
	return "SELECT " + strings.Join(columns, ", ") + " WHERE false"
}

// runsOf is the view of what is known of the runs besides their rows, as
// constants.
func runsOf(inputs []Input) string {
	branches := append(make([]string, 0, 1+len(inputs)), nothing(relation{columns: runColumns()}))
	for _, in := range inputs {
		branches = append(branches, "SELECT "+strings.Join(runValues(in), ", "))
	}
	return strings.Join(branches, "\nUNION ALL\n")
}

func runColumns() []column {
	text := func(name string) column { return column{name: name, typ: "VARCHAR"} }
	return []column{
		text("run_id"), text("dir"), text("name"), text("state"),
		{name: "created_at", typ: timestamp},
		{name: "ended_at", typ: timestamp},
		text("version"), text("commit"), text("host"), text("shard"),
		{name: "seed", typ: "BIGINT"},
		{name: "samples", typ: "INTEGER"},
		{name: "total", typ: "BIGINT"},
		text("identity_hash"), text("config_hash"),
		{name: "config", typ: "JSON"},
		{name: "tags", typ: "VARCHAR[]"},
		text("note"),
	}
}

// runValues are the values of runColumns.
func runValues(in Input) []string {
	r := in.Run
	return []string{
		literal(r.RunID), literal(in.Dir), literal(r.Name), literal(r.State),
		instant(&r.CreatedAt), instant(r.EndedAt),
		literal(r.Version), literal(r.Commit), literal(r.Host), orNull(r.Shard),
		strconv.FormatInt(r.Seed, 10), count(r.Samples), count(r.Total),
		literal(r.IdentityHash), literal(r.ConfigHash),
		orNull(string(r.Config)) + "::JSON",
		literals(r.Tags) + "::VARCHAR[]",
		orNull(r.Note),
	}
}

// instant is a time, or null where it is not known.
func instant(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "NULL"
	}
	return fmt.Sprintf("make_timestamptz(%d)", t.UnixMicro())
}

// count is a number of which 0 says that it is not known.
func count(n int) string {
	if n == 0 {
		return "NULL"
	}
	return strconv.Itoa(n)
}

func orNull(s string) string {
	if s == "" {
		return "NULL"
	}
	return literal(s)
}

// ofCurrent is the table's rows of the episodes in the view of that name.
func ofCurrent(table string) string {
	return fmt.Sprintf("SELECT * FROM all_%s SEMI JOIN _current USING (run_id, episode_id, attempt)", table)
}
