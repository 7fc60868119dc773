package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// Prompt renders the first messages of a task: the few-shot examples as pairs
// of user and assistant, then the task through the template. It is read-only
// and may be shared by goroutines.
type Prompt struct {
	template template
	columns  []map[string]string // of each source
	shots    [][]dataset.Message // of each source
	place    string              // of the template
	hash     string
}

// Prompt prepares the run's prompt and reads the few-shot examples. An error
// is a config error: an example that lacks a column, too few of them, or a
// file that has changed since the config was loaded.
func (r *Run) Prompt() (*Prompt, error) {
	t, err := parseTemplate(r.Template)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Place("prompt"), err)
	}
	p := &Prompt{template: t, place: r.Place("prompt"), hash: r.promptHash()}
	for i := range r.Tasks {
		p.columns = append(p.columns, r.Tasks[i].columns())
	}
	if err := p.draw(r); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *Run) promptHash() string {
	fields := []string{r.Template, r.Agent.SystemPrompt}
	if f := r.FewShot; f != nil {
		fields = append(fields, f.SHA256, strconv.Itoa(f.N), strconv.FormatInt(f.Seed, 10))
	}
	return dataset.ID("prompt", fields...)
}

// Hash identifies template, system prompt and few-shot examples.
func (p *Prompt) Hash() string { return p.hash }

// Columns lists the columns that a source's rows must have for the template,
// sorted.
func (p *Prompt) Columns(source int) []string {
	var columns []string
	for _, part := range p.template {
		if part.column != "" {
			columns = append(columns, p.column(source, part.column))
		}
	}
	slices.Sort(columns)
	return slices.Compact(columns)
}

// column is the row's column that a name in the template stands for: what the
// source maps goes before the row's own columns.
func (p *Prompt) column(source int, name string) string {
	if column, ok := p.columns[source][name]; ok && column != "" {
		return column
	}
	return name
}

// Messages renders a task. The error names the template's place and the
// column that the task's row lacks.
func (p *Prompt) Messages(t dataset.Task) ([]dataset.Message, error) {
	input := t.Input
	if len(p.template) > 0 {
		s, err := p.render(t.Source, t.Row)
		if err != nil {
			return nil, fmt.Errorf("%s: task %s: %w", p.place, t.ID, err)
		}
		input = s
	}
	messages := slices.Clone(p.shots[t.Source])
	return append(messages, dataset.Message{Role: dataset.User, Content: input}), nil
}

func (p *Prompt) render(source int, row map[string]any) (string, error) {
	var b strings.Builder
	for _, part := range p.template {
		b.WriteString(part.text)
		if part.column == "" {
			continue
		}
		v, ok := dataset.Lookup(row, p.column(source, part.column))
		if !ok {
			return "", fmt.Errorf("the row has no column %q; write {{ and }} for braces that are text", p.column(source, part.column))
		}
		b.WriteString(dataset.Text(v))
	}
	return b.String(), nil
}

// template is text with columns between; it is empty where the input column
// is the prompt.
type template []templatePart

type templatePart struct {
	text   string // before the column
	column string // "": none
}

func parseTemplate(s string) (template, error) {
	var t template
	var literal strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c != '{' && c != '}':
			literal.WriteByte(c)
		case i+1 < len(s) && s[i+1] == c: // {{ or }}
			literal.WriteByte(c)
			i++
		case c == '}':
			return nil, fmt.Errorf("the } at byte %d closes nothing; write }} for a brace that is text", i)
		default:
			end := strings.IndexAny(s[i+1:], "{}\n")
			if end < 0 || s[i+1+end] != '}' {
				return nil, fmt.Errorf("the { at byte %d is not closed; write {{ for a brace that is text", i)
			}
			column := s[i+1 : i+1+end]
			if column == "" {
				return nil, fmt.Errorf("the {} at byte %d names no column; write {{}} for braces that are text", i)
			}
			t = append(t, templatePart{text: literal.String(), column: column})
			literal.Reset()
			i += 1 + end
		}
	}
	if literal.Len() > 0 {
		t = append(t, templatePart{text: literal.String()})
	}
	return t, nil
}
