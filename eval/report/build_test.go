//go:build cgo

package report_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/evaltest"
	"github.com/talaria-run/talaria/eval/query"
	"github.com/talaria-run/talaria/eval/report"
	"github.com/talaria-run/talaria/eval/table"
)

func build(t *testing.T, db *query.DB) *report.Report {
	t.Helper()
	r, err := report.Build(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBuild holds the report against the golden JSON, whose field names are a
// contract.
func TestBuild(t *testing.T) {
	r := build(t, evaltest.DB(t, evaltest.Alpha(t), evaltest.Beta(t)))
	golden(t, "two_runs.json", write(t, r, table.JSON))
}

func TestBuildOfAnEmptyRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "empty")
	s, err := store.Create(dir, store.Run{RunID: "empty", Name: "empty", State: store.StateRunning, CreatedAt: evaltest.Start()}, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "empty.json", write(t, build(t, evaltest.DB(t, &evaltest.Run{Dir: dir})), table.JSON))
}

// sums is what is computed of a variant without SQL and without eval/metric.
type sums struct {
	Episodes, Scored, Passed, Missing, Attempts int
	PassRate, PassRateSE, RewardMean, Cost      float64
	CostKnown                                   bool
	PassAt2, PassHat2                           float64
	Input, Output                               int64
	WorkingP50                                  float64
}

// current is each episode's current attempt, by naive inspection.
func current(run *evaltest.Run, variant string) map[string]*dataset.Trajectory {
	all := map[string]*dataset.Trajectory{}
	for _, tr := range run.Trajectories {
		if tr.Episode.Variant != variant {
			continue
		}
		was, seen := all[tr.Episode.ID]
		redone := tr.Outcome() == dataset.OutcomeInfra || tr.Outcome() == dataset.OutcomeOperator
		if !seen || !redone || was.Outcome() == dataset.OutcomeInfra || was.Outcome() == dataset.OutcomeOperator {
			all[tr.Episode.ID] = tr
		}
	}
	return all
}

// reward is the latest chosen value of an attempt, nil unless the model ended it.
func reward(run *evaltest.Run, tr *dataset.Trajectory) *float64 {
	value := tr.Reward
	for _, late := range run.Late {
		if late.EpisodeID == tr.Episode.ID && late.Attempt == tr.Episode.Attempt {
			value = late.Reward.Value
		}
	}
	if tr.Outcome() != dataset.OutcomeModel {
		return nil
	}
	return value
}

func compute(run *evaltest.Run, variant string) sums {
	s := sums{CostKnown: true}
	byTask := map[string][]float64{} // rewards
	var working []float64
	for _, tr := range current(run, variant) {
		s.Episodes++
		task := tr.Episode.Task.ID
		if tr.Outcome() == dataset.OutcomeModel {
			working = append(working, float64(tr.Working.Milliseconds()))
		}
		value := reward(run, tr)
		if value == nil {
			s.Missing++
			continue
		}
		s.Scored++
		byTask[task] = append(byTask[task], *value)
		s.RewardMean += *value
		if *value >= 1 {
			s.Passed++
		}
	}
	s.RewardMean /= float64(s.Scored)
	s.PassRate = float64(s.Passed) / float64(s.Scored)
	residuals, pairs := 0.0, 0.0
	for _, values := range byTask {
		passes := 0.0
		for _, v := range values {
			if v >= 1 {
				passes++
			}
		}
		residuals += math.Pow(passes-float64(len(values))*s.PassRate, 2)
		if len(values) == 2 {
			pairs++
			s.PassAt2 += min(passes, 1)
			s.PassHat2 += max(passes-1, 0)
		}
	}
	tasks := float64(len(byTask))
	s.PassRateSE = math.Sqrt(tasks/(tasks-1)*residuals) / float64(s.Scored)
	s.PassAt2, s.PassHat2 = s.PassAt2/pairs, s.PassHat2/pairs
	slices.Sort(working)
	middle := float64(len(working)-1) / 2
	s.WorkingP50 = (working[int(math.Floor(middle))] + working[int(math.Ceil(middle))]) / 2
	for _, tr := range run.Trajectories {
		if tr.Episode.Variant == variant {
			s.Attempts++
			s.spend(tr)
		}
	}
	return s
}

func (s *sums) spend(tr *dataset.Trajectory) {
	s.Cost += float64(tr.Books.CostKnown) / 1e9
	s.CostKnown = s.CostKnown && tr.Books.Cost() != nil
	s.Input += tr.Books.Usage.Input
	s.Output += tr.Books.Usage.Output
	for _, child := range tr.Children {
		s.spend(child)
	}
}

func reported(v *report.Variant) sums {
	return sums{
		Episodes: v.Episodes, Scored: v.Scored, Passed: v.Passed, Missing: v.Missing.All(), Attempts: v.Attempts,
		PassRate: *v.PassRate, PassRateSE: *v.PassRateStdErr, RewardMean: *v.RewardMean,
		Cost: v.CostKnownUSD, CostKnown: v.CostUSD != nil,
		PassAt2: *v.PassAtK[1].Value, PassHat2: *v.PassHatK[1].Value,
		Input: v.Tokens.Input, Output: v.Tokens.Output, WorkingP50: *v.WorkingMS.P50,
	}
}

func TestBuildAgreesWithACount(t *testing.T) {
	run := evaltest.Alpha(t)
	r := build(t, evaltest.DB(t, run))
	for i := range r.Variants {
		v := &r.Variants[i]
		want, got := compute(run, v.Variant), reported(v)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-counted +reported):\n%s", v.Variant, diff)
		}
	}
	if len(r.Variants) != 2 {
		t.Errorf("there are %d variants, want 2", len(r.Variants))
	}
}
