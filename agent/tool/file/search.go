package file

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// Limits of search_files.
const (
	defaultResults = 50
	maxResults     = 500
	maxContext     = 10
	maxFound       = 500     // characters of a result
	maxSearched    = 1 << 20 // bytes that a search may find
	searchTimeout  = time.Minute
)

// Values of parameters.
const (
	targetContent = "content"
	targetFiles   = "files"
	modeContent   = "content"
	modeFiles     = "files_only"
	modeCount     = "count"
)

type searchParams struct {
	Pattern string `json:"pattern"`
	Target  string `json:"target"`
	Path    string `json:"path"`
	Glob    string `json:"file_glob"`
	Limit   *int   `json:"limit"`
	Offset  *int   `json:"offset"`
	Mode    string `json:"output_mode"`
	Context *int   `json:"context"`
}

const searchSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","description":"A regular expression, or a glob with target files."},` +
	`"target":{"type":"string","enum":["content","files"],"description":"Whether to search in files or for files; default content."},` +
	`"path":{"type":"string","description":"The directory or file to search; default the current directory."},` +
	`"file_glob":{"type":"string","description":"With target content: search only files whose names match, such as *.py."},` +
	`"limit":{"type":"integer","description":"The most results to return, at most 500; default 50."},` +
	`"offset":{"type":"integer","description":"How many results to skip; default 0."},` +
	`"output_mode":{"type":"string","enum":["content","files_only","count"],"description":"With target content: return lines, which is the default, only the files that have some, or how many each has."},` +
	`"context":{"type":"integer","description":"How many lines around each match to return too, at most 10; each counts as a result."}` +
	`},"required":["pattern"],"additionalProperties":false}`

func (p *searchParams) problem() string {
	switch {
	case p.Pattern == "":
		return `parameter "pattern" is missing`
	case strings.Contains(p.Pattern+p.Path+p.Glob, "\x00"):
		return "a search cannot hold a NUL character"
	}
	return cmp.Or(
		noneOf("target", p.Target, targetContent, targetFiles),
		noneOf("output_mode", p.Mode, modeContent, modeFiles, modeCount),
		outOf("limit", p.Limit, 1, maxResults), outOf("offset", p.Offset, 0, math.MaxInt32), outOf("context", p.Context, 0, maxContext),
	)
}

// noneOf says that a word is not one of those it can be, "" if it is.
func noneOf(name, word string, words ...string) string {
	if word == "" || slices.Contains(words, word) {
		return ""
	}
	return fmt.Sprintf("parameter %q is %q: it has to be one of %s", name, word, strings.Join(words, ", "))
}

func search(ctx context.Context, box sandbox.Sandbox, p searchParams) (env.ToolResult, error) {
	p.Path = cmp.Or(p.Path, ".")
	result, err := box.Exec(ctx, sandbox.Command{Script: p.script(), Timeout: searchTimeout, MaxOutput: 2 * maxSearched})
	if err != nil {
		return env.ToolResult{}, err
	}
	text := readable(string(result.Output))
	switch {
	case result.TimedOut:
		return failed(fmt.Sprintf("the search did not end in %v: search below a narrower path", searchTimeout)), nil
	case result.ExitCode == exitNoPath:
		return failed(p.Path + ": no such file or directory"), nil
	case result.ExitCode == exitBadPattern:
		return failed("the pattern cannot be used: " + strings.TrimSpace(text)), nil
	case result.ExitCode != 0:
		return failed(fmt.Sprintf("the search failed (exit code %d): %s", result.ExitCode, strings.TrimSpace(text))), nil
	}
	return p.found(text, len(result.Output) >= maxSearched), nil
}

// found picks the results that are wanted. If there were more than could be
// taken, the last one is cut through.
func (p *searchParams) found(text string, more bool) env.ToolResult {
	lines := strings.Split(text, "\n")
	lines = lines[:len(lines)-1]
	offset := or(p.Offset, 0)
	if offset >= len(lines) {
		return env.ToolResult{Content: nothing(offset, len(lines))}
	}
	var b strings.Builder
	chars, shown := 0, 0
	for _, l := range lines[offset:min(len(lines), offset+or(p.Limit, defaultResults))] {
		if p.Path == "." {
			l = strings.TrimPrefix(l, "./")
		}
		if end := runeIndex([]byte(l), maxFound); end < len(l) {
			l = l[:end] + " [...]"
		}
		if chars += 1 + utf8.RuneCountInString(l); chars > maxText {
			break
		}
		b.WriteString(l + "\n")
		shown++
	}
	of := strconv.Itoa(len(lines))
	if more {
		of = "more than " + of
	}
	fmt.Fprintf(&b, "[results %d-%d of %s", offset+1, offset+shown, of)
	if more || offset+shown < len(lines) {
		fmt.Fprintf(&b, "; go on with offset %d", offset+shown)
	}
	return env.ToolResult{Content: b.String() + "]"}
}

func nothing(offset, total int) string {
	if total == 0 {
		return "[no match]"
	}
	return fmt.Sprintf("[there are %d results: offset %d is beyond them]", total, offset)
}

// Exit codes of a search.
const (
	exitBadPattern = 65
	exitNoPath     = 66
)

// script is the search as shell text. It runs in a subshell, so that it leaves
// nothing behind, calls programs past functions and aliases, and gives the same
// results with ripgrep as without, sorted by the bytes of the paths.
func (p *searchParams) script() string {
	search := p.byFind()
	if p.Target != targetFiles {
		search = "if command -v rg >/dev/null 2>&1; then " + p.byRipgrep() + "; else " + p.byGrep() + "; fi"
	}
	return fmt.Sprintf("(export LC_ALL=C; [ -e %s ] || exit %d; %s)", p.at(), exitNoPath, search)
}

// at is where to search, quoted and so that it is no option.
func (p *searchParams) at() string {
	if strings.HasPrefix(p.Path, "-") {
		return sandbox.Quote("./" + p.Path)
	}
	return sandbox.Quote(p.Path)
}

// inGit tells whether it is the directory .git itself that is to be searched.
func (p *searchParams) inGit() bool { return path.Base(p.Path) == ".git" }

// find lists files with a name, in no order.
func (p *searchParams) find(name, print string) string {
	words := []string{"command find -H", p.at()}
	if !p.inGit() {
		words = append(words, "-name .git -prune -o")
	}
	words = append(words, "-type f")
	switch {
	case strings.Contains(name, "/"):
		words = append(words, "-path", sandbox.Quote("*/"+strings.TrimLeft(strings.TrimPrefix(name, "./"), "/")))
	case name != "":
		words = append(words, "-name", sandbox.Quote(name))
	}
	return strings.Join(append(words, print, "2>/dev/null"), " ")
}

func (p *searchParams) byFind() string {
	return p.find(p.Pattern, "-print") + " | command sort" + bound()
}

// bound ends a search that finds too much. It also makes the exit code 0.
func bound() string { return fmt.Sprintf(" | command head -c %d", maxSearched) }

// check is a search in nothing, which fails if the pattern is not valid.
func check(grep string) string {
	return fmt.Sprintf("%s /dev/null 2>&1; [ $? -le 1 ] || exit %d; ", grep, exitBadPattern)
}

// trim cuts lines, of which there may be very long ones.
const trim = " 2>/dev/null | command cut -b 1-2000"

func (p *searchParams) byRipgrep() string {
	pattern := "-e " + sandbox.Quote(p.Pattern)
	words := []string{"command rg --no-config --no-messages --no-ignore --hidden --sort path --color never --no-heading", p.flags("--with-filename")}
	if p.Glob != "" {
		words = append(words, "-g", sandbox.Quote(p.Glob))
	}
	if !p.inGit() {
		words = append(words, "-g '!.git'")
	}
	words = append(words, pattern, "--", p.at())
	return check("command rg --no-config "+pattern) + strings.Join(words, " ") + trim + bound()
}

// byGrep takes the regular expressions of Perl, which most models write, where
// grep knows them.
func (p *searchParams) byGrep() string {
	pattern := "-e " + sandbox.Quote(p.Pattern)
	words := []string{"kind=-E; if echo x | command grep -qP x 2>/dev/null; then kind=-P; fi;"}
	if strings.Contains(p.Pattern, `\d`) || strings.Contains(p.Pattern, `\D`) || strings.Contains(p.Pattern, "(?") {
		words = append(words, fmt.Sprintf(`[ $kind = -P ] || { echo 'grep knows no \d and no (? here: write [0-9]'; exit %d; };`, exitBadPattern))
	}
	words = append(words,
		check("command grep $kind "+pattern), p.find(p.Glob, "-print0"),
		"| command sort -z | command xargs -0 grep $kind -I", p.flags("-H"), pattern, "/dev/null"+trim)
	if p.Mode == modeCount {
		words = append(words, "| command grep -v ':0$'")
	}
	return strings.Join(words, " ") + bound()
}

// flags tell grep and ripgrep what to return.
func (p *searchParams) flags(named string) string {
	switch p.Mode {
	case modeFiles:
		return "-l"
	case modeCount:
		return named + " -c"
	}
	if n := or(p.Context, 0); n > 0 {
		named += fmt.Sprintf(" -C %d", n)
	}
	return named + " -n"
}
