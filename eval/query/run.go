//go:build cgo

package query

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/talaria-run/talaria/eval/table"
)

// Result is the rows of a statement, to be read once.
type Result struct {
	Columns []Column
	conn    *sql.Conn
	rows    *sql.Rows
	kinds   []kind
}

// Query runs the statements in text one after the other and returns the rows
// of the last. Statements read runs and make tables and views in memory; any
// other is refused. Cancelling ctx interrupts it. The caller closes the Result.
func (db *DB) Query(ctx context.Context, text string) (*Result, error) {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return nil, plainError(interrupted(ctx, err))
	}
	result, err := query(ctx, conn, text)
	if err != nil {
		return nil, errors.Join(plainError(interrupted(ctx, err)), conn.Close())
	}
	return result, nil
}

func query(ctx context.Context, conn *sql.Conn, text string) (*Result, error) {
	last, err := runAllButLast(ctx, conn, text)
	if err != nil {
		return nil, err
	}
	kind, err := permitted(ctx, conn, last)
	if err != nil {
		return nil, err
	}
	if kind == duckdb.STATEMENT_TYPE_SELECT {
		return selectRows(ctx, conn, last.sql)
	}
	rows, err := conn.QueryContext(ctx, last.sql)
	if err != nil {
		return nil, err
	}
	return rawResult(conn, rows)
}

// runAllButLast runs the statements before the last and returns that.
func runAllButLast(ctx context.Context, conn *sql.Conn, text string) (last statement, err error) {
	all := statements(text)
	if len(all) == 0 {
		return last, &StatementError{Text: "there is no SQL to run"}
	}
	for _, s := range all[:len(all)-1] {
		if _, err := permitted(ctx, conn, s); err != nil {
			return last, err
		}
		if _, err := conn.ExecContext(ctx, s.sql); err != nil {
			return last, err
		}
	}
	return all[len(all)-1], nil
}

// permitted returns the type of a statement, or a [StatementError] if it is
// wrong or could write outside of memory: what DuckDB may read it may also
// overwrite. The first word is looked at before DuckDB prepares it, since
// preparing an EXPORT makes a folder.
func permitted(ctx context.Context, conn *sql.Conn, s statement) (duckdb.StmtType, error) {
	if err := readsOnly(s.sql); err != nil && !hasBadSyntax(ctx, conn, s.sql) {
		return 0, err
	}
	kind, err := typeOfStatement(conn, s.sql)
	if failure, ok := errors.AsType[*duckdb.Error](err); ok && !aboutFiles(failure.Type) {
		return kind, s.mistake(failure.Msg)
	}
	if err != nil {
		return kind, err
	}
	switch kind {
	case duckdb.STATEMENT_TYPE_SELECT, duckdb.STATEMENT_TYPE_EXPLAIN, duckdb.STATEMENT_TYPE_CREATE,
		duckdb.STATEMENT_TYPE_CREATE_FUNC, duckdb.STATEMENT_TYPE_DROP, duckdb.STATEMENT_TYPE_ALTER,
		duckdb.STATEMENT_TYPE_INSERT, duckdb.STATEMENT_TYPE_UPDATE, duckdb.STATEMENT_TYPE_DELETE:
		return kind, nil
	case duckdb.STATEMENT_TYPE_MULTI: // a PIVOT over values that are not listed
		return duckdb.STATEMENT_TYPE_SELECT, nil
	default:
		return kind, errNotAllowed(s.sql)
	}
}

// hasBadSyntax parses a statement and does nothing else with it: what cannot be
// parsed can be prepared without harm.
func hasBadSyntax(ctx context.Context, conn *sql.Conn, statement string) bool {
	var kind sql.NullString
	row := conn.QueryRowContext(ctx, "SELECT json_extract_string(json_serialize_sql(?), '$.error_type')", statement)
	return row.Scan(&kind) == nil && kind.String == "parser"
}

func typeOfStatement(conn *sql.Conn, statement string) (kind duckdb.StmtType, err error) {
	err = conn.Raw(func(driverConn any) error {
		prepared, err := driverConn.(*duckdb.Conn).Prepare(statement)
		if err != nil {
			return err
		}
		kind, err = prepared.(*duckdb.Stmt).StatementType()
		return errors.Join(err, prepared.Close())
	})
	return kind, err
}

func selectRows(ctx context.Context, conn *sql.Conn, statement string) (*Result, error) {
	columns, err := describe(ctx, conn, statement)
	if err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, readable(statement, columns))
	if err != nil {
		return nil, err
	}
	kinds := make([]kind, len(columns))
	for i, c := range columns {
		kinds[i] = kindOf(c.Type)
	}
	return &Result{Columns: columns, conn: conn, rows: rows, kinds: kinds}, rows.Err()
}

// describe asks for the columns of a SELECT without running it.
func describe(ctx context.Context, conn *sql.Conn, statement string) (columns []Column, err error) {
	describe := fmt.Sprintf("SELECT column_name, column_type FROM (DESCRIBE\n%s\n)", statement) //nolint:gosec // G201: running SQL is the purpose
	rows, err := conn.QueryContext(ctx, describe)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c Column
		if err := rows.Scan(&c.Name, &c.Type); err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

// rawResult is for what is no SELECT: plans, counts.
func rawResult(conn *sql.Conn, rows *sql.Rows) (*Result, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	r := &Result{conn: conn, rows: rows, kinds: make([]kind, len(types))}
	for _, t := range types {
		r.Columns = append(r.Columns, Column{Name: t.Name(), Type: t.DatabaseTypeName()})
	}
	return r, rows.Err()
}

// Rows yields the rows: see [table.Rows] for the types of the values.
func (r *Result) Rows(yield func([]any, error) bool) {
	row := make([]any, len(r.Columns))
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}
	for r.rows.Next() {
		if err := r.rows.Scan(into...); err != nil {
			yield(nil, plainError(err))
			return
		}
		for i, k := range r.kinds {
			row[i] = k.value(row[i])
		}
		if !yield(row, nil) {
			return
		}
	}
	if err := r.rows.Err(); err != nil {
		yield(nil, plainError(err))
	}
}

// Close frees the rows.
func (r *Result) Close() error { return errors.Join(r.rows.Close(), r.conn.Close()) }

// Print runs the statements in text and writes the rows of the last to w.
func (db *DB) Print(ctx context.Context, w io.Writer, format table.Format, text string) error {
	if format == table.Parquet {
		return db.printParquet(ctx, w, text)
	}
	result, err := db.Query(ctx, text)
	if err != nil {
		return err
	}
	err = table.Write(w, format, Header(result.Columns), result.Rows)
	return errors.Join(err, result.Close())
}

func (db *DB) printParquet(ctx context.Context, w io.Writer, text string) error {
	dir, err := os.MkdirTemp(db.dir, "result-")
	if err != nil {
		return fmt.Errorf("making a folder for the result: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // Close removes the parent
	path := filepath.Join(dir, "result.parquet")
	if err := db.copyTo(ctx, path, text); err != nil {
		return plainError(interrupted(ctx, err))
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	_, err = io.Copy(w, f)
	return err
}

func (db *DB) copyTo(ctx context.Context, path, text string) error {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // back to the pool
	last, err := runAllButLast(ctx, conn, text)
	if err != nil {
		return err
	}
	kind, err := permitted(ctx, conn, last)
	if err != nil {
		return err
	}
	if kind != duckdb.STATEMENT_TYPE_SELECT {
		return errors.New("only the rows of a SELECT can be written as parquet")
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("COPY (\n%s\n) TO %s (FORMAT parquet)", last.sql, literal(path)))
	return err
}

// jsonRows runs a SELECT and yields each row as a JSON object.
func (db *DB) jsonRows(ctx context.Context, statement string, args []any, yield func(json.RawMessage) error) error {
	asJSON := fmt.Sprintf("SELECT CAST(to_json(q) AS VARCHAR) FROM (\n%s\n) q", statement) //nolint:gosec // G201: running SQL is the purpose
	rows, err := db.pool.QueryContext(ctx, asJSON, args...)
	if err != nil {
		return plainError(interrupted(ctx, err))
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if err := yield(json.RawMessage(finite(text))); err != nil {
			return err
		}
	}
	return rows.Err()
}

// interrupted prefers the cause of a cancelled ctx over DuckDB's word for it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
