package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/table"
)

// shellCommand is a command of the prompt that is not SQL.
type shellCommand struct {
	name  string
	alias string // "": none
	args  string
	does  string
	run   func(s *shell, ctx context.Context, args []string) error
}

func shellCommands() []shellCommand {
	return []shellCommand{
		{".tables", `\d`, "", "lists the views and what they have a row for", (*shell).tables},
		{".columns", `\d`, "VIEW", "lists the columns of a view", (*shell).columns},
		{".mode", "", strings.Join(shellModes(), "|"), "prints rows in another format, or tells which it is", (*shell).mode},
		{".runs", "", "", "lists the runs and how far they are", (*shell).listRuns},
		{".help", "", "", "prints this", (*shell).help},
		{".quit", `\q`, "", "leaves; so does Ctrl-D", (*shell).leave},
	}
}

func shellModes() []string {
	return []string{string(table.Table), string(table.JSON), string(table.JSONL), string(table.CSV)}
}

// command runs a line that begins with a dot or a backslash.
func (s *shell) command(ctx context.Context, words []string) {
	name, args := strings.TrimSuffix(words[0], ";"), words[1:]
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := s.dispatch(ctx, name, args); err != nil {
		s.std.err.printf("%v\n", err)
	}
}

func (s *shell) dispatch(ctx context.Context, name string, args []string) error {
	all := shellCommands()
	if name == ".exit" {
		name = ".quit"
	}
	i := slices.IndexFunc(all, func(c shellCommand) bool {
		return c.name == name || c.alias == name && (c.args != "") == (len(args) > 0)
	})
	if i < 0 {
		names := make([]string, len(all))
		for i, c := range all {
			names[i] = c.name
		}
		return fmt.Errorf("unknown command %s%s; .help lists them", name, didYouMean(name, names))
	}
	return all[i].run(s, ctx, args)
}

func (s *shell) help(context.Context, []string) error {
	rows := make([][]any, 0, 8)
	for _, c := range shellCommands() {
		name := c.name
		if c.alias != "" {
			name += ", " + c.alias
		}
		rows = append(rows, []any{strings.TrimSpace(name + " " + c.args), c.does})
	}
	if err := table.Write(s.std.out, table.Table, []table.Column{{Name: "command"}, {Name: "does"}}, table.All(rows)); err != nil {
		return err
	}
	_, err := fmt.Fprint(s.std.out, "Everything else is SQL, which ends with ; and may have several lines. Ctrl-C gives up a\n"+
		"line, or ends the statement that runs. Tab completes names. Rows that a run records\n"+
		"meanwhile are there for the next statement.\n")
	return err
}

func (s *shell) tables(ctx context.Context, _ []string) error {
	type row struct {
		Name string `json:"name"`
	}
	own, err := query.Select[row](ctx, s.db, "SELECT table_name AS name FROM duckdb_tables() WHERE NOT starts_with(table_name, '_') ORDER BY name")
	if err != nil {
		return err
	}
	var rows [][]any
	for _, v := range query.About() {
		rows = append(rows, []any{v.Name, v.Row})
	}
	for _, r := range own {
		rows = append(rows, []any{r.Name, "row of a table that was made here"})
	}
	return table.Write(s.std.out, table.Table, []table.Column{{Name: "view"}, {Name: "one row for each"}}, table.All(rows))
}

func (s *shell) columns(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("name one view: .columns episodes")
	}
	name := strings.Trim(args[0], `;"`)
	type row struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	rows, err := query.Select[row](ctx, s.db,
		"SELECT column_name AS name, data_type AS type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", name)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		var names []string
		for _, v := range query.About() {
			names = append(names, v.Name)
		}
		return fmt.Errorf("there is no view %q%s; .tables lists them", name, didYouMean(name, names))
	}
	cells := make([][]any, len(rows))
	for i, r := range rows {
		cells[i] = []any{r.Name, r.Type}
	}
	return table.Write(s.std.out, table.Table, []table.Column{{Name: "column"}, {Name: "type"}}, table.All(cells))
}

func (s *shell) mode(_ context.Context, args []string) error {
	switch {
	case len(args) == 0:
		_, err := fmt.Fprintln(s.std.out, s.format)
		return err
	case !slices.Contains(shellModes(), args[0]):
		return fmt.Errorf("unknown mode %q%s; want one of %s", args[0], didYouMean(args[0], shellModes()), strings.Join(shellModes(), ", "))
	}
	s.format = table.Format(args[0])
	return nil
}

func (s *shell) listRuns(ctx context.Context, _ []string) error {
	if err := s.refresh(ctx); err != nil {
		return err
	}
	return s.print(ctx, `SELECT r.name, r.dir, r.state, count(e.episode_id) AS episodes, r.total AS planned
		FROM runs r LEFT JOIN episodes e USING (run_id) GROUP BY ALL ORDER BY r.name, r.dir`)
}

func (s *shell) leave(context.Context, []string) error {
	s.quit = true
	return nil
}
