package metric

// PassAtK is the unbiased estimate of the chance that at least one of k
// samples passes, from n samples of which c passed:
//
//	1 - C(n-c, k) / C(n, k)
//
// Chen et al. (2021), "Evaluating Large Language Models Trained on Code",
// arXiv:2107.03374. ok is false where n < k: fewer samples say nothing about k.
func PassAtK(n, c, k int) (p float64, ok bool) {
	if k < 1 || n < k || c < 0 || c > n {
		return 0, false
	}
	none := 1.0 // the chance that k samples drawn without replacement all fail
	for i := range k {
		none *= float64(n-c-i) / float64(n-i)
		if none <= 0 {
			return 1, true
		}
	}
	return 1 - none, true
}

// PassHatK is the unbiased estimate of the chance that all of k samples pass:
//
//	C(c, k) / C(n, k)
//
// Yao et al. (2024), "tau-bench", arXiv:2406.12045. ok is false where n < k.
func PassHatK(n, c, k int) (p float64, ok bool) {
	if k < 1 || n < k || c < 0 || c > n {
		return 0, false
	}
	p = 1
	for i := range k {
		if c-i <= 0 {
			return 0, true
		}
		p *= float64(c-i) / float64(n-i)
	}
	return p, true
}

// Counts is how a group of samples of one task came out.
type Counts struct {
	N      int // samples with a row
	Scored int // of them, those with a reward
	Passed int // of those, the ones that passed
}

// Estimator is [PassAtK] or [PassHatK].
type Estimator func(n, c, k int) (float64, bool)

// Power is pass@k or pass^k, averaged over groups.
type Power struct {
	K      int      `json:"k"`
	Value  *float64 `json:"value"`  // over the groups with k scored samples; nil if there is none
	Groups int      `json:"groups"` // how many those are
	// Min and Max are the average over all groups of k samples were every
	// missing reward a failure, or a pass; nil if there is no such group.
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

// Powers applies an estimator to every group, for k = 1 to the largest number
// of samples.
func Powers(groups []Counts, estimate Estimator) []Power {
	most := 0
	for _, g := range groups {
		most = max(most, g.N)
	}
	powers := make([]Power, 0, most)
	for k := 1; k <= most; k++ {
		powers = append(powers, power(groups, estimate, k))
	}
	return powers
}

func power(groups []Counts, estimate Estimator, k int) Power {
	var value, low, high average
	for _, g := range groups {
		value.add(estimate(g.Scored, g.Passed, k))
		low.add(estimate(g.N, g.Passed, k))
		high.add(estimate(g.N, g.Passed+g.N-g.Scored, k))
	}
	return Power{K: k, Value: value.mean(), Groups: value.n, Min: low.mean(), Max: high.mean()}
}

// average of the values that are defined.
type average struct {
	sum float64
	n   int
}

func (a *average) add(v float64, ok bool) {
	if ok {
		a.sum += v
		a.n++
	}
}

func (a *average) mean() *float64 {
	if a.n == 0 {
		return nil
	}
	m := a.sum / float64(a.n)
	return &m
}
