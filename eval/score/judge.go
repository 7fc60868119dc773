package score

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Judge compares an answer with a target. Its exported fields are its
// parameters: they are part of the scorer's identity. Judge is safe for
// concurrent use. An error means that the target is at fault, never the
// answer.
type Judge interface {
	Judge(answer, target string) (Verdict, error)
}

// Verdict is what a Judge says. Explanation is a short sentence.
type Verdict struct {
	Passed      bool
	Explanation string
}

// Constructor makes a Judge with parameters decoded strictly by decode.
type Constructor func(decode func(into any) error) (Judge, error)

// Registry maps a scorer's name in the config to its constructor.
type Registry map[string]Constructor

// Builtin returns the scorers that need nothing but the text.
func Builtin() Registry {
	return Registry{
		"exact":    newExact,
		"numeric":  newNumeric,
		"regex":    newPattern,
		"contains": newContains,
	}
}

func (r Registry) names() string { return strings.Join(slices.Sorted(maps.Keys(r)), ", ") }

// targetless is a Judge that may do without a target.
type targetless interface{ needsNoTarget() bool }

func needsNoTarget(j Judge) bool {
	t, ok := j.(targetless)
	return ok && t.needsNoTarget()
}

// exact wants the answer to be the target.
type exact struct {
	CaseSensitive bool `yaml:"case_sensitive" json:"case_sensitive"` // default true
	Trim          bool `yaml:"trim" json:"trim"`                     // blanks around it; default true
}

func newExact(decode func(any) error) (Judge, error) {
	e := &exact{CaseSensitive: true, Trim: true}
	return e, decode(e)
}

func (e *exact) Judge(answer, target string) (Verdict, error) {
	a, t := answer, target
	if e.Trim {
		a, t = strings.TrimSpace(a), strings.TrimSpace(t)
	}
	if a == t || !e.CaseSensitive && strings.EqualFold(a, t) {
		return Verdict{true, clip(answer) + " is the target"}, nil
	}
	return Verdict{false, clip(answer) + " is not " + clip(target)}, nil
}

// contains wants the target within the answer.
type contains struct {
	CaseSensitive bool `yaml:"case_sensitive" json:"case_sensitive"` // default true
}

func newContains(decode func(any) error) (Judge, error) {
	c := &contains{CaseSensitive: true}
	return c, decode(c)
}

func (c *contains) Judge(answer, target string) (Verdict, error) {
	a, t := answer, target
	if !c.CaseSensitive {
		a, t = strings.ToLower(a), strings.ToLower(t)
	}
	if strings.Contains(a, t) {
		return Verdict{true, "contains " + clip(target)}, nil
	}
	return Verdict{false, "does not contain " + clip(target)}, nil
}

// numeric wants the answer to be the number that the target is.
type numeric struct {
	Tolerance float64 `yaml:"tolerance" json:"tolerance"` // greatest difference that passes; default 0

	tolerance *big.Rat
}

func newNumeric(decode func(any) error) (Judge, error) {
	n := new(numeric)
	if err := decode(n); err != nil {
		return nil, err
	}
	if !(n.Tolerance >= 0) || math.IsInf(n.Tolerance, 0) {
		return nil, fmt.Errorf("tolerance has to be a number from 0, not %v", n.Tolerance)
	}
	// By its decimal digits: 0.3 is three tenths, not the float below it.
	n.tolerance, _ = new(big.Rat).SetString(strconv.FormatFloat(n.Tolerance, 'g', -1, 64))
	return n, nil
}

func (n *numeric) Judge(answer, target string) (Verdict, error) {
	want, ok := ParseNumber(target)
	if !ok {
		return Verdict{}, fmt.Errorf("the target %s is not a number", clip(target))
	}
	got, ok := ParseNumber(answer)
	if !ok {
		return Verdict{false, clip(answer) + " is not a number"}, nil
	}
	difference := new(big.Rat).Sub(got, want)
	if difference.Abs(difference).Cmp(n.tolerance) <= 0 {
		return Verdict{true, clip(answer) + " equals " + clip(target)}, nil
	}
	return Verdict{false, clip(answer) + " is not " + clip(target)}, nil
}

// pattern wants the answer to match a regular expression: its own, or the
// task's target.
type pattern struct {
	Pattern string `yaml:"pattern" json:"pattern"` // "": the target is the pattern

	compiled *regexp.Regexp
}

func newPattern(decode func(any) error) (Judge, error) {
	p := new(pattern)
	if err := decode(p); err != nil {
		return nil, err
	}
	if p.Pattern == "" {
		return p, nil
	}
	var err error
	if p.compiled, err = regexp.Compile(p.Pattern); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return p, nil
}

func (p *pattern) needsNoTarget() bool { return p.compiled != nil }

func (p *pattern) Judge(answer, target string) (Verdict, error) {
	re, err := p.of(target)
	if err != nil {
		return Verdict{}, err
	}
	if re.MatchString(answer) {
		return Verdict{true, clip(answer) + " matches " + clip(re.String())}, nil
	}
	return Verdict{false, clip(answer) + " does not match " + clip(re.String())}, nil
}

func (p *pattern) of(target string) (*regexp.Regexp, error) {
	if p.compiled != nil {
		return p.compiled, nil
	}
	if target == "" {
		return nil, errors.New("neither a pattern nor a target")
	}
	re, err := regexp.Compile(target)
	if err != nil {
		return nil, fmt.Errorf("the target is no regular expression: %w", err)
	}
	return re, nil
}

// clip quotes a text and cuts it to what fits into an explanation.
func clip(s string) string {
	const limit = 60
	runes := 0
	for i := range s {
		if runes == limit {
			return strconv.Quote(s[:i]) + "..."
		}
		runes++
	}
	return strconv.Quote(s)
}
