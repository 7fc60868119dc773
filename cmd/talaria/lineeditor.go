package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/peterh/liner"
)

// lineEditor edits lines on the process's terminal and keeps a history in the
// user's state folder.
type lineEditor struct {
	liner   *liner.State
	history string // its file; "": none
}

var _ editor = (*lineEditor)(nil)

// newLineEditor takes hold of the terminal until Close.
func newLineEditor(std *stdio) *lineEditor {
	e := &lineEditor{liner: liner.NewLiner(), history: historyFile(std.getenv)}
	e.liner.SetCtrlCAborts(true)
	e.liner.SetMultiLineMode(true)
	e.liner.SetTabCompletionStyle(liner.TabPrints)
	if err := e.recall(); err != nil {
		std.err.printf("the history of earlier sessions is not there: %v\n", err)
		e.history = ""
	}
	return e
}

// historyFile is where the state of programs belongs on this system, "" where
// that is not known.
func historyFile(getenv func(string) string) string {
	dir := getenv("XDG_STATE_HOME")
	switch home, err := os.UserHomeDir(); {
	case filepath.IsAbs(dir):
	case runtime.GOOS == "windows":
		dir = getenv("LOCALAPPDATA")
	case err == nil:
		dir = filepath.Join(home, ".local", "state")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "talaria", "query_history")
}

func (e *lineEditor) recall() error {
	if e.history == "" {
		return nil
	}
	f, err := os.Open(e.history)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	_, err = e.liner.ReadHistory(f)
	return err
}

// Prompt implements editor.
func (e *lineEditor) Prompt(prompt string) (string, error) {
	line, err := e.liner.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", errNoLine
	}
	return line, err
}

// Remember adds a line to the history, on disk too: a session may end by
// anything.
func (e *lineEditor) Remember(line string) {
	e.liner.AppendHistory(line)
	if e.history == "" {
		return
	}
	if err := e.save(); err != nil {
		e.history = "" // told at the next start
	}
}

// save writes the history for its user alone: SQL may quote what is recorded.
func (e *lineEditor) save() error {
	if err := os.MkdirAll(filepath.Dir(e.history), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(e.history), "query_history-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone, once it is renamed
	_, err = e.liner.WriteHistory(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", e.history, err)
	}
	return os.Rename(f.Name(), e.history)
}

// Complete implements editor: words are completed by their beginnings, whatever
// the case.
func (e *lineEditor) Complete(words []string) {
	e.liner.SetWordCompleter(func(line string, pos int) (head string, completions []string, tail string) {
		return completeWord(words, line, pos)
	})
}

// completeWord is the words that continue the one before pos, counted in
// characters.
func completeWord(words []string, line string, pos int) (head string, completions []string, tail string) {
	runes := []rune(line)
	before := string(runes[:pos])
	at := strings.LastIndexFunc(before, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if at >= 0 {
		_, size := utf8.DecodeRuneInString(before[at:])
		at += size
	}
	at = max(at, 0)
	if at == 1 && before[0] == '.' {
		at = 0 // a command
	}
	if at == len(before) {
		return before, nil, string(runes[pos:])
	}
	for _, w := range words {
		if len(w) >= len(before)-at && strings.EqualFold(w[:len(before)-at], before[at:]) {
			completions = append(completions, w)
		}
	}
	return before[:at], completions, string(runes[pos:])
}

// Close gives the terminal back.
func (e *lineEditor) Close() error {
	err := e.liner.Close()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
