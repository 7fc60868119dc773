package metric

import "math"

// Z95 is the normal quantile of a two-sided 95 % interval.
const Z95 = 1.959963984540054

// Interval is a closed interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Wilson is the score interval of Wilson (1927) for a proportion p observed in
// n trials. Unlike the normal interval it stays within [0, 1] and keeps its
// width at p = 0 and p = 1. n need not be whole: see [EffectiveSize]. ok is
// false for n <= 0.
func Wilson(p, n, z float64) (interval Interval, ok bool) {
	if n <= 0 {
		return Interval{}, false
	}
	z2 := z * z
	centre := (p + z2/(2*n)) / (1 + z2/n)
	half := z / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return Interval{Low: max(0, centre-half), High: min(1, centre+half)}, true
}

// Cluster sums up the values of one task: samples of a task are not
// independent of each other.
type Cluster struct {
	N   int     // values
	Sum float64 // of the values
}

// Mean is the mean of all values and its clustered standard error: with the
// clusters' residual sums r_c = sum of (x - mean) over cluster c and C clusters,
//
//	se = sqrt(C/(C-1) * sum over c of r_c^2) / n
//
// It is the cluster-robust error of Liang and Zeger (1986) with the usual
// correction for few clusters, as proposed for evaluations by Miller (2024,
// arXiv:2411.00640). Where every cluster has one value it equals the ordinary
// standard error s/sqrt(n). ok is false for no value; se is NaN-free and 0 for
// fewer than two clusters, where it is not defined.
func Mean(clusters []Cluster) (mean, se float64, ok bool) {
	n, sum, used := 0, 0.0, 0
	for _, c := range clusters {
		n, sum = n+c.N, sum+c.Sum
		if c.N > 0 {
			used++
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	mean = sum / float64(n)
	if used < 2 {
		return mean, 0, true
	}
	squares := 0.0
	for _, c := range clusters {
		r := c.Sum - float64(c.N)*mean
		squares += r * r
	}
	correction := float64(used) / float64(used-1)
	return mean, math.Sqrt(correction*squares) / float64(n), true
}

// Methods by which [PassRate] came to its interval.
const (
	MethodWilson    = "wilson"
	MethodClustered = "wilson_clustered"
)

// Rate is a proportion with its standard error and 95 % interval.
type Rate struct {
	Value    float64
	StdErr   float64
	Interval Interval
	Method   string // MethodWilson or MethodClustered
}

// PassRate is the share of passes with its interval. Where each task has one
// value the interval is Wilson's over n. Where a task has several, the
// clustered standard error gives the [EffectiveSize], and the interval is
// Wilson's over that. ok is false for no value.
func PassRate(clusters []Cluster) (rate Rate, ok bool) {
	p, se, ok := Mean(clusters)
	if !ok {
		return Rate{}, false
	}
	n, tasks := size(clusters)
	rate = Rate{Value: p, StdErr: se, Method: MethodWilson}
	effective := float64(n)
	if n > tasks {
		rate.Method = MethodClustered
		effective = EffectiveSize(p, se, n, tasks)
	}
	rate.Interval, _ = Wilson(p, effective, Z95)
	return rate, true
}

// EffectiveSize is the number of independent trials that would give a
// proportion p the standard error se of [Mean]: p(1-p)/se^2 + 1, at most n; it
// is n itself where each task has one value. Where the error says nothing,
// because all values are equal or there is one task, each task counts once.
func EffectiveSize(p, se float64, n, tasks int) float64 {
	if se <= 0 || tasks < 2 {
		return float64(tasks)
	}
	return min(p*(1-p)/(se*se)+1, float64(n))
}

func size(clusters []Cluster) (n, tasks int) {
	for _, c := range clusters {
		n += c.N
		if c.N > 0 {
			tasks++
		}
	}
	return n, tasks
}

// Bound is the range that the mean of n values may have when only observed of
// them, with the given sum, are known and each missing one lies within
// [low, high]. ok is false for n <= 0.
func Bound(sum float64, observed, n int, low, high float64) (interval Interval, ok bool) {
	if n <= 0 {
		return Interval{}, false
	}
	missing := float64(n - observed)
	return Interval{Low: (sum + missing*low) / float64(n), High: (sum + missing*high) / float64(n)}, true
}
