package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model/lab"
)

func TestLabScript(t *testing.T) {
	tests := []struct {
		name string
		opts labServeOptions
		want lab.Script
	}{
		{"nothing", labServeOptions{}, lab.Script{}},
		{"numbers and text", labServeOptions{set: []string{"turns=2", "answer=A: {a}"}}, lab.Script{Turns: 2, Answer: "A: {a}"}},
		{"text that is JSON", labServeOptions{set: []string{`answer="7"`}}, lab.Script{Answer: "7"}},
		{"into an object", labServeOptions{set: []string{"tool.name=add", `models=["a","b"]`}}, lab.Script{Tool: lab.Tool{Name: "add"}, Models: []string{"a", "b"}}},
		{"a list with commas", labServeOptions{set: []string{`faults=[{"kind":"status","status":429,"rate":0.1}]`}}, lab.Script{Faults: []lab.Fault{{Kind: "status", Status: 429, Rate: 0.1}}}},
		{"flags over set", labServeOptions{set: []string{"seed=1", "latency_min_ms=1"}, seed: new(int64(1<<62 + 1)), latency: "5ms-2s"}, lab.Script{Seed: 1<<62 + 1, LatencyMinMS: 5, LatencyMaxMS: 2000}},
		{"a large seed", labServeOptions{set: []string{"seed=4611686018427387905", "turns=1"}}, lab.Script{Seed: 4611686018427387905, Turns: 1}},
		{"one latency", labServeOptions{latency: "7ms"}, lab.Script{LatencyMinMS: 7, LatencyMaxMS: 7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := labScript(tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, equateEmpty()); diff != "" {
				t.Errorf("script (-want +got):\n%s", diff)
			}
		})
	}
}

// equateEmpty takes nil and empty slices for the same.
func equateEmpty() cmp.Option {
	return cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
}

func TestLabScriptFails(t *testing.T) {
	tests := []struct {
		opts labServeOptions
		want string
	}{
		{labServeOptions{script: "nowhere.json"}, "open nowhere.json: no such file or directory"},
		{labServeOptions{set: []string{"turns"}}, "--set turns: want KEY=VALUE"},
		{labServeOptions{set: []string{"trns=2"}}, `--set trns=2: reading lab script: json: unknown field "trns"`},
		{labServeOptions{set: []string{"seed.x=2"}}, `--set seed.x=2: there is no object that has a key "x"`},
		{labServeOptions{set: []string{"turns=-1"}}, "--set turns=-1: lab script: turns is -1: want 0 to 86400000"},
		{labServeOptions{latency: "soon"}, `--latency soon: time: invalid duration "soon"`},
		{labServeOptions{latency: "9ms-5ms"}, "--latency 9ms-5ms: want MIN-MAX"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			_, err := labScript(tt.opts)
			if err == nil {
				t.Fatal("got no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
