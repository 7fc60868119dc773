//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/query"
)

// formatsOptions say how large the run is that is kept in three formats.
type formatsOptions struct {
	Episodes int
	Rounds   int
	Docs     string // pages with the questions
}

// kept is one run in one format, open for questions.
type kept struct {
	format string
	bytes  int64
	db     *query.DB
	took   [][]time.Duration // of each question, of each round
}

func runFormats(ctx context.Context, args []string) (err error) {
	var o formatsOptions
	flags := flag.NewFlagSet("formats", flag.ContinueOnError)
	flags.IntVar(&o.Episodes, "episodes", 5_000, "episodes of three model calls and two tool calls")
	flags.IntVar(&o.Rounds, "rounds", 3, "rounds")
	flags.StringVar(&o.Docs, "docs", "docs/querying.md,docs/duckdb.md", "pages that hold the questions, where they exist")
	if err := flags.Parse(args); err != nil {
		return err
	}
	questions, err := readQuestions(strings.Split(o.Docs, ","))
	if err != nil {
		return err
	}
	w, err := openWorkshop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	all, err := keep(ctx, w, o.Episodes)
	for _, k := range all {
		defer func() { err = errors.Join(err, k.db.Close()) }()
	}
	if err != nil {
		return err
	}
	if err := ask(ctx, all, questions, o.Rounds); err != nil {
		return err
	}
	printFormats(all, questions, o)
	return nil
}

// readQuestions collects the SQL of the pages.
func readQuestions(pages []string) ([]string, error) {
	block := regexp.MustCompile("(?s)```sql\n(.*?)```")
	var questions []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			if sql := found[1]; !slices.Contains(questions, sql) && asks(sql) {
				questions = append(questions, sql)
			}
		}
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("no SQL in %s: run this in the root of the repository", strings.Join(pages, ", "))
	}
	return questions, nil
}

// asks tells questions over one run from SQL that has to be adapted first.
func asks(sql string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	return slices.Contains([]string{"SELECT", "WITH", "FROM"}, strings.TrimSpace(first)) &&
		!strings.Contains(sql, "read_parquet") && !strings.Contains(sql, "meta_")
}

// keep makes a run and keeps it as Parquet, as JSON lines and as those
// compressed.
func keep(ctx context.Context, w *workshop, episodes int) ([]*kept, error) {
	run, err := recordRun(ctx, w, episodes)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.path("lines/journal"), 0o700); err != nil {
		return nil, err
	}
	view, err := store.OpenView(run, w.dir)
	if err != nil {
		return nil, err
	}
	if err := writeLines(ctx, view, w); err != nil {
		return nil, err
	}
	parquet := &kept{format: "Parquet", bytes: partBytes(view)}
	if parquet.db, err = query.Open(ctx, []query.Input{query.FromView(view, run)}, query.Options{}); err != nil {
		return nil, err
	}
	all := []*kept{parquet}
	for _, name := range []string{linesName, linesName + ".zst"} {
		k, err := openLines(ctx, w, view.Run, name)
		if err != nil {
			return all, err
		}
		all = append(all, k)
	}
	return all, nil
}

func recordRun(ctx context.Context, w *workshop, episodes int) (dir string, err error) {
	if err := w.tasks(episodes, 540); err != nil {
		return "", err
	}
	s, err := w.serve(ctx, lab.Script{Turns: 2, ReplyBytes: 400})
	if err != nil {
		return "", err
	}
	defer s.stop()
	if err := w.write("formats.yaml", harnessConfig(64)); err != nil {
		return "", err
	}
	dir = w.path("formats")
	_, err = w.run(ctx, "run", w.path("formats.yaml"), "--base-url", s.url, "--out", dir, "--quiet")
	return dir, err
}

func partBytes(view *store.View) (n int64) {
	for _, p := range view.Parts {
		for _, f := range p.Files {
			n += f.Bytes
		}
	}
	return n
}

const linesName = "run.jsonl"

// writeLines writes the run again, one line with all rows of it for each
// episode, as the journal has them: plain, and as one zstd stream.
func writeLines(ctx context.Context, view *store.View, w *workshop) error {
	again := w.path("again")
	st, err := store.Create(again, view.Run, store.Options{PartBytes: 1 << 50, PartRows: 1 << 40, PartAge: 24 * time.Hour})
	if err != nil {
		return err
	}
	trs, err := trajectories(view)
	for batch := range slices.Chunk(trs, batchSize) {
		err = cmp.Or(err, st.Write(ctx, batch))
	}
	if err == nil {
		err = copyJournal(again, w)
	}
	return errors.Join(err, st.Close())
}

func copyJournal(run string, w *workshop) error {
	view, err := store.OpenView(run, w.dir)
	if err != nil {
		return err
	}
	plain, err := os.Create(w.path(filepath.Join("lines/journal", linesName)))
	if err != nil {
		return err
	}
	packed, err := os.Create(plain.Name() + ".zst")
	if err != nil {
		return errors.Join(err, plain.Close())
	}
	stream, err := zstd.NewWriter(packed)
	for _, path := range view.Journal {
		err = cmp.Or(err, unpack(path, io.MultiWriter(plain, stream)))
	}
	return errors.Join(err, stream.Close(), packed.Close(), plain.Close())
}

func unpack(path string, to io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	frames, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer frames.Close()
	_, err = io.Copy(to, frames)
	return err
}

// openLines makes the views of a run over its lines.
func openLines(ctx context.Context, w *workshop, run store.Run, name string) (*kept, error) {
	input := query.Input{Dir: w.path("lines"), Run: run}
	info, err := os.Stat(w.path(filepath.Join("lines/journal", name)))
	if err != nil {
		return nil, err
	}
	db, err := query.Open(ctx, []query.Input{input}, query.Options{})
	if err != nil {
		return nil, err
	}
	input.Journal = []string{w.path("lines/journal/" + linesName + ".zst")}
	var views strings.Builder
	if err := query.PrintViews(&views, []query.Input{input}); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	sql := strings.ReplaceAll(views.String(), linesName+".zst", name)
	sql = strings.ReplaceAll(sql, "SET TimeZone = 'UTC';", "") // it is set
	result, err := db.Query(ctx, sql)
	if err == nil {
		err = result.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making views over %s: %w", name, err), db.Close())
	}
	return &kept{format: name[len("run"):], bytes: info.Size(), db: db}, nil
}

// ask asks every question in each format in turn.
func ask(ctx context.Context, all []*kept, questions []string, rounds int) error {
	for _, k := range all {
		k.took = make([][]time.Duration, len(questions))
	}
	for range rounds {
		for q, sql := range questions {
			for _, k := range all {
				took, err := timed(ctx, k.db, sql)
				if err != nil {
					return fmt.Errorf("%s: %w\n%s", k.format, err, sql)
				}
				k.took[q] = append(k.took[q], took)
			}
		}
	}
	return nil
}

func timed(ctx context.Context, db *query.DB, sql string) (time.Duration, error) {
	begin := time.Now()
	result, err := db.Query(ctx, sql)
	if err != nil {
		return 0, err
	}
	for _, failed := range result.Rows {
		err = cmp.Or(err, failed)
	}
	return time.Since(begin), errors.Join(err, result.Close())
}

func printFormats(all []*kept, questions []string, o formatsOptions) {
	fmt.Printf("%d episodes of three model calls and two tool calls\n\n", o.Episodes)
	for _, k := range all {
		fmt.Printf("%-12s %6d bytes per episode   %5.2f times Parquet\n",
			k.format, k.bytes/int64(o.Episodes), float64(k.bytes)/float64(all[0].bytes))
	}
	fmt.Printf("\nquestions, median of %d rounds, in ms and as multiples of Parquet:\n", o.Rounds)
	for q, sql := range questions {
		base := median(all[0].took[q])
		fmt.Printf("%8.1f", milliseconds(base))
		for _, k := range all[1:] {
			took := median(k.took[q])
			fmt.Printf("  %8.0f (%4.0f x)", milliseconds(took), float64(took)/float64(base))
		}
		fmt.Printf("   %s\n", shortened(sql))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func shortened(sql string) string {
	words := strings.Join(strings.Fields(sql), " ")
	if len(words) > 70 {
		words = words[:70] + "..."
	}
	return words
}
