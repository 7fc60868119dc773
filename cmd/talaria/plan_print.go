package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/eval/table"
)

func (r *planReport) print(std *stdio, format string) error {
	if format == "json" {
		enc := json.NewEncoder(std.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	var b bytes.Buffer
	for _, part := range []func(*bytes.Buffer) error{
		r.printHead, r.printChecks, r.printVariants, r.printSources, r.printCells, r.printBasis, r.printPrompts,
	} {
		if err := part(&b); err != nil {
			return err
		}
	}
	_, err := std.out.Write(b.Bytes())
	return err
}

func (r *planReport) printHead(w *bytes.Buffer) error {
	what := "begins " + r.Dir
	switch {
	case r.Dir == "":
		what = "would not begin"
	case r.Resumes:
		what = "goes on with " + r.Dir
	}
	_, err := fmt.Fprintf(w, "%s %s; this is its plan, and nothing runs\n", table.OneLine(r.Config), table.OneLine(what))
	return err
}

func (r *planReport) printChecks(w *bytes.Buffer) error {
	fmt.Fprint(w, "\nChecks\n")
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Check))
	}
	for _, c := range r.Checks {
		state := "ok  "
		if !c.OK {
			state = "BAD "
		}
		detail := strings.ReplaceAll(table.Safe(c.Detail), "\n", "\n"+strings.Repeat(" ", width+8))
		fmt.Fprintf(w, "  %s %-*s  %s\n", state, width, c.Check, detail)
	}
	return nil
}

// printVariants has a column for each swept key but the model's, which is there
// anyhow.
func (r *planReport) printVariants(w *bytes.Buffer) error {
	keys := map[string]bool{}
	for _, v := range r.Variants {
		for key := range v.Params {
			if key != "agent.model" {
				keys[key] = true
			}
		}
	}
	swept := slices.Sorted(maps.Keys(keys))
	columns := []table.Column{{Name: "variant"}, {Name: "model"}, {Name: "endpoint"}, {Name: "toolsets"}}
	for _, key := range swept {
		columns = append(columns, table.Column{Name: key})
	}
	if len(swept) == 0 {
		columns = append(columns, table.Column{Name: "sampling"})
	}
	rows := make([][]any, len(r.Variants))
	for i, v := range r.Variants {
		rows[i] = []any{v.Variant, v.Model, orDash(v.Endpoint), orDash(strings.Join(v.Toolsets, ", "))}
		for _, key := range swept {
			rows[i] = append(rows[i], dataset.Text(v.Params[key]))
		}
		if len(swept) == 0 {
			rows[i] = append(rows[i], samplingText(v.Sampling))
		}
	}
	fmt.Fprint(w, "\nVariants\n")
	return table.Write(w, table.Table, columns, table.All(rows))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func samplingText(s dataset.Sampling) string {
	text, err := json.Marshal(s)
	if err != nil || string(text) == "{}" {
		return "the server's"
	}
	return string(text)
}

func (r *planReport) printSources(w *bytes.Buffer) error {
	if len(r.Sources) == 0 {
		return nil
	}
	columns := []table.Column{
		{Name: "source"},
		{Name: "path"},
		{Name: "env"},
		{Name: "tasks", Number: true},
		{Name: "bad rows", Number: true},
		{Name: "left out", Number: true},
	}
	rows := make([][]any, len(r.Sources))
	for i, s := range r.Sources {
		rows[i] = []any{s.Source, near(s.Path), s.Env, s.Tasks, s.BadRows, s.LeftOut}
	}
	fmt.Fprint(w, "\nTasks\n")
	if err := table.Write(w, table.Table, columns, table.All(rows)); err != nil {
		return err
	}
	for _, s := range r.Sources {
		for _, note := range s.Notes {
			fmt.Fprintf(w, "  %s\n", table.OneLine(note))
		}
	}
	return nil
}

// near is a path as seen from the working folder where that is below it.
func near(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func (r *planReport) printCells(w *bytes.Buffer) error {
	if len(r.Cells) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(r.Cells)+1)
	for _, c := range r.Cells {
		rows = append(rows, cellRow(c))
	}
	if len(r.Cells) > 1 {
		rows = append(rows, cellRow(r.Total))
	}
	columns := []table.Column{{Name: "variant"}, {Name: "source"}}
	for _, name := range []string{"episodes", "reused", "to run", "prompt", "longest", "tokens in", "tokens out", "cost", "time"} {
		columns = append(columns, table.Column{Name: name, Number: true})
	}
	fmt.Fprint(w, "\nEpisodes, and what those to run may use\n")
	return table.Write(w, table.Table, columns, table.All(rows))
}

func cellRow(c planCell) []any {
	prompt := amount(c.Prompt)
	if c.Source == "" {
		prompt = "-"
	}
	return []any{
		c.Variant, orDash(c.Source), comma(c.Episodes), comma(c.Reused), comma(c.ToRun), prompt, amount(c.PromptMax),
		c.TokensIn.text(amount), c.TokensOut.text(amount), c.CostNanoUSD.text(dollars), secondsText(c.ExpectedSeconds),
	}
}

// text is what is expected, else between what it lies.
func (a planAmount) text(unit func(int64) string) string {
	switch {
	case a.Expected != nil:
		return "~" + unit(*a.Expected)
	case a.Min != nil && a.Max != nil && *a.Min == *a.Max:
		return unit(*a.Min)
	case a.Min != nil && a.Max != nil:
		return unit(*a.Min) + " to " + unit(*a.Max)
	case a.Min != nil && *a.Min > 0:
		return unit(*a.Min) + " or more"
	default:
		return "unknown"
	}
}

func secondsText(s *float64) string {
	if s == nil {
		return "unknown"
	}
	return "~" + short(time.Duration(*s*float64(time.Second)))
}

// printBasis says how the numbers came about.
func (r *planReport) printBasis(w *bytes.Buffer) error {
	if len(r.Cells) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nHow this was estimated\n")
	fmt.Fprintf(w, "  prompt: the mean of %s, at about %d bytes a token. Nothing was sent. Later calls\n"+
		"    of an episode repeat it, with what was said since.\n",
		plural(r.Total.Prompts, "first request that was made", "first requests that were made"), bytesPerToken)
	for _, e := range r.Examples {
		fmt.Fprintf(w, "  ~: what %s used an episode (of %s)%s; cost at today's prices.\n", table.OneLine(e.Run), comma(e.Episodes), e.pace())
	}
	if slices.ContainsFunc(r.Cells, func(c planCell) bool { return c.Basis == byPrompts && c.ToRun > 0 }) {
		r.printBounds(w)
	}
	fmt.Fprint(w, "  Retries are not counted.\n")
	if l := r.Limits.text(); l != "" {
		fmt.Fprintf(w, "  limits.run ends it at %s.\n", l)
	}
	return nil
}

func (r *planReport) printBounds(w *bytes.Buffer) {
	fmt.Fprint(w, "  others: no finished run of these tasks and this model to go by. The least is one call an episode\n"+
		"    that replies nothing, the most is max_tokens in as many calls as limits.episode.turns allows.\n")
	if slices.ContainsFunc(r.Cells, func(c planCell) bool { return c.MaxOutput == 0 }) {
		fmt.Fprint(w, "    agent.sampling.max_tokens is not set: nothing bounds the replies.\n")
	}
}

func (e planExample) pace() string {
	if e.PerSecond == 0 {
		return ""
	}
	text := ", at its " + perSecond(e.PerSecond)
	if e.AtOnce > 0 {
		text += " with up to " + comma(e.AtOnce) + " at once"
	}
	return text
}

// text names the limits that are set, "" for none.
func (l planLimits) text() string {
	var parts []string
	if l.CostUSD > 0 {
		parts = append(parts, dollars(nanoUSD(l.CostUSD))+" ("+dollars(l.SpentNanoUSD)+" are spent)")
	}
	if l.Tokens > 0 {
		parts = append(parts, amount(l.Tokens)+" tokens ("+amount(l.SpentTokens)+" are used)")
	}
	if l.Seconds > 0 {
		parts = append(parts, short(time.Duration(l.Seconds*float64(time.Second))))
	}
	return strings.Join(parts, ", or ")
}

func (r *planReport) printPrompts(w *bytes.Buffer) error {
	for _, p := range r.Prompts {
		fmt.Fprintf(w, "\nFirst request of %s, task %s, variant %s\n", table.OneLine(p.Source), table.OneLine(p.Task),
			table.OneLine(strings.Join(p.Variants, "; ")))
		for i, m := range p.Messages {
			fmt.Fprintf(w, "\n[%d] %s\n%s", i, m.Role, indented(m.Content))
			if len(m.Parts) > 0 {
				fmt.Fprint(w, indented(string(m.Parts)))
			}
		}
		printTools(w, p.Tools)
	}
	return nil
}

func printTools(w *bytes.Buffer, tools []model.ToolSpec) {
	for _, t := range tools {
		fmt.Fprintf(w, "\ntool %s\n%s%s", t.Name, indented(t.Description), indented(string(t.Parameters)))
	}
}

// indented is text as lines of a block, harmless for a terminal.
func indented(text string) string {
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(table.Safe(strings.TrimSuffix(text, "\n")), "\n", "\n    ") + "\n"
}
