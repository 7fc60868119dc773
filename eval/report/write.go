package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/talaria-run/talaria/eval/table"
)

// Write prints the report. As a table it is for people; JSON is the Report as
// it is; JSON lines have one row each, with the name of its table; CSV has the
// table of variants alone.
func (r *Report) Write(w io.Writer, format table.Format) error {
	switch format {
	case table.Table:
		return r.writeText(w)
	case table.JSON:
		return r.writeJSON(w)
	case table.JSONL:
		return r.writeJSONL(w)
	case table.CSV:
		return r.writeCSV(w)
	default:
		return fmt.Errorf("a report cannot be printed as %q", format)
	}
}

func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (r *Report) writeJSONL(w io.Writer) error {
	var b bytes.Buffer
	err := errors.Join(
		line(&b, "total", r.Total),
		lines(&b, "runs", r.Runs),
		lines(&b, "variants", r.Variants),
		lines(&b, "sources", r.Sources),
		lines(&b, "outcomes", r.Outcomes),
		lines(&b, "unscored", r.Unscored),
		lines(&b, "failures", r.Failures),
		lines(&b, "tools", r.Tools),
		lines(&b, "turns", r.Turns),
		lines(&b, "latency", r.Latency),
		lines(&b, "time", r.Time),
	)
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

func lines[T any](b *bytes.Buffer, name string, rows []T) error {
	for _, row := range rows {
		if err := line(b, name, row); err != nil {
			return err
		}
	}
	return nil
}

func line(b *bytes.Buffer, name string, row any) error {
	fields, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("encoding a row of %s: %w", name, err)
	}
	fmt.Fprintf(b, "{\"table\":%q,%s\n", name, fields[1:])
	return nil
}

func (r *Report) writeCSV(w io.Writer) error {
	columns, _, err := flat(Variant{})
	if err != nil {
		return err
	}
	rows := make([][]any, len(r.Variants))
	for i, v := range r.Variants {
		if _, rows[i], err = flat(v); err != nil {
			return err
		}
	}
	return table.Write(w, table.CSV, columns, table.All(rows))
}

// flat is a struct as the columns and values of its JSON object. What is
// nested stays JSON.
func flat(v any) (columns []table.Column, row []any, err error) {
	object, err := json.Marshal(v)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a row: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, nil, err
		}
		columns = append(columns, table.Column{Name: fmt.Sprint(name)})
		row = append(row, scalar(raw))
	}
	return columns, row, nil
}

func scalar(raw json.RawMessage) any {
	var text string
	switch {
	case string(raw) == "null":
		return nil
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return text
	default:
		return raw
	}
}
