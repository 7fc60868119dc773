package query

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// PrintViews writes the views over the inputs as SQL that any DuckDB client
// runs. Paths stay as the inputs have them, so relative ones hold in the
// folder from which the runs were named; a journal is read where it lies in its
// run. The views show what is recorded now: print them again for a run that
// goes on.
func PrintViews(w io.Writer, inputs []Input) error {
	if err := distinct(inputs); err != nil {
		return err
	}
	journal, err := scanJournal(inputs)
	if err != nil {
		return err
	}
	journal.lenient, journal.files = true, originals(inputs)
	var b strings.Builder
	b.WriteString("-- Views over runs of Talaria. In the duckdb shell: .read views.sql\n")
	b.WriteString("-- Look at \"episodes\" first. Names that begin with an underscore are steps on the way.\n")
	b.WriteString("SET TimeZone = 'UTC';\n")
	if len(journal.files) > 0 {
		b.WriteString("\n" + view{journalName, journal.records()}.create())
	}
	for _, v := range views(inputs, journal) {
		b.WriteString("\n" + v.create())
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the views: %w", err)
	}
	return nil
}

// originals are the segments that the copies of the journal were made from.
func originals(inputs []Input) []string {
	var paths []string
	for _, in := range inputs {
		for _, copied := range in.Journal {
			paths = append(paths, filepath.Join(in.Dir, "journal", filepath.Base(copied)))
		}
	}
	return paths
}
