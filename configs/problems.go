package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// problem is one thing that is wrong with a config, as one line: where, which
// key, what, and what to do.
type problem struct {
	at  place
	key string // dotted; "" for the whole document
	msg string
}

func (p problem) Error() string {
	s := p.at.String()
	if p.key != "" {
		s += ": " + printable(p.key)
	}
	return s + ": " + p.msg
}

// printable keeps an error on one line whatever a key is called.
func printable(key string) string {
	if strings.ContainsFunc(key, unicode.IsControl) {
		return strconv.Quote(key)
	}
	return key
}

// problems collects everything that is wrong, so that it is reported at once.
type problems []problem

func (p *problems) add(at place, key, format string, args ...any) {
	*p = append(*p, problem{at: at, key: key, msg: fmt.Sprintf(format, args...)})
}

// err joins the problems in the order of the document, each once. Variants
// share most of a document and therefore most of its problems.
func (p problems) err() error {
	sorted := slices.Clone(p)
	slices.SortStableFunc(sorted, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.at.file, b.at.file), cmp.Compare(a.at.line, b.at.line))
	})
	var errs []error
	seen := map[string]bool{}
	for _, e := range sorted {
		if s := e.Error(); !seen[s] {
			seen[s] = true
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}
