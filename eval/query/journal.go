package query

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// minObject is DuckDB's default for the longest line of a JSON file.
const minObject = 16 << 20

// journalSource are journal files and what has to be known of their lines
// before SQL can read them.
type journalSource struct {
	files   []string
	longest int                 // bytes of the longest line
	meta    map[string]metaType // kept columns of the tasks in them
	lenient bool                // the files may end in a torn frame
}

// metaType is the type of a kept column, as far as the values seen tell.
type metaType string

const (
	metaUnknown metaType = ""
	metaBool    metaType = "BOOLEAN"
	metaInt     metaType = "BIGINT"
	metaFloat   metaType = "DOUBLE"
	metaText    metaType = "VARCHAR"
)

// scanJournal reads the journal files of all inputs once.
func scanJournal(inputs []Input) (journalSource, error) {
	s := journalSource{meta: map[string]metaType{}}
	for _, in := range inputs {
		for _, path := range in.Journal {
			s.files = append(s.files, path)
			if err := s.scan(path); err != nil {
				return s, fmt.Errorf("reading journal %s: %w", path, err)
			}
		}
	}
	return s, nil
}

func (s *journalSource) scan(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	frames, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer frames.Close()
	lines := bufio.NewReaderSize(frames, 1<<20)
	var line []byte
	for {
		piece, err := lines.ReadSlice('\n')
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.longest = max(s.longest, len(line))
		if err := s.scanMeta(line); err != nil {
			return err
		}
		line = line[:0]
	}
}

// scanMeta notes the kept columns in a line. Text cannot look like the marks
// that it looks for, since a quote within a JSON string is escaped.
func (s *journalSource) scanMeta(line []byte) error {
	if !bytes.Contains(line, []byte(`"meta":{`)) {
		return nil
	}
	_, after, _ := bytes.Cut(line, []byte(`"tasks":`))
	var tasks []struct {
		Meta map[string]any `json:"meta"`
	}
	dec := json.NewDecoder(bytes.NewReader(after))
	dec.UseNumber()
	if err := dec.Decode(&tasks); err != nil {
		return err
	}
	for _, t := range tasks {
		for name, value := range t.Meta {
			s.meta[name] = s.meta[name].with(value)
		}
	}
	return nil
}

// with is the type that holds t's values and v.
func (t metaType) with(v any) metaType {
	var of metaType
	switch v := v.(type) {
	case nil:
		return t
	case bool:
		of = metaBool
	case json.Number:
		of = metaInt
		if _, err := v.Int64(); err != nil {
			of = metaFloat
		}
	default:
		of = metaText
	}
	switch {
	case t == metaUnknown || t == of:
		return of
	case t == metaInt && of == metaFloat, t == metaFloat && of == metaInt:
		return metaFloat
	default:
		return metaText
	}
}

// journalName is the relation of what the journal holds: a list of rows for
// each table. Open makes a table of it, since every scan of JSON costs seconds;
// printed SQL makes a view.
const journalName = "_journal"

// table makes a table of the records.
func (s journalSource) table() string {
	return "CREATE OR REPLACE TABLE " + journalName + " AS " + s.records()
}

// records selects the journal's records as they are.
func (s journalSource) records() string {
	tables := relations()
	columns := make([]string, len(tables))
	for i, r := range tables {
		typ := structOf(r.columns)
		if r.name == "tasks" && len(s.meta) > 0 {
			typ = strings.TrimSuffix(typ, ")") + `, "meta" JSON)`
		}
		columns[i] = literal(r.name) + ": " + literal(typ+"[]")
	}
	return fmt.Sprintf("SELECT * FROM read_json(%s, format='newline_delimited', maximum_object_size=%d, ignore_errors=%t,\n  columns={%s})",
		pathList(s.files), max(s.longest+1024, minObject), s.lenient, strings.Join(columns, ", "))
}

// rows selects a table's rows of the journal.
func (s journalSource) rows(r relation) string {
	fields := "*"
	var meta []string
	if r.name == "tasks" && len(s.meta) > 0 {
		fields, meta = "* EXCLUDE (meta)", s.metaColumns()
	}
	var replaced []string
	for _, c := range r.columns {
		if e := c.fromJournal(); e != "" {
			replaced = append(replaced, e)
		}
	}
	if len(replaced) > 0 {
		fields += " REPLACE (" + strings.Join(replaced, ", ") + ")"
	}
	fields = strings.Join(append([]string{fields}, meta...), ", ")
	return fmt.Sprintf("SELECT %s FROM (SELECT unnest(%s, max_depth := 2) FROM %s)", fields, r.name, journalName)
}

func (s journalSource) metaColumns() []string {
	names := slices.Sorted(maps.Keys(s.meta))
	columns := make([]string, len(names))
	for i, name := range names {
		pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		typ := cmp.Or(s.meta[name], metaText)
		columns[i] = fmt.Sprintf("json_extract_string(meta, %s)::%s AS %s", literal(pointer), typ, identifier("meta_"+name))
	}
	return columns
}
