package show

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/table"
)

// Options of the text. The zero value of each field is the default.
type Options struct {
	Width   int    // columns; default 100
	Attempt *int32 // the attempt to show turn by turn; default: the current one
}

const defaultWidth = 100

// WriteJSON prints the whole trajectory as one JSON object.
func (t *Trajectory) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(t)
}

// Write prints the trajectory for people: the episode, its attempts, and one
// of them turn by turn. Whatever a model or a tool wrote is made harmless for
// the terminal. An attempt that does not exist is an error.
func (t *Trajectory) Write(w io.Writer, opts Options) error {
	number := t.Current
	if opts.Attempt != nil {
		number = *opts.Attempt
	}
	if !t.has(number) {
		return fmt.Errorf("episode %s has no attempt %d: it has %d, numbered from 0", t.EpisodeID, number, len(t.Attempts))
	}
	p := &printer{out: bufio.NewWriter(w), width: cmp.Or(opts.Width, defaultWidth)}
	p.episode(t, t.attempt(number))
	p.attempts(t)
	p.task(t.Task)
	p.turns(t.attempt(number))
	p.rewards(t.attempt(number))
	p.children(t.Children)
	return p.out.Flush()
}

func (t *Trajectory) has(number int32) bool {
	for i := range t.Attempts {
		if t.Attempts[i].Attempt == number {
			return true
		}
	}
	return false
}

// printer writes lines.
type printer struct {
	out   *bufio.Writer
	width int
}

func (p *printer) print(s string) {
	_, _ = p.out.WriteString(s) // Flush returns the first error
}

const indent = "    "

// line prints one line of short pieces, leaving out empty ones.
func (p *printer) line(pieces ...string) {
	var full []string
	for _, s := range pieces {
		if s != "" {
			full = append(full, table.OneLine(s))
		}
	}
	if len(full) > 0 {
		p.print(strings.Join(full, "  ") + "\n")
	}
}

// block prints text of any length, indented and wrapped.
func (p *printer) block(prefix, text string) {
	if text == "" {
		return
	}
	first := indent + prefix
	rest := strings.Repeat(" ", len(first))
	for _, line := range table.Wrap(table.Safe(text), p.width-len(first)) {
		p.print(strings.TrimRight(first+line, " ") + "\n")
		first = rest
	}
}

func (p *printer) heading(s string) { p.print("\n" + s + "\n") }

func (p *printer) episode(t *Trajectory, a *Attempt) {
	p.line("episode "+t.EpisodeID, under("delegated by ", a.ParentEpisodeID))
	p.line(indent+"task "+a.TaskID, nth(a.Occurrence), "of "+a.Dataset, under("split ", a.Split))
	p.line(indent+"variant "+a.Variant, a.Model, "env "+a.Env, fmt.Sprintf("sample %d", a.Sample), fmt.Sprintf("epoch %d", a.Epoch), fmt.Sprintf("seed %d", a.Seed))
	p.line(indent+"group "+a.GroupID, "run "+a.RunID)
	p.line(fmt.Sprintf("attempt %d", a.Attempt), a.Outcome+": "+a.ExitReason, truncated(a.Truncated), "flags "+orNone(a.Flags))
	if a.Attempt == t.Current {
		p.line(indent+"reward "+value(t.Reward), passed(t.Passed), atRun(t.Reward, a.Reward), rule(a))
	} else {
		p.line(indent+"reward "+value(a.Reward), passed(a.Passed), rule(a))
	}
	p.line(indent+"cost "+cost(a), auxCost(a), fmt.Sprintf("%d requests", a.Requests),
		fmt.Sprintf("tokens %d in, %d cached, %d cache written, %d out", a.InputTokens, a.CacheReadTokens, a.CacheWriteTokens, a.OutputTokens))
	p.line(indent+"started "+clock(a.StartedAt), "took "+seconds(a.TotalMS)+":",
		part("setup", a.SetupMS), part("model", a.ModelMS), part("throttled", a.ThrottleMS), part("tools", a.ToolMS), part("scoring", a.ScoreMS), part("queued before", a.QueuedMS))
	if a.ErrorClass != nil || a.Error != nil {
		p.block("error: ", strings.Trim(deref(a.ErrorClass)+": "+deref(a.Error), ": "))
	}
	if a.Answer != nil {
		p.block("answer: ", *a.Answer)
	}
}

// attempts lists them where there is more than one.
func (p *printer) attempts(t *Trajectory) {
	if len(t.Attempts) < 2 {
		return
	}
	p.heading("attempts")
	for i := range t.Attempts {
		a := &t.Attempts[i]
		mark := " "
		if a.Attempt == t.Current {
			mark = "*"
		}
		p.line(fmt.Sprintf("  %s %d", mark, a.Attempt), a.Outcome+": "+a.ExitReason, "reward "+value(a.Reward),
			"cost "+cost(a), "started "+clock(a.StartedAt), "took "+seconds(a.TotalMS), deref(a.ErrorClass))
	}
}

func (p *printer) task(t *store.TaskRow) {
	if t == nil {
		return
	}
	p.heading("task")
	p.block("input: ", t.Input)
	p.block("target: ", t.Target)
}

func (p *printer) turns(a *Attempt) {
	spans := map[string]*store.SpanRow{}
	for i := range a.Spans {
		spans[a.Spans[i].SpanID] = &a.Spans[i]
	}
	for i := range a.Messages {
		m := &a.Messages[i]
		p.heading(p.head(m, spans[deref(m.SpanID)]))
		p.block("(thinking) ", deref(m.Reasoning))
		p.block("", m.Content)
		p.block("parts: ", deref(m.Parts))
		for j := range a.ToolCalls {
			if c := &a.ToolCalls[j]; c.Position == m.Position {
				p.call(c)
			}
		}
	}
}

// head is the line above a message: who speaks, in which turn, and what the
// call that made it took.
func (p *printer) head(m *Message, s *store.SpanRow) string {
	pieces := []string{fmt.Sprintf("[%d] %s", m.Position, m.Role)}
	add := func(format string, v any) { pieces = append(pieces, fmt.Sprintf(format, v)) }
	if m.Turn > 0 {
		add("turn %d", m.Turn)
	}
	if m.Agent != "" && m.Role != "system" {
		add("by %s", m.Agent)
	}
	if m.InjectedBy != nil {
		add("injected by %s", *m.InjectedBy)
	}
	if m.ToolName != nil {
		add("result of %s", *m.ToolName)
	}
	if m.IsError {
		add("%s", "error")
	}
	if m.FinishReason != nil {
		add("finish %s", *m.FinishReason)
	}
	if m.TruncatedBytes > 0 {
		add("%d bytes cut", m.TruncatedBytes)
	}
	if s != nil {
		pieces = append(pieces, spanPieces(s)...)
	}
	return table.OneLine(strings.Join(pieces, "  "))
}

func spanPieces(s *store.SpanRow) []string {
	pieces := []string{(time.Duration(s.DurationUS) * time.Microsecond).String()}
	if s.TTFTUS != nil {
		pieces = append(pieces, "first token after "+(time.Duration(*s.TTFTUS)*time.Microsecond).String())
	}
	if s.InputTokens != nil && s.OutputTokens != nil {
		pieces = append(pieces, fmt.Sprintf("%d in, %d out", *s.InputTokens, *s.OutputTokens))
	}
	if s.CostNanoUSD != nil {
		pieces = append(pieces, dollars(*s.CostNanoUSD))
	}
	if s.Status != "ok" {
		pieces = append(pieces, s.Status, deref(s.ErrorClass))
	}
	return pieces
}

// call prints a tool call: what the model wrote, and what became of it.
func (p *printer) call(c *store.ToolCallRow) {
	p.block("-> ", c.Name+" "+c.Arguments)
	notes := []string{fmt.Sprintf("call %d", c.CallIndex), (time.Duration(c.DurationMS) * time.Millisecond).String()}
	if c.ResultPosition != nil {
		notes = append(notes, fmt.Sprintf("result in [%d]", *c.ResultPosition))
	}
	if c.ExitCode != nil {
		notes = append(notes, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.IsError {
		notes = append(notes, "error")
	}
	if c.Repaired {
		notes = append(notes, "repaired")
	}
	if c.BlockedBy != nil {
		notes = append(notes, "blocked by "+*c.BlockedBy)
	}
	p.block("   ", strings.Join(notes, ", "))
	p.block("   ran with: ", deref(c.ArgumentsCoerced))
	p.block("   bad arguments: ", deref(c.SchemaError))
}

func (p *printer) rewards(a *Attempt) {
	if len(a.Rewards) == 0 {
		return
	}
	p.heading("rewards")
	for i := range a.Rewards {
		r := &a.Rewards[i]
		chosen := ""
		if r.Chosen {
			chosen = "chosen"
		}
		p.line(indent+r.Name, value(r.Value), passed(r.Passed), deref(r.Label), chosen, "by "+r.Source, clock(r.CreatedAt))
		p.block("  ", deref(r.Explanation))
	}
}

func (p *printer) children(children []Child) {
	if len(children) == 0 {
		return
	}
	p.heading("delegated episodes")
	for _, c := range children {
		p.line(indent+c.EpisodeID, fmt.Sprintf("attempt %d", c.Attempt), c.Outcome+": "+c.ExitReason, "reward "+value(c.Reward))
	}
}
