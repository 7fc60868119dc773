package main

import (
	"fmt"
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

// renderLive is the live display: a few lines, none wider than width.
func renderLive(s progressState, width int, color bool) []string {
	lines := []line{
		append(bar(s, width), span{text: strings.Join(head(s), "  ")}),
		{{text: strings.Join(spent(s.Tally), "  ")}},
		outcomes(s.Tally),
	}
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

// renderPlain is the same on one line, for a log.
func renderPlain(s progressState) string {
	parts := append(head(s), spent(s.Tally)...)
	for _, o := range outcomes(s.Tally) {
		parts = append(parts, strings.TrimSpace(o.text))
	}
	parts = append(parts, endpointTexts(s.Endpoints)...)
	if s.Note != "" {
		parts = append(parts, s.Note)
	}
	return strings.Join(parts, ", ")
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

// spent tells tokens and cost.
func spent(t store.Tally) []string {
	in := t.Usage.Total() - t.Usage.Output
	return []string{
		fmt.Sprintf("%s tokens in, %s out", amount(in), amount(t.Usage.Output)),
		"cost " + costText(t),
	}
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
