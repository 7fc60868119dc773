package store

import (
	"maps"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// Tables are the names of the tables, each a folder of the run directory.
func Tables() []string {
	return []string{tAttempts, tTasks, tMessages, tToolCalls, tSpans, tRewards, tSequences}
}

const (
	tAttempts  = "attempts"
	tTasks     = "tasks"
	tMessages  = "messages"
	tToolCalls = "tool_calls"
	tSpans     = "spans"
	tRewards   = "rewards"
	tSequences = "sequences"
)

const (
	// rowsPerGroup and bytesPerGroup bound a row group: the writer keeps its
	// compressed pages and its dictionaries in memory, whose values may come
	// from a model, and a reader that looks for one episode decodes all of it.
	// (The library's own bound of a dictionary is looked at between pages only,
	// and a page of indices holds more rows than a group.)
	rowsPerGroup  = 16 << 10
	bytesPerGroup = 32 << 20
	bloomBits     = 10 // per value: about one false positive in a hundred
)

// hasBounds reports whether a text column keeps its statistics: ids of ours
// and our own few words. All other text has none, because parquet-go does not
// truncate them: a long message would stand in the footer several times.
func hasBounds(column string) bool {
	switch column {
	case "run_id", "episode_id", "group_id", "task_hash", "variant_hash",
		"outcome", "exit_reason", "role", "kind", "status", "verdict", "source":
		return true
	}
	return false
}

// writerOptions are the options with which every file of a table is written.
// metadata is the same in all files of a run.
func writerOptions(schema *parquet.Schema, table string, codec compress.Codec, metadata map[string]string) []parquet.WriterOption {
	options := []parquet.WriterOption{
		schema,
		parquet.Compression(codec),
		parquet.MaxRowsPerRowGroup(rowsPerGroup),
	}
	for _, path := range schema.Columns() {
		leaf, ok := schema.Lookup(path...)
		if !ok || leaf.Node.Type().Kind() != parquet.ByteArray || len(path) == 1 && hasBounds(path[0]) {
			continue
		}
		options = append(options, parquet.SkipPageBounds(path...), parquet.SkipPageStatistics(path...))
	}
	if table != tAttempts && table != tTasks {
		options = append(options, parquet.BloomFilters(parquet.SplitBlockFilter(bloomBits, "episode_id")))
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		options = append(options, parquet.KeyValueMetadata(key, metadata[key]))
	}
	return options
}

// fileMetadata is the key-value metadata of every file of a run.
func fileMetadata(run Run) map[string]string {
	return map[string]string{
		"talaria.schema_version": strconv.Itoa(SchemaVersion),
		"talaria.run_id":         run.RunID,
		"talaria.config_hash":    run.ConfigHash,
		"talaria.version":        run.Version,
	}
}

// schemaOf is the schema of a table's row type, named after the table.
func schemaOf[T any](table string) *parquet.Schema {
	var row T
	return parquet.NewSchema(table, parquet.SchemaOf(row))
}

// orderedGroup is a group whose fields keep their order.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

func (g orderedGroup) Fields() []parquet.Field { return g.fields }

// tasksSchema is the schema of a part of the tasks table: the columns of
// TaskRow, then the kept ones.
func tasksSchema(meta *metaColumns) *parquet.Schema {
	fields := slices.Clone(parquet.SchemaOf(TaskRow{}).Fields())
	extra := parquet.Group{}
	for _, name := range meta.names() {
		extra[metaPrefix+name] = meta.types[name].node()
	}
	fields = append(fields, extra.Fields()...) // sorted by name
	return parquet.NewSchema(tTasks, orderedGroup{fields: fields})
}
