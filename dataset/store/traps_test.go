package store

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/talaria-run/talaria/dataset"
)

// writePart writes rows as one part and returns its files.
func writePart(tb testing.TB, rows ...*Rows) (dir string, p Part) {
	tb.Helper()
	dir = tb.TempDir()
	return dir, writePartTo(tb, osFS{}, dir, rows...)
}

func writePartTo(tb testing.TB, fsys FS, dir string, rows ...*Rows) Part {
	tb.Helper()
	for _, name := range append(Tables(), journalDir) {
		if err := fsys.Mkdir(filepath.Join(dir, name)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := writeSynced(fsys, filepath.Join(dir, manifestFile), nil); err != nil {
		tb.Fatal(err)
	}
	p, err := newPartWriter(fsys, dir, sampleRun(), nil, 0).write(&batch{rows: rows})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func openPart(tb testing.TB, dir string, p Part, table string) *parquet.File {
	tb.Helper()
	for _, f := range p.Files {
		if f.Table != table {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			tb.Fatal(err)
		}
		file, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			tb.Fatal(err)
		}
		return file
	}
	tb.Fatalf("the part has no %s", table)
	return nil
}

// TestLongTextHasNoStatistics: parquet-go writes minimum and maximum untruncated
// into the footer and into page headers. 20 messages of 2 MiB that compress to
// nothing made a file of 50 MB.
func TestLongTextHasNoStatistics(t *testing.T) {
	rows := &Rows{}
	for i := range 20 {
		long := strings.Repeat(fmt.Sprintf("the same words again %d. ", i), 2<<20/23)
		rows.Attempts = append(rows.Attempts, AttemptRow{
			TaskID: long, Error: &long, Answer: &long, Extra: long, VariantParams: long, Flags: []string{long}, Model: long,
		})
		rows.Tasks = append(rows.Tasks, TaskRow{TaskID: long, Input: long, Target: long, Params: long, Meta: map[string]any{"m": long}})
		rows.Messages = append(rows.Messages, MessageRow{Content: long, Parts: &long, Reasoning: &long, ReasoningSignature: &long, ToolName: &long})
		rows.ToolCalls = append(rows.ToolCalls, ToolCallRow{Name: long, ID: long, Arguments: long, ArgumentsCoerced: &long, SchemaError: &long})
		rows.Spans = append(rows.Spans, SpanRow{Name: long, Attrs: long, RequestID: &long})
		rows.Rewards = append(rows.Rewards, RewardRow{Name: long, Explanation: &long, Raw: &long, Label: &long})
		rows.Sequences = append(rows.Sequences, SequenceRow{TaskID: long, VerdictDetail: &long, Turns: []SequenceTurnRow{{SpanID: long, FinishReason: long}}})
	}
	_, p := writePart(t, rows)
	if len(p.Files) != len(Tables()) {
		t.Fatalf("%d files, want one for each table", len(p.Files))
	}
	for _, f := range p.Files {
		if f.Bytes > 200<<10 {
			t.Errorf("%s has %d bytes, want kilobytes", f.Name, f.Bytes)
		}
	}
}

// TestTextColumnsHaveNoBounds holds for columns that are added later, too.
func TestTextColumnsHaveNoBounds(t *testing.T) {
	rows := expectedRows(sampleRun(), sampleTrajectory(1, true))
	rows.Tasks[0].Meta = map[string]any{"word": "x"}
	dir, p := writePart(t, rows)
	for _, table := range Tables() {
		file := openPart(t, dir, p, table)
		for _, c := range file.Metadata().RowGroups[0].Columns {
			stats, name := c.MetaData.Statistics, strings.Join(c.MetaData.PathInSchema, ".")
			bounded := len(stats.MaxValue) > 0 || len(stats.MinValue) > 0
			if c.MetaData.Type == format.ByteArray && bounded && !hasBounds(name) {
				t.Errorf("%s.%s has statistics", table, name)
			}
		}
	}
}

// TestStringsArePlainStrings: the uuid tag on a string field stores the
// address of the string; nanoseconds and enums are read badly elsewhere.
func TestStringsArePlainStrings(t *testing.T) {
	for table, schema := range schemas() {
		for _, path := range schema.Columns() {
			leaf, _ := schema.Lookup(path...)
			name, kind, logical := table+"."+strings.Join(path, "."), leaf.Node.Type().Kind(), ""
			if l := leaf.Node.Type().LogicalType(); l != nil {
				logical = l.String()
			}
			allowed := []string{"", "INT(32,true)", "INT(64,true)", "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)"}
			if kind == parquet.ByteArray && path[0] != "routed_experts" {
				allowed = []string{"STRING"}
			}
			if !slices.Contains(allowed, logical) {
				t.Errorf("%s has logical type %q", name, logical)
			}
			if kind == parquet.FixedLenByteArray || kind == parquet.Int96 {
				t.Errorf("%s is a %s", name, kind)
			}
		}
	}
}

// TestTimes: a zero time is 0 and not the year 1754, and nanoseconds are cut.
func TestTimes(t *testing.T) {
	if got := micros(time.Time{}); got != 0 {
		t.Errorf("micros of no time = %d, want 0", got)
	}
	at := time.Date(2026, 8, 1, 14, 0, 0, 123456789, time.FixedZone("CEST", 2*3600))
	want := time.Date(2026, 8, 1, 12, 0, 0, 123456000, time.UTC)
	if got := fromMicros(micros(at)); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestDirtyValues: invalid UTF-8 makes DuckDB fail the whole query, JSON cannot
// hold NaN and infinities.
func TestDirtyValues(t *testing.T) {
	const bad = "a\xff\xfeb\x00c"
	nan, inf := math.NaN(), math.Inf(-1)
	tr := sampleTrajectory(1, true)
	tr.Error, tr.Answer = bad, new(string(bad))
	tr.Reward, tr.Passed = &nan, new(true)
	tr.Extra = map[string]any{"k\xff": bad, "nan": nan, "list": []any{inf, bad}, "func": func() {}}
	tr.Messages[1].Content, tr.Messages[1].Parts = bad, []byte(`not json `+bad)
	tr.Messages[2].ToolCalls[0].Arguments = bad
	tr.Spans[1].Attrs = map[string]any{"x": inf, "s": bad}
	tr.Rewards[0].Value, tr.Rewards[0].Weight, tr.Rewards[0].Explanation = &nan, &inf, bad
	tr.Sequences[0].Logprobs[10], tr.Sequences[0].Logprobs[11] = float32(inf), float32(nan)
	tr.Sequences[0].Logprobs[12] = float32(math.Inf(1))
	tr.Sequences[1].LossMask = tr.Sequences[1].LossMask[:5]
	tr.Episode.Task.Keep = map[string]any{"f": nan, "s": bad}
	tr.Episode.Task.Params = bad

	dir := filepath.Join(t.TempDir(), "run")
	s := mustCreate(t, dir, Options{})
	mustWrite(t, s, tr)
	mustClose(t, s)
	rows := allRows(t, osFS{}, dir)
	for _, text := range []string{
		*rows.Attempts[0].Error, *rows.Attempts[0].Answer, rows.Attempts[0].Extra, rows.Messages[1].Content, *rows.Messages[1].Parts,
		rows.ToolCalls[0].Arguments, rows.Spans[1].Attrs, *rows.Rewards[0].Explanation, rows.Tasks[0].Params,
	} {
		if !utf8.ValidString(text) {
			t.Errorf("%q is not valid UTF-8", text)
		}
	}
	a, seqs := rows.Attempts[0], rows.Sequences
	if a.Reward != nil || a.Passed != nil || rows.Rewards[0].Value != nil || rows.Rewards[0].Weight != nil {
		t.Errorf("reward %v, passed %v, value %v, weight %v; want nulls", a.Reward, a.Passed, rows.Rewards[0].Value, rows.Rewards[0].Weight)
	}
	if diff := cmp.Diff([]string{dataset.FlagQuarantined}, a.Flags); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float32{-math.MaxFloat32, 0, math.MaxFloat32}, seqs[0].Logprobs[10:13]); diff != "" {
		t.Errorf("logprobs (-want +got):\n%s", diff)
	}
	if seqs[0].Verdict != quarantined || *seqs[0].VerdictDetail != "non-finite logprobs" {
		t.Errorf("verdict %q (%v), want quarantined", seqs[0].Verdict, seqs[0].VerdictDetail)
	}
	if len(seqs[1].LossMask) != len(seqs[1].TokenIDs) || *seqs[1].VerdictDetail != "lists of unequal length" {
		t.Errorf("%d tokens, %d in the mask, %v", len(seqs[1].TokenIDs), len(seqs[1].LossMask), seqs[1].VerdictDetail)
	}
}

// TestRowGroupsAreBounded: the writer keeps the open row group in memory.
func TestRowGroupsAreBounded(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	byBytes, byRows := &Rows{}, &Rows{}
	for range 100 {
		byBytes.Messages = append(byBytes.Messages, MessageRow{Content: long})
	}
	for range 2*rowsPerGroup + 1 {
		byRows.Spans = append(byRows.Spans, SpanRow{})
	}
	dir, p := writePart(t, byBytes, byRows)
	if got := len(openPart(t, dir, p, tMessages).RowGroups()); got < 3 || got > 4 {
		t.Errorf("100 MiB of messages lie in %d row groups, want 3 or 4", got)
	}
	if got := len(openPart(t, dir, p, tSpans).RowGroups()); got != 3 {
		t.Errorf("%d spans lie in %d row groups, want 3", len(byRows.Spans), got)
	}
}

// TestWriterMemory writes far more than may be in memory at once.
func TestWriterMemory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, journalDir), 0o755); err != nil {
		t.Fatal(err)
	}
	table := newPartWriter(osFS{}, dir, sampleRun(), nil, 0).spot(0).tables()[2]
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools of earlier tests go with the second one
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, uint64(0)
	for i := range 120 {
		noise := make([]byte, 1<<20)
		for k := range noise {
			noise[k] = byte('a' + (k*k*7+i*k)%23)
		}
		if err := table.add(&Rows{Messages: []MessageRow{{Content: string(noise)}}}); err != nil {
			t.Fatal(err)
		}
		if i%20 == 19 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	if _, err := table.finish(); err != nil {
		t.Fatal(err)
	}
	if peak > before+80<<20 {
		t.Errorf("%d MiB in memory while 120 MiB were written", (peak-before)>>20)
	}
}

// TestDictionaryIsBounded: tool names come from a model, and a dictionary may
// grow until it panics. It ends with its row group, which is bounded by bytes.
func TestDictionaryIsBounded(t *testing.T) {
	rows := &Rows{}
	for i := range 1200 {
		rows.ToolCalls = append(rows.ToolCalls, ToolCallRow{Name: strings.Repeat(fmt.Sprintf("%06d-", i), 16<<10)})
	}
	dir, p := writePart(t, rows)
	for i, group := range openPart(t, dir, p, tToolCalls).Metadata().RowGroups {
		column := group.Columns[6].MetaData
		if column.PathInSchema[0] != "name" || column.TotalUncompressedSize > bytesPerGroup+bufferBytes {
			t.Errorf("row group %d: column %v has %d bytes", i, column.PathInSchema, column.TotalUncompressedSize)
		}
	}
	got := &Rows{}
	if err := collect(osFS{}, dir, p, tToolCalls, &got.ToolCalls); err != nil {
		t.Fatal(err)
	}
	for i := range got.ToolCalls {
		if got.ToolCalls[i].Name != rows.ToolCalls[i].Name {
			t.Fatalf("row %d has another name than was written", i)
		}
	}
}

// TestMetadataAndBloomFilters looks into the footers.
func TestMetadataAndBloomFilters(t *testing.T) {
	dir, p := writePart(t, expectedRows(sampleRun(), sampleTrajectory(1, true)))
	for _, table := range Tables() {
		file := openPart(t, dir, p, table)
		for key, want := range fileMetadata(sampleRun()) {
			if got, _ := file.Lookup(key); got != want {
				t.Errorf("%s: %s = %q, want %q", table, key, got, want)
			}
		}
		leaf, ok := file.Schema().Lookup("episode_id")
		filtered := ok && file.RowGroups()[0].ColumnChunks()[leaf.ColumnIndex].BloomFilter() != nil
		if want := table != tAttempts && table != tTasks; filtered != want {
			t.Errorf("%s: bloom filter on episode_id: %t, want %t", table, filtered, want)
		}
		for _, c := range file.Metadata().RowGroups[0].Columns {
			if c.MetaData.Codec != format.Zstd {
				t.Errorf("%s.%v is compressed with %v", table, c.MetaData.PathInSchema, c.MetaData.Codec)
			}
		}
	}
	for _, name := range []string{"logprobs", "ref_logprobs", "teacher_logprobs"} {
		leaf, _ := schemas()[tSequences].Lookup(name, "list", "element")
		if got := fmt.Sprint(leaf.Node.Encoding()); got != "BYTE_STREAM_SPLIT" {
			t.Errorf("%s is encoded as %s", name, got)
		}
	}
}
