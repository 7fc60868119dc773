package main

import (
	"strings"
	"testing"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
)

func TestWriteSummary(t *testing.T) {
	rows := []summaryRow{
		{"openai/a", 0, store.Tally{
			Episodes: map[dataset.Outcome]int{dataset.OutcomeModel: 1190, dataset.OutcomeInfra: 10},
			Scored:   1190, Passed: 595, RewardSum: 600.5, Truncated: 7,
			Usage: dataset.Usage{Input: 3_000_000, CacheRead: 500_000, Output: 250_000}, CostKnown: 4_500_000_000,
		}},
		{"scripted/null", 0, store.Tally{Episodes: map[dataset.Outcome]int{dataset.OutcomeModel: 1200}, Scored: 1200}},
		{"unpriced", 0, store.Tally{
			Episodes: map[dataset.Outcome]int{dataset.OutcomeModel: 5}, Unscored: 5,
			Usage: dataset.Usage{Input: 50, Output: 5}, CostUnknown: 5,
		}},
	}
	var all, clean strings.Builder
	if err := writeSummary(&all, rows); err != nil {
		t.Fatal(err)
	}
	if err := writeSummary(&clean, rows[1:2]); err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.txt", all.String()+"\n"+clean.String())
}
