package calculator

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env"
)

func TestEval(t *testing.T) {
	tests := []struct {
		expression string
		want       string
	}{
		{"1+1", "2"},
		{" 2 *  3\n", "6"},
		{"2+3*4", "14"},
		{"(2+3)*4", "20"},
		{"10-4-3", "3"},
		{"100/5/2", "10"},
		{"-2^2", "-4"},
		{"(-2)^2", "4"},
		{"2^3^2", "512"},
		{"2**10", "1024"},
		{"2^-2", "0.25"},
		{"--3", "3"},
		{"+-+3", "-3"},
		{"2*-3", "-6"},
		{"0.1+0.2", "0.3"},
		{".5*4.", "2"},
		{"010", "10"},
		{"1e3+1E-3", "1000.001"},
		{"7%3", "1"},
		{"7%(-3)", "-2"},
		{"(-7)%3", "2"},
		{"5.5%2", "1.5"},
		{"1/8", "0.125"},
		{"1/3", "0.333333333333333"},
		{"2/3*3", "2"},
		{"10^20/3", "3.33333333333333e+19"},
		{"0^0", "1"},
		{"0^5", "0"},
		{"(-1)^1000000000000001", "-1"},
		{"(-1)^1000000000000000", "1"},
		{"1^-99999999999999999999", "1"},
		{"6 × 7 − 2 ÷ 2", "41"},
		{"80000*1.5-130000", "-10000"},
		{"99999999999999999999+1", "100000000000000000000"},
		{"2^0.5^0", "2"},
		{"16-3-4*(9-2)", "-15"},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			got, err := Eval(tt.expression)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestEvalRefuses(t *testing.T) {
	tests := []struct {
		name       string
		expression string
		want       string // substring
	}{
		{"nothing", " ", "empty"},
		{"only an operator", "*", `unexpected "*"`},
		{"ends early", "1+", "ends too early"},
		{"open parenthesis", "(1+2", "closing parenthesis is missing"},
		{"surplus parenthesis", "1+2)", `unexpected ")"`},
		{"no operator", "2(3)", "an operator is missing"},
		{"two numbers", "2 3", "an operator is missing"},
		{"thousands", "1,234,567.5+1", "without thousands separators: 1234567.5"},
		{"underscores", "1_000", "without thousands separators: 1000"},
		{"comma", "1,", "without thousands separators"},
		{"function", "sqrt(2)", `unexpected "s"`},
		{"currency", "$5", `unexpected "$"`},
		{"not ASCII", "2²", `unexpected "²"`},
		{"NUL", "1\x002", `unexpected "\x00"`},
		{"percent", "50%", "50/100"},
		{"percent of", "50%*3", "50/100"},
		{"percent less", "50% - 3", "50/100"},
		{"dot", ".", `"." is not a number`},
		{"two dots", "1.2.3", `unexpected "."`},
		{"no exponent", "1e", "exponent"},
		{"by zero", "1/(2-2)", "division by zero"},
		{"remainder by zero", "1%0", "division by zero"},
		{"power by zero", "0^-1", "division by zero"},
		{"root", "2^0.5", "whole numbers"},
		{"power bomb", "9^9^9^9^9", "too large"},
		{"negative power bomb", "9^-99999999", "too large"},
		{"repeated squares", "((((((10^99)^9)^9)^9)^9)^9)", "too large"},
		{"exponent bomb", "1e999999999", "too large"},
		{"exponent beyond int64", "1e99999999999999999999", "too large"},
		{"many digits", strings.Repeat("9", 2000), "too large"},
		{"product bomb", strings.Repeat("1e900*", 3) + "1", "too large"},
		{"deep parentheses", strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000), "nested too deeply"},
		{"many signs", strings.Repeat("-", 3000) + "1", "nested too deeply"},
		{"many powers", strings.Repeat("1^", 2000) + "1", "nested too deeply"},
		{"long", strings.Repeat("1+", 2048) + "1", "longer than 4096"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Eval(tt.expression)
			if err == nil {
				t.Fatalf("got %s, want an error", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %q, want %q in it", err, tt.want)
			}
		})
	}
}

func TestTool(t *testing.T) {
	tests := []struct {
		name string
		args string
		want env.ToolResult
	}{
		{"result", `{"expression":"6*7"}`, env.ToolResult{Content: "42"}},
		{"error", `{"expression":"6*"}`, env.ToolResult{Content: "the expression ends too early", IsError: true}},
		{"wrong parameter", `{"expr":"6*7"}`, env.ToolResult{Content: `unknown field "expr"`, IsError: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Tool().Call(t.Context(), json.RawMessage(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzEval checks that a result is a number that evaluates to itself where it
// is exact, and that nothing crashes or runs away.
func FuzzEval(f *testing.F) {
	for _, seed := range []string{"1+1", "2^3^2", "-2^2", "1/3", "7%(-3)", "1e999", "9^9^9", "((1)", "50%", "1,000", "1\x002", "6 × 7"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		got, err := Eval(expression)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without text")
			}
			return
		}
		if _, ok := new(big.Rat).SetString(got); !ok {
			t.Fatalf("Eval(%q) = %q, which is no number", expression, got)
		}
		if len(got) > maxLength || strings.Contains(got, "e") {
			return // rounded, and perhaps beyond the bounds
		}
		again, err := Eval(got)
		if err != nil {
			t.Fatalf("Eval(%q) = %q, which does not evaluate: %v", expression, got, err)
		}
		if strings.Trim(got, "-0123456789") == "" && again != got {
			t.Errorf("Eval(%q) = %q, which evaluates to %q", expression, got, again)
		}
	})
}
