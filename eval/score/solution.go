package score

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/dataset"
)

// Solution is a reply that the set's chosen scorer passes, made of the task's
// target: for scripted models that know the answer. Where none of its guesses
// passes, or the set is empty, it is the target itself.
func Solution(set *Set, t dataset.Task) string {
	i := slices.IndexFunc(set.Scorers, func(s *Scorer) bool { return s.Chosen })
	if i < 0 {
		return t.Target
	}
	s := set.Scorers[i]
	for _, guess := range s.guesses(t.Target) {
		if v, err := s.verdict(t, guess, false); err == nil && v.Passed {
			return guess
		}
	}
	return t.Target
}

func (s *Scorer) guesses(target string) []string {
	answers := []string{target}
	if found, ok := s.target.Find(target); ok {
		answers = append(answers, found)
	}
	if p, ok := s.judge.(*pattern); ok {
		if re, err := p.of(answers[len(answers)-1]); err == nil {
			answers = append(answers, example(re.String(), ""))
		}
	}
	guesses := slices.Clone(answers)
	for _, a := range answers {
		guesses = append(guesses, hashes+" "+a, `\boxed{`+a+`}`)
		if s.answer.re != nil {
			guesses = append(guesses, example(s.answer.re.String(), a))
		}
	}
	return guesses
}

// example is a text that the expression is likely to match, with group1 in the
// place of its first group.
func example(expression, group1 string) string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return group1
	}
	var b strings.Builder
	writeExample(&b, re, group1)
	return b.String()
}

func writeExample(b *strings.Builder, re *syntax.Regexp, group1 string) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(re.Rune[0])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture:
		if re.Cap == 1 && group1 != "" {
			b.WriteString(group1)
			return
		}
		writeExample(b, re.Sub[0], group1)
	case syntax.OpPlus, syntax.OpAlternate:
		writeExample(b, re.Sub[0], group1)
	case syntax.OpRepeat:
		for range re.Min {
			writeExample(b, re.Sub[0], group1)
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeExample(b, sub, group1)
		}
	default: // an anchor, or something that may be absent
	}
}
