package query

import "strings"

// readsOnly returns an error unless the first word of a statement is one that
// begins statements which read, or which make tables and views in memory.
// EXPLAIN may run what it explains, so that is looked at too.
func readsOnly(statement string) error {
	for {
		first, rest := firstWord(statement)
		switch strings.ToLower(first) {
		case "select", "with", "from", "values", "table", "pivot", "unpivot",
			"describe", "desc", "show", "summarize",
			"create", "drop", "alter", "insert", "update", "delete":
			return nil
		case "explain", "analyze":
			statement = rest
		default:
			return errNotAllowed(statement)
		}
	}
}

func errNotAllowed(statement string) error {
	first, _ := firstWord(statement)
	return &StatementError{Text: strings.ToUpper(first) + " is not allowed: SQL here reads runs and makes tables and views in memory; " +
		"to write a file choose a format for the rows"}
}

// firstWord is the first name in SQL and what follows it. Blanks, comments and
// marks are passed over.
func firstWord(sql string) (word, rest string) {
	for i := 0; i < len(sql); {
		n, counts := token(sql[i:])
		if counts && isWord(sql[i]) {
			return sql[i : i+n], sql[i+n:]
		}
		i += n
	}
	return "", ""
}
