package show

import (
	"fmt"
	"strings"
	"time"
)

// Small words for values; "" stands for what need not be said.

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func under(label string, s *string) string {
	if s == nil {
		return ""
	}
	return label + *s
}

func nth(occurrence int32) string {
	if occurrence == 0 {
		return ""
	}
	return fmt.Sprintf("occurrence %d", occurrence)
}

func truncated(b bool) string {
	if b {
		return "truncated"
	}
	return ""
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func value(v *float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(*v)
}

func passed(p *bool) string {
	switch {
	case p == nil:
		return ""
	case *p:
		return "passed"
	default:
		return "not passed"
	}
}

// atRun says what the reward was when the attempt ended, where that differs.
func atRun(now, then *float64) string {
	if now == nil || then != nil && *now == *then {
		return ""
	}
	return "at the end of the attempt " + value(then)
}

func rule(a *Attempt) string { return "rule " + a.RewardRule }

const nano = 1e9

func dollars(n int64) string { return fmt.Sprintf("$%.6f", float64(n)/nano) }

// cost is what the attempt's own calls cost, as far as it is known.
func cost(a *Attempt) string {
	if a.CostNanoUSD != nil {
		return dollars(*a.CostNanoUSD)
	}
	return fmt.Sprintf("not known (%s known, %d calls unpriced, %d unreported)",
		dollars(a.CostKnownNanoUSD), a.UnpricedCalls, a.UnreportedCalls)
}

func auxCost(a *Attempt) string {
	if a.AuxCostNanoUSD == nil {
		return ""
	}
	return "judges and simulated users " + dollars(*a.AuxCostNanoUSD)
}

func seconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func part(name string, ms int64) string {
	if ms == 0 {
		return ""
	}
	return name + " " + seconds(ms)
}

func clock(i Instant) string { return i.Format("2006-01-02 15:04:05.000Z") }
