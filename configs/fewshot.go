package configs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/talaria-run/talaria/dataset"
)

// maxShots bounds the few-shot file, which is read as a whole.
const maxShots = 64 << 20

// draw renders the few-shot examples for each source.
func (p *Prompt) draw(r *Run) error {
	p.shots = make([][]dataset.Message, len(r.Tasks))
	if r.FewShot == nil {
		return nil
	}
	rows, err := readShots(r)
	if err != nil {
		return err
	}
	rows = drawn(rows, r.FewShot.N, r.FewShot.Seed)
	for source := range r.Tasks {
		for _, row := range rows {
			pair, err := p.pair(source, row)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", r.FewShot.Path, row.line, err)
			}
			p.shots[source] = append(p.shots[source], pair...)
		}
	}
	return nil
}

type shot struct {
	line   int
	fields map[string]any
}

func (p *Prompt) pair(source int, row shot) ([]dataset.Message, error) {
	t := p.template
	if len(t) == 0 {
		t = template{{column: "input"}}
	}
	question, err := (&Prompt{template: t, columns: p.columns}).render(source, row.fields)
	if err != nil {
		return nil, err
	}
	target := p.column(source, "target")
	answer, ok := dataset.Lookup(row.fields, target)
	if !ok || answer == nil {
		return nil, fmt.Errorf("the example has no column %q to answer with", target)
	}
	return []dataset.Message{
		{Role: dataset.User, Content: question},
		{Role: dataset.Assistant, Content: dataset.Text(answer)},
	}, nil
}

// drawn picks n rows by the rank of their hash under the seed: unlike a
// library's shuffle, that draw is the same in every release.
func drawn(rows []shot, n int, seed int64) []shot {
	rank := func(s shot) string {
		return dataset.ID("few_shot", strconv.FormatInt(seed, 10), strconv.Itoa(s.line))
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b shot) int { return bytes.Compare([]byte(rank(a)), []byte(rank(b))) })
	return rows[:n]
}

func readShots(r *Run) ([]shot, error) {
	f := r.FewShot
	data, err := readFile(f.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Place("few_shot.path"), err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("%s: %s is not the file that it was when the config was loaded", r.Place("few_shot.path"), f.Path)
	}
	var rows []shot
	line := 0
	for text := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		fields, err := decodeRow(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", f.Path, line, err)
		}
		rows = append(rows, shot{line: line, fields: fields})
	}
	if len(rows) < f.N {
		return nil, fmt.Errorf("%s: %d examples are wanted, %s has %d", r.Place("few_shot.n"), f.N, f.Path, len(rows))
	}
	return rows, nil
}

func decodeRow(text []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return nil, fmt.Errorf("not a JSON object on one line: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) || fields == nil {
		return nil, errors.New("not a JSON object on one line")
	}
	return fields, nil
}

func readFile(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxShots+1))
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	if len(data) > maxShots {
		return nil, fmt.Errorf("%s has more than %d bytes, too many for examples", path, maxShots)
	}
	return data, nil
}
