package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/table"
)

// editor reads lines from a person. Prompt returns errNoLine where the line was
// given up, and io.EOF at the end.
type editor interface {
	Prompt(prompt string) (string, error)
	Remember(line string)
	Complete(words []string)
	Close() error
}

// errNoLine says that a line was given up by Ctrl-C.
var errNoLine = errors.New("the line was given up")

// shell is the interactive prompt of query.
type shell struct {
	std    *stdio
	runs   []string
	db     *query.DB
	edit   editor
	format table.Format
	seen   string // how the runs stood when the views were made
	sql    string // a statement that has not ended yet
	quit   bool
}

const (
	shellPrompt = "talaria> "
	shellMore   = "    ...> "
)

// runShell talks to a person until they leave.
func runShell(ctx context.Context, opts queryOptions, std *stdio) error {
	if opts.Format == table.Parquet {
		return usageErrorf("talaria query", "--format parquet is for files: give the SQL after the runs, and send the output to one")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	ignored := make(chan os.Signal, 1) // never read: Ctrl-C ends a statement, and never the shell
	signal.Notify(ignored, os.Interrupt)
	defer signal.Stop(ignored)
	return withSQL(ctx, opts.Runs, func(db *query.DB) error {
		edit := newLineEditor(std)
		s := &shell{std: std, runs: opts.Runs, db: db, edit: edit, format: opts.Format}
		return errors.Join(s.talk(ctx), edit.Close())
	})
}

func (s *shell) talk(ctx context.Context) error {
	_, err := fmt.Fprintf(s.std.out, "SQL over %s. End a statement with ; and see .help\n", plural(len(s.runs), "run", "runs"))
	s.complete(ctx)
	for err == nil && !s.quit {
		var line string
		if line, err = s.read(ctx); err == nil {
			s.take(ctx, line)
		} else if errors.Is(err, errNoLine) {
			s.sql, err = "", nil
		}
	}
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		_, err = fmt.Fprintln(s.std.out)
	}
	return err
}

// read waits for a line, or for the end of ctx.
func (s *shell) read(ctx context.Context) (string, error) {
	prompt := shellPrompt
	if s.sql != "" {
		prompt = shellMore
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1) // room for one that nobody waits for any more
	go func() {
		line, err := s.edit.Prompt(prompt)
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		return a.line, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// take runs what ends with the line.
func (s *shell) take(ctx context.Context, line string) {
	if word := strings.TrimSpace(line); s.sql == "" && (strings.HasPrefix(word, ".") || strings.HasPrefix(word, `\`)) {
		s.edit.Remember(word)
		s.command(ctx, strings.Fields(word))
		return
	}
	var statements []string
	statements, s.sql = query.Split(s.sql + "\n" + line)
	if len(statements) > 0 {
		s.edit.Remember(query.OneLine(strings.Join(statements, "; ")) + ";")
	}
	for _, sql := range statements {
		if !s.run(ctx, sql) {
			s.sql = ""
			return
		}
	}
}

// run runs one statement, which Ctrl-C ends, and reports whether it could.
func (s *shell) run(ctx context.Context, sql string) bool {
	ctx, stop := interruptible(ctx)
	defer stop()
	err := s.refresh(ctx)
	if err == nil {
		err = s.print(ctx, sql)
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, dataset.ErrInterrupted):
		s.std.err.printf("interrupted\n")
	default:
		s.std.err.printf("%s\n", strings.TrimSpace(err.Error()))
	}
	return false
}

// mostRows is how many rows a table on a terminal has: more are for a file.
const mostRows = 1000

func (s *shell) print(ctx context.Context, sql string) (err error) {
	began := time.Now()
	result, err := s.db.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	rows, n, cut := result.Rows, 0, false
	if s.format == table.Table {
		rows = func(yield func([]any, error) bool) {
			for row, err := range result.Rows {
				if n == mostRows && err == nil {
					cut = true
					return
				}
				n++
				if !yield(row, err) {
					return
				}
			}
		}
	}
	if err := table.Write(s.std.out, s.format, query.Header(result.Columns), rows); err != nil {
		return err
	}
	if s.format != table.Table {
		return nil
	}
	text := plural(n, "row", "rows")
	if cut {
		text = "the first " + comma(mostRows) + " rows; .mode csv prints all"
	}
	_, err = fmt.Fprintf(s.std.out, "(%s, %s)\n", text, time.Since(began).Round(time.Millisecond))
	return err
}

// refresh makes the views show what has been recorded since.
func (s *shell) refresh(ctx context.Context) error {
	temp, err := os.MkdirTemp(s.db.TempDir(), "journal-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer os.RemoveAll(temp) //nolint:errcheck // of copies only; closing the database removes the parent
	views, err := openViewsIn(temp, s.runs)
	if err != nil {
		return err
	}
	now := standing(views)
	if now == s.seen {
		return nil
	}
	if err := s.db.Refresh(ctx, inputs(views, s.runs)); err != nil {
		return orDamage(err, views)
	}
	s.seen = now
	return nil
}

// standing is how runs stand, as a text that differs when they do.
func standing(views []*store.View) string {
	var b strings.Builder
	for _, v := range views {
		fmt.Fprintf(&b, "%s %s %d", v.Run.RunID, v.Run.State, len(v.Parts))
		for _, path := range v.Journal {
			if info, err := os.Stat(path); err == nil {
				fmt.Fprintf(&b, " %s %d", path[len(path)-min(len(path), 24):], info.Size())
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// complete teaches the editor the names of views and columns.
func (s *shell) complete(ctx context.Context) {
	type row struct {
		Name string `json:"name"`
	}
	rows, err := query.Select[row](ctx, s.db, `SELECT DISTINCT name FROM (
		SELECT column_name AS name FROM duckdb_columns() WHERE NOT internal AND NOT starts_with(table_name, '_')
		UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')) ORDER BY name`)
	if err != nil {
		return // a prompt without completion is a prompt
	}
	words := strings.Fields("SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN USING FILTER HAVING DISTINCT WITH DESCRIBE SUMMARIZE count avg sum min max quantile_cont")
	for _, r := range rows {
		words = append(words, r.Name)
	}
	for _, c := range shellCommands() {
		words = append(words, c.name)
	}
	slices.Sort(words)
	s.edit.Complete(slices.Compact(words))
}
