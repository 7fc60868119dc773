//go:build cgo

package query

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

const defaultMemory = "4GB"

// DB answers SQL over runs. It is safe for concurrent use; a statement sees
// what others created only if it is no temporary table.
type DB struct {
	pool *sql.DB
	dir  string // what DuckDB spills, and results on their way out
}

// Open makes an in-memory database with the views over the inputs. SQL in it
// reads files of these runs and nothing else, loads no extension, and cannot
// change a setting. The caller closes the DB.
func Open(ctx context.Context, inputs []Input, opts Options) (*DB, error) {
	inputs, journal, err := look(inputs)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(opts.TempDir, "talaria-query-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for what does not fit into memory: %w", err)
	}
	db := &DB{dir: dir}
	if err := db.connect(ctx, opts, setup(inputs, journal, dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("opening DuckDB: %w", plainError(err)), db.Close())
	}
	return db, nil
}

// look makes the inputs absolute and scans their journals.
func look(inputs []Input) ([]Input, journalSource, error) {
	if err := distinct(inputs); err != nil {
		return nil, journalSource{}, err
	}
	inputs, err := absolute(inputs)
	if err != nil {
		return nil, journalSource{}, err
	}
	journal, err := scanJournal(inputs)
	return inputs, journal, err
}

// Refresh makes the views show the inputs, which are the same runs looked at
// anew. Their journals lie below [DB.TempDir], and may be removed afterwards.
// What SQL has made meanwhile stays.
func (db *DB) Refresh(ctx context.Context, inputs []Input) error {
	inputs, journal, err := look(inputs)
	if err != nil {
		return err
	}
	statements := []string{"DROP TABLE IF EXISTS " + journalName}
	if len(journal.files) > 0 {
		statements = []string{journal.table()}
	}
	for _, v := range views(inputs, journal) {
		statements = append(statements, v.create())
	}
	if err := db.run(ctx, statements); err != nil {
		return fmt.Errorf("looking at the runs again: %w", plainError(interrupted(ctx, err)))
	}
	return nil
}

// TempDir is a folder whose files SQL can read and that Close removes.
func (db *DB) TempDir() string { return db.dir }

func (db *DB) connect(ctx context.Context, opts Options, statements []string) error {
	connector, err := duckdb.NewConnector(dsn(opts, db.dir), nil)
	if err != nil {
		return err
	}
	db.pool = sql.OpenDB(connector)
	return db.run(ctx, statements)
}

func (db *DB) run(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := db.pool.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// dsn holds the settings that can only be made before the database is open.
func dsn(opts Options, dir string) string {
	settings := url.Values{
		"autoinstall_known_extensions": {"false"},
		"autoload_known_extensions":    {"false"},
		"allow_community_extensions":   {"false"},
		"memory_limit":                 {cmp.Or(opts.MemoryLimit, defaultMemory)},
		"temp_directory":               {filepath.Join(dir, "spill")},
	}
	if opts.Threads > 0 {
		settings.Set("threads", strconv.Itoa(opts.Threads))
	}
	return "?" + settings.Encode()
}

// setup is the statements that make the views and lock the database. The order
// matters: the journal is read before files outside of the runs are closed off,
// and nothing can be set once the configuration is locked.
func setup(inputs []Input, journal journalSource, dir string) []string {
	statements := []string{
		"SET GLOBAL TimeZone = 'UTC'",
		"SET GLOBAL parquet_metadata_cache = true",
	}
	if len(journal.files) > 0 {
		statements = append(statements, journal.table())
	}
	statements = append(statements,
		"SET GLOBAL allowed_directories = "+literals(readableDirs(inputs, dir)),
		"SET GLOBAL enable_external_access = false",
	)
	for _, v := range views(inputs, journal) {
		statements = append(statements, v.create())
	}
	return append(statements, "SET GLOBAL lock_configuration = true")
}

// readableDirs are the runs and our own folder.
func readableDirs(inputs []Input, own string) []string {
	dirs := append(make([]string, 0, 1+len(inputs)), own+string(filepath.Separator))
	for _, in := range inputs {
		dirs = append(dirs, in.Dir+string(filepath.Separator))
	}
	return dirs
}

// absolute makes all paths absolute: what may be read must not depend on the
// working folder.
func absolute(inputs []Input) ([]Input, error) {
	all := make([]Input, len(inputs))
	for i, in := range inputs {
		var err error
		if in.Dir, err = filepath.Abs(in.Dir); err != nil {
			return nil, fmt.Errorf("finding run %s: %w", in.Dir, err)
		}
		if in.Journal, err = absolutePaths(in.Journal); err != nil {
			return nil, err
		}
		files := make(map[string][]string, len(in.Files))
		for name, paths := range in.Files {
			if files[name], err = absolutePaths(paths); err != nil {
				return nil, err
			}
		}
		in.Files = files
		all[i] = in
	}
	return all, nil
}

func absolutePaths(paths []string) ([]string, error) {
	all := make([]string, len(paths))
	for i, p := range paths {
		var err error
		if all[i], err = filepath.Abs(p); err != nil {
			return nil, fmt.Errorf("finding %s: %w", p, err)
		}
	}
	return all, nil
}

// Close ends all queries and removes what was written.
func (db *DB) Close() error {
	var err error
	if db.pool != nil {
		err = db.pool.Close()
	}
	if rm := os.RemoveAll(db.dir); rm != nil {
		err = errors.Join(err, fmt.Errorf("removing %s: %w", db.dir, rm))
	}
	return err
}

// plainError is DuckDB's message as one line, without the picture of the place
// but with the names that it proposes.
func plainError(err error) error {
	var failure *duckdb.Error
	if !errors.As(err, &failure) {
		return err
	}
	message, _, _ := strings.Cut(failure.Msg, pictureStart)
	message = oneLine(message)
	if aboutFiles(failure.Type) {
		return &UnreadableError{Text: message}
	}
	return errors.New(message)
}

// aboutFiles tells that an error may come from what was read; all others are
// about the statement.
func aboutFiles(kind duckdb.ErrorType) bool {
	switch kind {
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeInvalid, duckdb.ErrorTypeInvalidInput,
		duckdb.ErrorTypeSerialization, duckdb.ErrorTypeInternal, duckdb.ErrorTypeFatal:
		return true
	default:
		return false
	}
}
