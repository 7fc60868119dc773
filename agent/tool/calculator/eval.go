package calculator

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// The bounds: an expression within them costs at most some milliseconds.
const (
	maxLength = 4096 // bytes of an expression
	maxDepth  = 100  // parentheses, signs and powers within each other
	maxBits   = 4096 // of numerator and denominator: about 1,200 digits
	maxScale  = 1000 // decimal exponent of a number as written
)

var (
	errDivision = errors.New("division by zero")
	errTooLarge = errors.New("the result is too large")
)

// Eval computes an expression. The result is exact where its decimal expansion
// ends, else rounded to 15 significant digits. Errors are sentences for the
// model.
func Eval(expression string) (string, error) {
	if len(expression) > maxLength {
		return "", fmt.Errorf("the expression is longer than %d characters", maxLength)
	}
	p := &parser{text: ascii(expression)}
	if strings.TrimSpace(p.text) == "" {
		return "", errors.New("the expression is empty")
	}
	result, err := p.sum()
	if err != nil {
		return "", err
	}
	if p.peek(); p.pos < len(p.text) {
		return "", p.unexpected()
	}
	return format(result), nil
}

// ascii replaces the typographic signs that models like to write. Making a
// replacer costs more than the arithmetic, and few expressions need it.
func ascii(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s
	}
	return strings.NewReplacer("×", "*", "·", "*", "⋅", "*", "÷", "/", "−", "-", "–", "-", "\u00a0", " ").Replace(s)
}

func format(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if decimals, exact := r.FloatPrec(); exact {
		return r.FloatString(decimals)
	}
	const digits, bits = 15, 64
	return new(big.Float).SetPrec(bits).SetRat(r).Text('g', digits)
}

func bounded(r *big.Rat) (*big.Rat, error) {
	if max(r.Num().BitLen(), r.Denom().BitLen()) > maxBits {
		return nil, errTooLarge
	}
	return r, nil
}

func divide(x, y *big.Rat) (*big.Rat, error) {
	if y.Sign() == 0 {
		return nil, errDivision
	}
	return bounded(new(big.Rat).Quo(x, y))
}

// remainder is x - y*floor(x/y): it has the sign of y.
func remainder(x, y *big.Rat) (*big.Rat, error) {
	quotient, err := divide(x, y)
	if err != nil {
		return nil, err
	}
	floor := new(big.Int).Div(quotient.Num(), quotient.Denom()) // Euclidean: the denominator is positive
	product := new(big.Rat).Mul(y, new(big.Rat).SetInt(floor))
	return bounded(product.Sub(x, product))
}

func power(base, exponent *big.Rat) (*big.Rat, error) {
	if !exponent.IsInt() {
		return nil, errors.New("exponents have to be whole numbers")
	}
	if exponent.Sign() < 0 {
		inverse, err := divide(big.NewRat(1, 1), base)
		if err != nil {
			return nil, err
		}
		return power(inverse, new(big.Rat).Neg(exponent))
	}
	n := exponent.Num()
	size := max(base.Num().BitLen(), base.Denom().BitLen())
	if size <= 1 { // 0, 1 and -1 stay small: their power follows from zero and parity
		n = small(n)
	}
	// A number of size bits is at least 2^(size-1).
	if !n.IsInt64() || n.Int64() > maxBits || int64(size-1)*n.Int64() > maxBits {
		return nil, errTooLarge
	}
	return bounded(new(big.Rat).SetFrac(
		new(big.Int).Exp(base.Num(), n, nil),
		new(big.Int).Exp(base.Denom(), n, nil)))
}

// small is 0 for 0, else 1 or 2 of the same parity as n.
func small(n *big.Int) *big.Int {
	if n.Sign() == 0 {
		return n
	}
	if n.Bit(0) == 1 {
		return big.NewInt(1)
	}
	return big.NewInt(2)
}
