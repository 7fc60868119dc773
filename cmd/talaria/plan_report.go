package main

import (
	"slices"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

// planReport is what run would do. Its JSON keeps its meaning between releases.
type planReport struct {
	Config   string        `json:"config"`
	Dir      string        `json:"dir"`     // of the run, with marks for what is drawn when it is made
	Resumes  bool          `json:"resumes"` // a run that there is goes on
	Checks   []planCheck   `json:"checks"`
	Variants []planVariant `json:"variants"`
	Sources  []planSource  `json:"sources"`
	Cells    []planCell    `json:"cells"` // of each variant and source
	Total    planCell      `json:"total"`
	Examples []planExample `json:"examples"` // the runs behind what is expected
	Limits   planLimits    `json:"limits"`
	Prompts  []planPrompt  `json:"prompts,omitempty"`
}

// planCheck is one thing that run needs.
type planCheck struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what is wrong, where it is not ok
}

// planVariant is one point of the sweep.
type planVariant struct {
	Variant  string           `json:"variant"`
	Params   map[string]any   `json:"params"` // swept key to value
	Model    string           `json:"model"`
	Endpoint string           `json:"endpoint"` // "" for scripted models
	Toolsets []string         `json:"toolsets"`
	Sampling dataset.Sampling `json:"sampling"`
}

// planSource is one source of tasks.
type planSource struct {
	Source  string   `json:"source"`
	Path    string   `json:"path"`
	Env     string   `json:"env"`
	Tasks   int      `json:"tasks"`    // of the shard
	BadRows int      `json:"bad_rows"` // that on_bad_row skips
	LeftOut int      `json:"left_out"` // tasks that this machine cannot run
	Notes   []string `json:"notes"`    // the first of both
}

// planCell is what one variant would do on one source.
type planCell struct {
	Variant  string `json:"variant"`
	Source   string `json:"source"`
	Episodes int    `json:"episodes"`
	Reused   int    `json:"reused"`  // ended and recorded: they do not run
	ToRun    int    `json:"to_run"`  // the rest
	Again    int    `json:"again"`   // of to_run: an attempt is recorded already
	Rescore  int    `json:"rescore"` // of reused: scored again without a model call

	Prompts   int   `json:"prompts"`     // first requests that were made and measured
	Prompt    int64 `json:"prompt_mean"` // their tokens, at about four bytes each
	PromptMax int64 `json:"prompt_max"`
	// MaxCalls of an episode, 0 if nothing bounds them; MaxOutput tokens of a
	// call, likewise.
	MaxCalls  int   `json:"max_calls"`
	MaxOutput int64 `json:"max_output"`

	planEstimate
}

// planEstimate is what the episodes to run will use. Min is sure but for the
// size of a token, Max is what nothing can exceed but retries, Expected is what
// a run used that is taken as an example. Null is not known.
type planEstimate struct {
	Basis           string     `json:"basis"` // the run taken as an example, or "prompts"
	TokensIn        planAmount `json:"tokens_in"`
	TokensOut       planAmount `json:"tokens_out"`
	CostNanoUSD     planAmount `json:"cost_nanousd"`
	ExpectedSeconds *float64   `json:"expected_seconds"`
}

// planAmount is an estimated amount.
type planAmount struct {
	Min      *int64 `json:"min"`
	Expected *int64 `json:"expected"`
	Max      *int64 `json:"max"`
}

// planExample is a run that others are estimated from.
type planExample struct {
	Run       string  `json:"run"`
	Episodes  int     `json:"episodes"`
	PerSecond float64 `json:"per_second"` // while it ran; 0: not known
	AtOnce    int     `json:"at_once"`    // its limit of episodes in flight; 0: not known
}

// planLimits are the run's, 0 for none, and what of them is used up.
type planLimits struct {
	CostUSD      float64 `json:"cost_usd"`
	Tokens       int64   `json:"tokens"`
	Seconds      float64 `json:"seconds"`
	SpentNanoUSD int64   `json:"spent_nanousd"`
	SpentTokens  int64   `json:"spent_tokens"`
	AtOnce       int     `json:"at_once"` // episodes in flight
}

// check adds a check, which holds unless err is set.
func (r *planReport) check(name, detail string, err error) {
	if err != nil {
		detail = err.Error()
	}
	r.Checks = append(r.Checks, planCheck{Check: name, OK: err == nil, Detail: detail})
}

// tells whether err is told already.
func (r *planReport) tells(err error) bool {
	return slices.ContainsFunc(r.Checks, func(c planCheck) bool { return !c.OK && c.Detail == err.Error() })
}

// bad are the names of the checks that have failed.
func (r *planReport) bad() []string {
	var names []string
	for _, c := range r.Checks {
		if !c.OK && !slices.Contains(names, c.Check) {
			names = append(names, c.Check)
		}
	}
	return names
}

func (r *planReport) describe(variants []configs.Variant) {
	for _, v := range variants {
		a := v.Run.Agent
		r.Variants = append(r.Variants, planVariant{
			Variant: v.Name, Params: v.Params, Model: a.Model, Endpoint: endpointOf(v.Run),
			Toolsets: a.Toolsets, Sampling: a.Sampling.Dataset(),
		})
	}
}

func (r *planReport) sources(s *session) {
	for i, src := range s.cfg.Sources() {
		bad, skipped := s.sources[i].Bad(), s.sources[i].Skipped()
		p := planSource{
			Source: src.Name, Path: src.Path, Env: src.Env, BadRows: bad.Count, LeftOut: len(skipped), Notes: []string{},
		}
		for _, row := range bad.First {
			p.Notes = append(p.Notes, row.Error())
		}
		for _, skip := range skipped {
			p.Notes = append(p.Notes, skip.Task+" is left out: "+skip.Reason)
		}
		r.Sources = append(r.Sources, p)
	}
}

// count makes the cells.
func (r *planReport) count(s *session, counts [][]runner.Forecast) {
	for v, row := range counts {
		for i, f := range row {
			cell := &s.cells[v][i]
			r.Sources[i].Tasks = f.Planned / s.cfg.Samples
			r.Cells = append(r.Cells, planCell{
				Variant: cell.Variant.Name, Source: r.Sources[i].Source,
				Episodes: f.Planned, Reused: f.Reused(), ToRun: f.Due, Again: f.Again, Rescore: f.Waiting,
				MaxOutput: model.MaxOutput(&cell.Variant.Sampling),
			})
		}
	}
}

func (r *planReport) limits(cfg *configs.Run, index *store.Index) {
	l := cfg.Limits
	r.Limits = planLimits{
		CostUSD: l.Run.CostUSD, Tokens: l.Run.Tokens, Seconds: l.Run.Time.Seconds(), AtOnce: l.Concurrency.Episodes,
	}
	if index != nil {
		spent := runner.Spent(index)
		r.Limits.SpentNanoUSD, r.Limits.SpentTokens = spent.NanoUSD, spent.Tokens
	}
}
