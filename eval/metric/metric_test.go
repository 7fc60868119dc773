package metric

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var close4 = cmpopts.EquateApprox(0, 5e-5)

func TestWilson(t *testing.T) {
	tests := []struct {
		name string
		p, n float64
		want Interval
		ok   bool
	}{
		{"half of ten", 0.5, 10, Interval{0.2366, 0.7634}, true},
		{"none of ten", 0, 10, Interval{0, 0.2775}, true},
		{"all of a hundred", 1, 100, Interval{0.9630, 1}, true},
		{"Brown, Cai and DasGupta: 0 of 20", 0, 20, Interval{0, 0.1611}, true},
		{"no trial", 0.5, 0, Interval{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Wilson(tt.p, tt.n, Z95)
			if diff := cmp.Diff(tt.want, got, close4); diff != "" || ok != tt.ok {
				t.Errorf("Wilson(%v, %v), ok %v (-want +got):\n%s", tt.p, tt.n, ok, diff)
			}
		})
	}
}

// of makes a cluster of values.
func of(values ...float64) Cluster {
	c := Cluster{N: len(values)}
	for _, v := range values {
		c.Sum += v
	}
	return c
}

func TestMean(t *testing.T) {
	tests := []struct {
		name     string
		clusters []Cluster
		mean, se float64
		ok       bool
	}{
		{"single values: s/sqrt(n)", []Cluster{of(1), of(0), of(0), of(1)}, 0.5, math.Sqrt(1.0 / 3 / 4), true},
		{"two tasks that agree with themselves", []Cluster{of(1, 1), of(0, 0)}, 0.5, 0.5, true},
		{"two tasks that are alike", []Cluster{of(1, 0), of(0, 1)}, 0.5, 0, true},
		{"unequal sizes", []Cluster{of(1, 1, 1), of(0)}, 0.75, math.Sqrt(2*(0.75*0.75+0.75*0.75)) / 4, true},
		{"an empty cluster counts for nothing", []Cluster{of(1), of(), of(0)}, 0.5, 0.5, true},
		{"one cluster has no error", []Cluster{of(1, 0)}, 0.5, 0, true},
		{"no value", []Cluster{of()}, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mean, se, ok := Mean(tt.clusters)
			got, want := []float64{mean, se}, []float64{tt.mean, tt.se}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || ok != tt.ok {
				t.Errorf("Mean, ok %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestPassRate(t *testing.T) {
	tests := []struct {
		name     string
		clusters []Cluster
		want     Rate
		ok       bool
	}{
		{
			"one sample a task: plain Wilson",
			[]Cluster{of(1), of(0), of(1), of(0)},
			Rate{0.5, 0.2887, Interval{0.1500, 0.8500}, MethodWilson},
			true,
		},
		{
			"samples that always agree count once",
			[]Cluster{of(1, 1), of(0, 0), of(1, 1), of(0, 0)},
			Rate{0.5, 0.2887, Interval{0.1500, 0.8500}, MethodClustered},
			true,
		},
		{
			"all pass: each task counts once",
			[]Cluster{of(1, 1), of(1, 1)},
			Rate{1, 0, Interval{0.3424, 1}, MethodClustered},
			true,
		},
		{"nothing scored", []Cluster{{}}, Rate{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := PassRate(tt.clusters)
			if diff := cmp.Diff(tt.want, got, close4); diff != "" || ok != tt.ok {
				t.Errorf("PassRate, ok %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestEffectiveSizeIsAtMostN(t *testing.T) {
	if got := EffectiveSize(0.5, 1e-9, 8, 4); got != 8 {
		t.Errorf("EffectiveSize = %v, want 8", got)
	}
}

func TestEstimators(t *testing.T) {
	tests := []struct {
		name    string
		n, c, k int
		at, hat float64
		defined bool
	}{
		{"5 samples, 2 pass, k=2: 1 - 3/10, 1/10", 5, 2, 2, 0.7, 0.1, true},
		{"4 samples, 3 pass, k=2: 1, 3/6", 4, 3, 2, 1, 0.5, true},
		{"k=1 is the rate", 8, 3, 1, 0.375, 0.375, true},
		{"10 samples, 3 pass, k=5: 1 - 21/252, 0", 10, 3, 5, 1 - 21.0/252, 0, true},
		{"none pass", 4, 0, 4, 0, 0, true},
		{"all pass", 4, 4, 4, 1, 1, true},
		{"large n stays exact: 1 - C(999,100)/C(1000,100)", 1000, 1, 100, 0.1, 0, true},
		{"too few samples", 3, 3, 4, 0, 0, false},
		{"k of nothing", 3, 3, 0, 0, 0, false},
		{"more passes than samples", 3, 4, 1, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at, okAt := PassAtK(tt.n, tt.c, tt.k)
			hat, okHat := PassHatK(tt.n, tt.c, tt.k)
			got, want := []float64{at, hat}, []float64{tt.at, tt.hat}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || okAt != tt.defined || okHat != tt.defined {
				t.Errorf("ok %v, %v (-want +got):\n%s", okAt, okHat, diff)
			}
		})
	}
}

// TestPassAtKCountsDraws compares the estimators with the share of all draws
// of k samples, counted one by one.
func TestPassAtKCountsDraws(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				at, _ := PassAtK(n, c, k)
				hat, _ := PassHatK(n, c, k)
				wantAt, wantHat := countDraws(n, c, k)
				if math.Abs(at-wantAt) > 1e-12 || math.Abs(hat-wantHat) > 1e-12 {
					t.Errorf("n=%d c=%d k=%d: got %v, %v, want %v, %v", n, c, k, at, hat, wantAt, wantHat)
				}
			}
		}
	}
}

// countDraws goes through all subsets of k of n samples, of which the first c
// pass: the share with any pass and the share with only passes.
func countDraws(n, c, k int) (anyPass, allPass float64) {
	draws := 0.0
	for set := range 1 << n {
		size, passes := 0, 0
		for i := range n {
			if set>>i&1 == 1 {
				size++
				if i < c {
					passes++
				}
			}
		}
		if size != k {
			continue
		}
		draws++
		if passes > 0 {
			anyPass++
		}
		if passes == k {
			allPass++
		}
	}
	return anyPass / draws, allPass / draws
}

func TestPowers(t *testing.T) {
	groups := []Counts{{N: 2, Scored: 2, Passed: 1}, {N: 2, Scored: 1, Passed: 1}, {N: 1, Scored: 0}}
	got := Powers(groups, PassAtK)
	want := []Power{
		{K: 1, Value: new(0.75), Groups: 2, Min: new((0.5 + 0.5 + 0) / 3), Max: new((0.5 + 1 + 1) / 3)},
		{K: 2, Value: new(1.0), Groups: 1, Min: new(1.0), Max: new(1.0)},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("Powers (-want +got):\n%s", diff)
	}
}

func TestPowersOfNothing(t *testing.T) {
	got := Powers([]Counts{{N: 1}}, PassHatK)
	want := []Power{{K: 1, Min: new(0.0), Max: new(1.0)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Powers (-want +got):\n%s", diff)
	}
}

func TestBound(t *testing.T) {
	tests := []struct {
		name        string
		sum         float64
		observed, n int
		low, high   float64
		want        Interval
		ok          bool
	}{
		{"nothing missing", 3, 4, 4, 0, 1, Interval{0.75, 0.75}, true},
		{"one of four missing", 3, 3, 4, 0, 1, Interval{0.75, 1}, true},
		{"all missing", 0, 0, 4, 0, 1, Interval{0, 1}, true},
		{"a wider range", 1, 2, 4, -1, 3, Interval{-0.25, 1.75}, true},
		{"no episode", 0, 0, 0, 0, 1, Interval{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Bound(tt.sum, tt.observed, tt.n, tt.low, tt.high)
			if got != tt.want || ok != tt.ok {
				t.Errorf("Bound = %v, %v, want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}
