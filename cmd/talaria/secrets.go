package main

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// minSecret is the length from which a secret is masked: a shorter one would
// turn up in ordinary words.
const minSecret = 4

// minLine is the same for one line of a secret of many.
const minLine = 12

// secretMask stands in the place of a secret.
const secretMask = "[secret]"

// secrets masks every secret value that was loaded. The zero value and nil mask
// nothing. It is safe for concurrent use.
type secrets struct {
	replacer atomic.Pointer[strings.Replacer]

	mu     sync.Mutex
	values []string // the longest first, so that none is masked by a part of it
}

// add has a value masked from now on: as it stands, as a log or JSON quotes it,
// and long lines of it, for programs show single ones.
func (s *secrets) add(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.values)
	s.include(value, minSecret)
	for line := range strings.Lines(value) {
		s.include(line, minLine)
	}
	if len(s.values) == before {
		return
	}
	slices.SortStableFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(s.values))
	for _, v := range s.values {
		pairs = append(pairs, v, secretMask)
	}
	s.replacer.Store(strings.NewReplacer(pairs...))
}

func (s *secrets) include(text string, shortest int) {
	text = strings.TrimSpace(text)
	for _, form := range []string{text, quoted(text)} {
		if len(text) >= shortest && !slices.Contains(s.values, form) {
			s.values = append(s.values, form)
		}
	}
}

// quoted is a text as it stands between the quotes of a log line.
func quoted(text string) string {
	text = strconv.Quote(text)
	return text[1 : len(text)-1]
}

func (s *secrets) mask(text string) string {
	if s == nil {
		return text
	}
	if r := s.replacer.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}

// masked is a writer that lets no secret through. What is written at once is
// masked as one text.
type masked struct {
	w       io.Writer
	secrets *secrets
}

func (m *masked) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.w, m.secrets.mask(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
