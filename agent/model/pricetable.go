package model

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed prices.json
var embeddedPrices string

// PriceTable maps a provider's models to their [Rates]. It is read-only and
// safe for concurrent use.
type PriceTable struct {
	rates map[string]map[string]Rates // by provider, then model; "*" is every other model
}

// anyModel is the entry for every model of a provider that has none of its own.
const anyModel = "*"

// EmbeddedPrices is the dated table of list prices that this program was
// built with.
func EmbeddedPrices() *PriceTable {
	t, err := LoadPrices(strings.NewReader(embeddedPrices))
	if err != nil {
		panic("model: embedded prices: " + err.Error())
	}
	return t
}

// LoadPrices reads a table:
//
//	{"version": "2026-06-21",
//	 "models": {"openai": {"gpt-4o-mini": {"input": 150000000, "cache_read": 75000000, "output": 600000000}}}}
//
// Rates are integers in nano-dollars per million tokens ($0.15 is 150000000);
// a rate that is absent is not known. The model "*" stands for every other
// model of its provider. An unknown key, a negative rate, a missing version
// and an empty table are errors.
func LoadPrices(r io.Reader) (*PriceTable, error) {
	var file struct {
		Version string                      `json:"version"`
		Models  map[string]map[string]Rates `json:"models"`
	}
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number") {
			return nil, fmt.Errorf("reading prices: %w: rates are integers, in nano-dollars per million tokens", err)
		}
		return nil, fmt.Errorf("reading prices: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading prices: more than one JSON value")
	}
	if file.Version == "" {
		return nil, errors.New(`reading prices: "version" is missing: give the table's date`)
	}
	if len(file.Models) == 0 {
		return nil, errors.New(`reading prices: "models" is missing or empty`)
	}
	if err := dateRates(file.Models, file.Version); err != nil {
		return nil, err
	}
	return &PriceTable{rates: file.Models}, nil
}

// dateRates checks the rates and puts the table's version into each entry,
// which keeps it when tables are laid over each other.
func dateRates(models map[string]map[string]Rates, version string) error {
	for provider, entries := range models {
		for name, r := range entries {
			for what, rate := range map[string]*int64{"input": r.Input, "cache_read": r.CacheRead, "cache_write": r.CacheWrite, "output": r.Output} {
				if rate != nil && *rate < 0 {
					return fmt.Errorf("reading prices: %s/%s: %s is %d: a rate is not negative", provider, name, what, *rate)
				}
			}
			r.Version = version
			entries[name] = r
		}
	}
	return nil
}

// With is the table with over laid over it: an entry of over replaces the
// whole entry of the same model.
func (t *PriceTable) With(over *PriceTable) *PriceTable {
	sum := &PriceTable{rates: make(map[string]map[string]Rates, len(t.rates))}
	for _, layer := range []*PriceTable{t, over} {
		for provider, entries := range layer.rates {
			if sum.rates[provider] == nil {
				sum.rates[provider] = make(map[string]Rates, len(entries))
			}
			maps.Copy(sum.rates[provider], entries)
		}
	}
	return sum
}

// Rates of a provider's model, and whether the table has an entry for it.
func (t *PriceTable) Rates(provider, name string) (Rates, bool) {
	entries := t.rates[provider]
	if r, ok := entries[name]; ok {
		return r, true
	}
	r, ok := entries[anyModel]
	return r, ok
}

// Known tells whether a call without cache use can be priced: whether input
// and output have rates.
func (r Rates) Known() bool { return r.Input != nil && r.Output != nil }

// Models lists the priced models as provider/model, sorted.
func (t *PriceTable) Models() []string {
	var names []string
	for provider, entries := range t.rates {
		for name := range entries {
			names = append(names, provider+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}
