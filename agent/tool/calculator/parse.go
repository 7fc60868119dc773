package calculator

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser computes while it reads, by recursive descent:
//
//	sum     = product { ("+" | "-") product }
//	product = sign { ("*" | "/" | "%") sign }
//	sign    = { "+" | "-" } power
//	power   = atom [ ("^" | "**") sign ]
//	atom    = number | "(" sum ")"
//
// so that -2^2 is -4 and 2^3^2 is 2^9.
type parser struct {
	text  string
	pos   int
	depth int
}

func (p *parser) sum() (*big.Rat, error) {
	left, err := p.product()
	for err == nil {
		operator := p.peek()
		if operator != '+' && operator != '-' {
			return left, nil
		}
		p.pos++
		var right *big.Rat
		if right, err = p.product(); err != nil {
			break
		}
		if operator == '-' {
			right.Neg(right)
		}
		left, err = bounded(new(big.Rat).Add(left, right))
	}
	return nil, err
}

func (p *parser) product() (*big.Rat, error) {
	left, err := p.sign()
	for err == nil {
		operator := p.peek()
		if operator != '*' && operator != '/' && operator != '%' {
			return left, nil
		}
		p.pos++
		if operator == '%' && strings.IndexByte("\x00+-*/%^)", p.peek()) >= 0 {
			return nil, errors.New("% is the remainder of a division, written as 7 % (-3) with a sign; write fifty percent as 50/100")
		}
		var right *big.Rat
		if right, err = p.sign(); err != nil {
			break
		}
		left, err = combine(operator, left, right)
	}
	return nil, err
}

func combine(operator byte, left, right *big.Rat) (*big.Rat, error) {
	switch operator {
	case '*':
		return bounded(new(big.Rat).Mul(left, right))
	case '/':
		return divide(left, right)
	default:
		return remainder(left, right)
	}
}

func (p *parser) sign() (*big.Rat, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	switch p.peek() {
	case '+':
		p.pos++
		return p.sign()
	case '-':
		p.pos++
		r, err := p.sign()
		if err != nil {
			return nil, err
		}
		return new(big.Rat).Neg(r), nil
	}
	return p.power()
}

func (p *parser) power() (*big.Rat, error) {
	base, err := p.atom()
	if err != nil {
		return nil, err
	}
	switch {
	case p.peek() == '^':
		p.pos++
	case strings.HasPrefix(p.text[p.pos:], "**"):
		p.pos += 2
	default:
		return base, nil
	}
	exponent, err := p.sign()
	if err != nil {
		return nil, err
	}
	return power(base, exponent)
}

func (p *parser) atom() (*big.Rat, error) {
	switch c := p.peek(); {
	case c == '(':
		return p.parenthesis()
	case isDigit(c) || c == '.':
		return p.number()
	}
	return nil, p.unexpected()
}

func (p *parser) parenthesis() (*big.Rat, error) {
	p.pos++
	inner, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.peek() != ')' {
		if p.peek() == 0 {
			return nil, errors.New("a closing parenthesis is missing")
		}
		return nil, p.unexpected()
	}
	p.pos++
	return inner, nil
}

func (p *parser) number() (*big.Rat, error) {
	start := p.pos
	p.digits()
	if p.at(p.pos) == '.' {
		p.pos++
		p.digits()
	}
	if err := p.scale(); err != nil {
		return nil, err
	}
	literal := p.text[start:p.pos]
	if c := p.at(p.pos); (c == ',' || c == '_') && isDigit(p.at(p.pos+1)) {
		return nil, fmt.Errorf("write numbers without thousands separators: %s", p.unseparated(start))
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		return nil, fmt.Errorf("%q is not a number", literal)
	}
	return bounded(r)
}

func (p *parser) digits() {
	for isDigit(p.at(p.pos)) {
		p.pos++
	}
}

// scale reads the exponent of a number, if it has one.
func (p *parser) scale() error {
	if c := p.at(p.pos); c != 'e' && c != 'E' {
		return nil
	}
	p.pos++
	start := p.pos
	if c := p.at(p.pos); c == '+' || c == '-' {
		p.pos++
	}
	p.digits()
	exponent, err := strconv.Atoi(p.text[start:p.pos])
	if errors.Is(err, strconv.ErrSyntax) {
		return fmt.Errorf("the exponent after %q is missing", p.text[start-1:start])
	}
	if err != nil || exponent > maxScale || exponent < -maxScale {
		return errTooLarge
	}
	return nil
}

// unseparated is the number that begins at start, without its separators.
func (p *parser) unseparated(start int) string {
	end := start
	for c := p.at(end); isDigit(c) || c == ',' || c == '_' || c == '.'; c = p.at(end) {
		end++
	}
	return strings.NewReplacer(",", "", "_", "").Replace(p.text[start:end])
}

// peek returns the next byte that is not blank, 0 at the end.
func (p *parser) peek() byte {
	for c := p.at(p.pos); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = p.at(p.pos) {
		p.pos++
	}
	return p.at(p.pos)
}

func (p *parser) at(i int) byte {
	if i >= len(p.text) {
		return 0
	}
	return p.text[i]
}

func (p *parser) enter() error {
	p.depth++
	if p.depth > maxDepth {
		return errors.New("the expression is nested too deeply")
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// unexpected says what stands where something else was wanted.
func (p *parser) unexpected() error {
	if p.peek() == 0 && p.pos >= len(p.text) {
		return errors.New("the expression ends too early")
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	switch {
	case r == ',':
		return errors.New("unexpected \",\": write numbers without thousands separators")
	case r == '(' || isDigit(p.text[p.pos]):
		return fmt.Errorf("unexpected %q: an operator is missing before it", string(r))
	}
	return fmt.Errorf("unexpected %q: only numbers, + - * / %% ^ and parentheses are known", string(r))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
