package model_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/dataset"
)

func TestCost(t *testing.T) {
	all := model.Rates{Input: new(int64(150_000_000)), CacheRead: new(int64(75_000_000)), CacheWrite: new(int64(187_500_000)), Output: new(int64(600_000_000))}
	most := model.Rates{Input: new(int64(math.MaxInt64)), Output: new(int64(math.MaxInt64))}
	tests := []struct {
		name  string
		rates model.Rates
		usage dataset.Usage
		want  int64
		known bool
	}{
		{"each counter at its rate", all, dataset.Usage{Input: 1000, CacheRead: 100, CacheWrite: 10, Output: 1}, 150_000 + 7_500 + 1_875 + 600, true},
		{"reasoning is in the output", all, dataset.Usage{Output: 10, Reasoning: new(int64(9))}, 6000, true},
		{"nothing", all, dataset.Usage{}, 0, true},
		{"nothing at unknown rates", model.Rates{}, dataset.Usage{}, 0, true},
		{"below a half", model.Rates{Input: new(int64(499_999))}, dataset.Usage{Input: 1}, 0, true},
		{"a half goes up", model.Rates{Input: new(int64(500_000))}, dataset.Usage{Input: 1}, 1, true},
		{"rounded once", model.Rates{Input: new(int64(300_000)), Output: new(int64(300_000))}, dataset.Usage{Input: 1, Output: 1}, 1, true},
		{"free", model.Rates{Input: new(int64(0)), Output: new(int64(0))}, dataset.Usage{Input: 5, Output: 5}, 0, true},
		{"a used counter without rate", model.Rates{Input: new(int64(1)), Output: new(int64(1))}, dataset.Usage{Input: 5, CacheRead: 1}, 0, false},
		{"negative usage", all, dataset.Usage{Input: -1}, 0, false},
		{"negative rate", model.Rates{Input: new(int64(-1))}, dataset.Usage{Input: 1}, 0, false},
		{"the largest that fits", most, dataset.Usage{Input: 1_000_000}, math.MaxInt64, true},
		{"more than fits", most, dataset.Usage{Input: 1_000_001}, 0, false},
		{"far more", most, dataset.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, 0, false},
		{"the most that there can be", model.Rates{Input: most.Input, CacheRead: most.Input, CacheWrite: most.Input, Output: most.Input}, dataset.Usage{Input: math.MaxInt64, CacheRead: math.MaxInt64, CacheWrite: math.MaxInt64, Output: math.MaxInt64}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, known := tt.rates.Cost(tt.usage); got != tt.want || known != tt.known {
				t.Errorf("Cost = %d, %v; want %d, %v", got, known, tt.want, tt.known)
			}
		})
	}
}

func TestEmbeddedPrices(t *testing.T) {
	table := model.EmbeddedPrices()
	tests := []struct {
		provider, name string
		usage          dataset.Usage
		want           int64
		known          bool
	}{
		{"openai", "gpt-4o-mini", dataset.Usage{Input: 1_000_000}, 150_000_000, true},
		{"openai", "gpt-4o-mini", dataset.Usage{CacheRead: 1_000_000, Output: 1_000_000}, 675_000_000, true},
		{"openai", "gpt-3.5-turbo", dataset.Usage{Input: 1_000_000, Output: 1_000_000}, 2_000_000_000, true},
		{"openai", "gpt-3.5-turbo", dataset.Usage{CacheRead: 1}, 0, false},
		{"openai", "gpt-none", dataset.Usage{Input: 1}, 0, false},
		{"nobody", "gpt-4o-mini", dataset.Usage{Input: 1}, 0, false},
		{"scripted", "oracle", dataset.Usage{Input: 1, CacheRead: 1, CacheWrite: 1, Output: 1}, 0, true},
	}
	for _, tt := range tests {
		rates, _ := table.Rates(tt.provider, tt.name)
		if got, known := rates.Cost(tt.usage); got != tt.want || known != tt.known {
			t.Errorf("%s/%s: %+v costs %d, %v; want %d, %v", tt.provider, tt.name, tt.usage, got, known, tt.want, tt.known)
		}
	}
	for _, m := range table.Models() {
		provider, name, _ := strings.Cut(m, "/")
		rates, found := table.Rates(provider, name)
		if !found || !rates.Known() || rates.Version == "" {
			t.Errorf("%s: %+v", m, rates)
		}
		if rates.CacheRead != nil && *rates.CacheRead > *rates.Input {
			t.Errorf("%s: cached input is dearer than fresh", m)
		}
	}
}

func load(t *testing.T, text string) *model.PriceTable {
	t.Helper()
	table, err := model.LoadPrices(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestPricesOverlay(t *testing.T) {
	below := load(t, `{"version": "v1", "models": {"p": {"a": {"input": 1, "cache_read": 1, "output": 1}, "b": {"input": 2, "output": 2}, "*": {"input": 9, "output": 9}}}}`)
	above := load(t, `{"version": "v2", "models": {"p": {"a": {"input": 5, "output": 5}}, "q": {"*": {"input": 0, "output": 0}}}}`)
	table := below.With(above)
	for _, tt := range []struct {
		provider, name string
		want           model.Rates
	}{
		{"p", "a", model.Rates{Input: new(int64(5)), Output: new(int64(5)), Version: "v2"}},
		{"p", "b", model.Rates{Input: new(int64(2)), Output: new(int64(2)), Version: "v1"}},
		{"p", "c", model.Rates{Input: new(int64(9)), Output: new(int64(9)), Version: "v1"}},
		{"q", "x", model.Rates{Input: new(int64(0)), Output: new(int64(0)), Version: "v2"}},
	} {
		got, _ := table.Rates(tt.provider, tt.name)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s/%s (-want +got):\n%s", tt.provider, tt.name, diff)
		}
	}
	if got, want := table.Models(), []string{"p/*", "p/a", "p/b", "q/*"}; !slices.Equal(got, want) {
		t.Errorf("models %v, want %v", got, want)
	}
	if got, _ := below.Rates("p", "a"); got.Version != "v1" {
		t.Error("the table below was changed")
	}
}

func TestLoadPricesRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no JSON", `version: 1`, "reading prices: invalid character"},
		{"no version", `{"models": {"p": {"m": {"input": 1}}}}`, `"version" is missing`},
		{"no models", `{"version": "v"}`, `"models" is missing`},
		{"unknown key", `{"version": "v", "models": {"p": {"m": {"imput": 1}}}}`, `unknown field "imput"`},
		{"dollars", `{"version": "v", "models": {"p": {"m": {"input": 0.15}}}}`, "rates are integers, in nano-dollars per million tokens"},
		{"negative", `{"version": "v", "models": {"p": {"m": {"output": -1}}}}`, "p/m: output is -1"},
		{"more behind it", `{"version": "v", "models": {"p": {}}} {}`, "more than one"},
		{"cut", `{"version": "v", "models": {`, "unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := model.LoadPrices(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestPrice(t *testing.T) {
	table := load(t, `{"version": "v", "models": {"p": {"m": {"input": 1000000, "output": 2000000}}}}`)
	own := reply(5)
	own.CostNanoUSD = new(int64(99))
	tests := []struct {
		name, model string
		resp        model.Response
		cost        *int64
		version     string
	}{
		{"known", "m", reply(5), new(int64(15)), "v"},
		{"unknown model", "n", reply(5), nil, ""},
		{"no usage", "m", model.Response{}, nil, ""},
		{"the provider's own", "m", own, new(int64(99)), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inner := generator(func(context.Context, model.Request) (model.Response, error) { return tt.resp, nil })
			got, err := model.Price(inner, table, "p", tt.model).Generate(t.Context(), model.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.cost, got.CostNanoUSD); diff != "" || got.PriceVersion != tt.version {
				t.Errorf("price version %q, want %q; cost (-want +got):\n%s", got.PriceVersion, tt.version, diff)
			}
		})
	}
}
