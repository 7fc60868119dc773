package main

import (
	"io"
	"slices"
	"strings"
	"sync/atomic"
)

// minSecret is the length from which a secret is masked: a shorter one would
// turn up in ordinary words.
const minSecret = 4

// secretMask stands in the place of a secret.
const secretMask = "[secret]"

// secrets masks every secret value that was loaded. The zero value and nil mask
// nothing. mask is safe for concurrent use, also with add.
type secrets struct {
	values   []string // only add touches it, before anything runs
	replacer atomic.Pointer[strings.Replacer]
}

func (s *secrets) add(value string) {
	if len(value) < minSecret || slices.Contains(s.values, value) {
		return
	}
	s.values = append(s.values, value)
	pairs := make([]string, 0, 2*len(s.values))
	for _, v := range s.values {
		pairs = append(pairs, v, secretMask)
	}
	s.replacer.Store(strings.NewReplacer(pairs...))
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
