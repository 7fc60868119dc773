// Package metric holds the formulae of the standard tables as pure functions:
// pass rates with their intervals, bounds for what is missing, pass@k and
// pass^k.
//
// A value that is not defined is nil or reported by ok = false, never zero and
// never NaN. Episodes without a reward are missing: they are in no numerator
// and in no denominator of an observed value; [Bound] says how far they could
// move it.
package metric
