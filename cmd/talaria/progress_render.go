package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

// span is text in one colour, "" for the terminal's own.
type span struct{ text, color string }

type line []span

const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	bold   = "\x1b[1m"
	reset  = "\x1b[0m"
)

// renderLive is the live display: a few lines, none wider than width. What does
// not fit beside the rest goes on the next line.
func renderLive(s progressState, width int, color bool) []string {
	lines := fold(append(bar(s, width), plainSpans(head(s))...), width)
	lines = append(lines, fold(plainSpans(spent(s)), width)...)
	lines = append(lines, fold(results(s.Tally), width)...)
	lines = append(lines, fold(failures(s.Failures), width)...)
	lines = append(lines, variantLines(s.Variants)...)
	for i, text := range endpointTexts(s.Endpoints) {
		lines = append(lines, line{{text, limitColor(s.Endpoints[i].LimiterState)}})
	}
	if s.Note != "" {
		lines = append(lines, line{{s.Note, bold}})
	}
	rendered := make([]string, len(lines))
	for i, l := range lines {
		rendered[i] = l.render(width-1, color) // some terminals wrap after a full last column
	}
	return rendered
}

// gap stands between the parts of a line.
const gap = "  "

// plainSpans are parts without colour, with gaps between.
func plainSpans(parts []string) line {
	l := make(line, len(parts))
	for i, text := range parts {
		if i > 0 {
			text = gap + text
		}
		l[i] = span{text: text}
	}
	return l
}

// fold breaks a line before the parts that do not fit into width.
func fold(l line, width int) []line {
	if len(l) == 0 {
		return nil
	}
	lines, columns := []line{nil}, 0
	for _, s := range l {
		n := len([]rune(s.text))
		if last := len(lines) - 1; len(lines[last]) > 0 && strings.HasPrefix(s.text, gap) && columns+n > width-1 {
			lines, columns = append(lines, nil), 0
			s.text = strings.TrimPrefix(s.text, gap)
			n -= len(gap)
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], s)
		columns += n
	}
	return lines
}

// renderPlain is the same on one line, for a log, without the variants.
func renderPlain(s progressState) string {
	parts := append(head(s), spent(s)...)
	for _, l := range []line{passes(s.Tally), outcomes(s.Tally), failures(s.Failures)} {
		for _, o := range l {
			parts = append(parts, strings.TrimSpace(o.text))
		}
	}
	parts = append(parts, endpointTexts(s.Endpoints)...)
	if s.Note != "" {
		parts = append(parts, s.Note)
	}
	return strings.Join(parts, ", ")
}

// results are passes and outcomes.
func results(t store.Tally) line {
	passed, ended := passes(t), outcomes(t)
	if len(passed) > 0 {
		ended[0].text = gap + ended[0].text
	}
	return append(passed, ended...)
}

// passes is the share of passes so far, and of how many.
func passes(t store.Tally) line {
	if t.Scored == 0 {
		return nil
	}
	return line{{text: fmt.Sprintf("passed %.1f%% of %s", 100*float64(t.Passed)/float64(t.Scored), comma(t.Scored))}}
}

// shownFailures is how many classes of failures are shown.
const shownFailures = 4

// failures tells which attempts failed, the most frequent first.
func failures(counts map[string]int) line {
	classes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	var l line
	for i, class := range classes {
		prefix := gap
		if i == 0 {
			prefix = "failed attempts: "
		}
		if i == shownFailures {
			return append(l, span{gap + plural(len(classes)-i, "more class", "more classes"), red})
		}
		l = append(l, span{prefix + class + " " + comma(counts[class]), red})
	}
	return l
}

// fewVariants is how many variants have a line of their own.
const fewVariants = 5

func variantLines(variants []progressVariant) []line {
	if len(variants) < 2 || len(variants) > fewVariants {
		return nil
	}
	width := 0
	for _, v := range variants {
		width = max(width, len([]rune(v.Name)))
	}
	lines := make([]line, len(variants))
	for i, v := range variants {
		done := comma(v.Done)
		if v.Total > 0 {
			done += "/" + comma(v.Total)
		}
		text := fmt.Sprintf("%-*s  %s done", width, v.Name, done)
		if v.Scored > 0 {
			text += fmt.Sprintf("  passed %.1f%% of %s", 100*float64(v.Passed)/float64(v.Scored), comma(v.Scored))
		}
		lines[i] = line{{text: text + "  " + costText(v.Tally)}}
	}
	return lines
}

// render cuts the line at width columns; all that is shown is one column wide.
func (l line) render(width int, color bool) string {
	var b strings.Builder
	for _, s := range l {
		if width <= 0 {
			break
		}
		text := []rune(s.text)
		if len(text) > width {
			text = append(text[:width-1], '…')
		}
		width -= len(text)
		if color && s.color != "" {
			b.WriteString(s.color + string(text) + reset)
		} else {
			b.WriteString(string(text))
		}
	}
	return b.String()
}

// bar shows the share that is done where the total is known and there is room.
func bar(s progressState, width int) line {
	const longest, room = 30, 70 // columns: of the bar, and of a terminal that has space for one
	if s.Total == 0 || width < room {
		return nil
	}
	length := min(longest, width-room+8)
	full := length * min(s.Done, s.Total) / s.Total
	return line{
		{strings.Repeat("█", full), green},
		{text: strings.Repeat("░", length-full) + "  "},
	}
}

// head tells how far the run is.
func head(s progressState) []string {
	done := humanize.Comma(int64(s.Done))
	if s.Total > 0 {
		done += fmt.Sprintf("/%s (%d%%)", humanize.Comma(int64(s.Total)), 100*s.Done/s.Total)
	}
	if !s.Shard.Whole() {
		done = fmt.Sprintf("shard %s: %s", s.Shard, done)
	}
	parts := []string{done + " done", humanize.Comma(int64(s.InFlight)) + " in flight", perSecond(s.Rate)}
	if s.ETA > 0 {
		return append(parts, "ETA "+short(s.ETA))
	}
	return append(parts, short(s.Elapsed)+" elapsed")
}

func perSecond(rate float64) string {
	switch {
	case rate == 0 || rate >= 10:
		return fmt.Sprintf("%.0f/s", rate)
	case rate >= 1:
		return fmt.Sprintf("%.1f/s", rate)
	default:
		return fmt.Sprintf("%.1f/min", 60*rate)
	}
}

// short is a duration to the second, from an hour on to the minute.
func short(d time.Duration) string {
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

// spent tells tokens and cost, of what there may be.
func spent(s progressState) []string {
	in := s.Usage.Total() - s.Usage.Output
	tokens := fmt.Sprintf("%s tokens in, %s out", amount(in), amount(s.Usage.Output))
	if s.TokensPerSecond >= 1 {
		tokens += " at " + amount(int64(s.TokensPerSecond)) + "/s"
	}
	cost := "cost " + costText(s.Tally)
	if s.Budget.CostNanoUSD > 0 {
		cost += " of " + dollars(s.Budget.CostNanoUSD)
	}
	parts := []string{tokens, cost}
	if s.Budget.Tokens > 0 {
		parts = append(parts, "budget "+amount(s.Usage.Total())+" of "+amount(s.Budget.Tokens)+" tokens")
	}
	return parts
}

// amount is n to a few digits: 999, 1.23k, 45.67M.
func amount(n int64) string {
	if n < 1000 {
		return humanize.Comma(n)
	}
	value, prefix := humanize.ComputeSI(float64(n))
	return humanize.FtoaWithDigits(value, 2) + prefix
}

// costText says what is not known of the cost: unknown is never zero.
func costText(t store.Tally) string {
	switch {
	case t.CostUnknown == 0:
		return dollars(t.CostKnown)
	case t.CostKnown == 0:
		return "unknown"
	default:
		return fmt.Sprintf("%s + unknown of %s attempts", dollars(t.CostKnown), humanize.Comma(int64(t.CostUnknown)))
	}
}

// dollars is nano-dollars in cents, below ten cents in hundredths of a cent.
func dollars(nano int64) string {
	usd := float64(nano) / 1e9
	if usd != 0 && usd < 0.1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return "$" + humanize.FormatFloat("#,###.##", usd)
}

// outcomes tells how many episodes ended how.
func outcomes(t store.Tally) line {
	l := line{{"model " + humanize.Comma(int64(t.Episodes[dataset.OutcomeModel])), green}}
	for _, o := range shownOutcomes()[1:] {
		if n := t.Episodes[o]; n > 0 {
			l = append(l, span{fmt.Sprintf("  %s %s", o, humanize.Comma(int64(n))), outcomeColor(o)})
		}
	}
	if t.Unscored > 0 {
		l = append(l, span{"  unscored " + humanize.Comma(int64(t.Unscored)), yellow})
	}
	return l
}

func outcomeColor(o dataset.Outcome) string {
	if o == dataset.OutcomeTask || o == dataset.OutcomeInfra {
		return red
	}
	return yellow
}

// shownEndpoints is how many endpoints have room in a display.
const shownEndpoints = 8

// endpointTexts tells of each endpoint what it has to do and what bounds that.
func endpointTexts(all []endpointLive) []string {
	texts := make([]string, 0, shownEndpoints)
	for _, e := range all[:min(len(all), shownEndpoints)] {
		text := "requests " + e.text()
		if len(all) > 1 {
			text = e.Endpoint + ": " + e.text()
		}
		texts = append(texts, text)
	}
	return texts
}

// limitColor marks an endpoint that bears less than it may get.
func limitColor(s model.LimiterState) string {
	switch {
	case s.Down:
		return red
	case s.Pause > 0, s.Reason == model.ReasonRefused, s.Reason == model.ReasonTimeouts, s.Reason == model.ReasonLatency:
		return yellow
	}
	return ""
}
