package terminal

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// report is what the model reads of a command: the output as it is, then what
// else there is to know, each on a line of its own in brackets. It is plain
// text: output within JSON would be escaped, which costs tokens and is hard to
// read. The exit code has a place of its own in the record.
func report(command string, r sandbox.Result) env.ToolResult {
	output, omitted := output(r)
	notes := notes(command, r, output == "")
	if len(notes) > 0 && output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return env.ToolResult{
		Content: output + strings.Join(notes, "\n"), Omitted: omitted, IsError: r.TimedOut, ExitCode: &r.ExitCode,
	}
}

func notes(command string, r sandbox.Result, silent bool) []string {
	var notes []string
	switch {
	case r.TimedOut:
		notes = append(notes, fmt.Sprintf("[stopped: the command did not end in time; its timeout can be at most %d seconds]", MaxTimeout))
	case r.ExitCode != 0:
		notes = append(notes, "["+strings.TrimSuffix(fmt.Sprintf("exit code %d: %s", r.ExitCode, meaning(command, r.ExitCode)), ": ")+"]")
	case silent:
		notes = append(notes, "[no output]")
	}
	if r.StateRolledBack {
		notes = append(notes, "[the shell did not end by itself: directory, variables and functions are as before this command]")
	}
	return notes
}

// output makes text of what a command printed, with a note where its middle is
// missing, and tells how many bytes are.
func output(r sandbox.Result) (text string, omitted int64) {
	if r.Omitted == 0 {
		return readable(r.Output), 0
	}
	head, tail := wholeEnd(r.Output[:r.Gap]), wholeBegin(r.Output[r.Gap:])
	omitted = r.Omitted + int64(len(r.Output)-len(head)-len(tail))
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", readable(head), omitted, readable(tail)), omitted
}

// wholeEnd drops a character that was cut through at the end.
func wholeEnd(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// wholeBegin drops a character that was cut through at the beginning.
func wholeBegin(b []byte) []byte {
	for n := 0; n < utf8.UTFMax && n < len(b); n++ {
		if utf8.RuneStart(b[n]) {
			return b[n:]
		}
	}
	return b
}

// readable makes text of bytes: without the sequences that colour a terminal,
// and with U+FFFD for what is not UTF-8 and for NUL, which many a parser takes
// for an end.
func readable(b []byte) string {
	const escape = 0x1b
	if bytes.IndexByte(b, escape) >= 0 {
		b = sequences().ReplaceAll(b, nil)
	}
	b = bytes.ReplaceAll(b, []byte{0}, []byte{0xff})
	return string(bytes.ToValidUTF8(b, []byte("\uFFFD")))
}

// sequences finds control sequences, even if they are cut off, those with a
// text, and those of two characters.
func sequences() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])?`)
}
