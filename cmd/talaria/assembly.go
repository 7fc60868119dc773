package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent"
	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/tool"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/answer"
	"github.com/talaria-run/talaria/env/terminal"
	"github.com/talaria-run/talaria/eval/score"
	"github.com/talaria-run/talaria/runner"
)

// envs are the worlds that a config can name.
func envs() env.Registry {
	return env.Registry{"answer": answer.New, "terminal": terminal.New}
}

// assembly makes what a run needs out of its config. Nothing of it touches the
// run's directory or a provider, so that all that is wrong with a config is
// known before anything is spent.
type assembly struct {
	cfg       *configs.Run
	std       *stdio
	prices    prices
	budget    *budget
	calls     *ledger
	endpoints endpoints
	replays   replays
	sandboxes sandboxes
	// rehearsal stands in for every model and sandbox; nil: the real ones.
	rehearsal *rehearsal
}

// ledger is where model calls are written: the store, once it is open.
type ledger struct{ model.CallSink }

// budget is the run's, once it is known what earlier invocations spent.
type budget struct{ model.Budget }

func newAssembly(cfg *configs.Run, std *stdio) (*assembly, error) {
	list, err := loadPrices(cfg.Prices)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Place("prices"), err)
	}
	return &assembly{
		cfg: cfg, std: std, prices: list, budget: &budget{}, calls: &ledger{},
		endpoints: endpoints{
			ceiling: cfg.Limits.Concurrency.Requests,
			bounds: model.LimiterOptions{
				RequestsPerMinute: cfg.Limits.RequestsPerMinute, TokensPerMinute: cfg.Limits.TokensPerMinute,
			},
			byURL: map[string]server{},
		},
		replays:   replays{},
		sandboxes: sandboxes{cfg: cfg, log: std.log},
	}, nil
}

// prices are the tables by which calls are priced.
type prices struct {
	list *model.PriceTable // the embedded list prices under the user's own
	own  *model.PriceTable // the user's own alone; they hold wherever a model is served
}

// of is the table for a model of an endpoint: list prices are those of the
// provider itself, not of others that serve a model under the same name.
func (p prices) of(run *configs.Run) *model.PriceTable {
	if run.Agent.OwnEndpoint() { // scripted models have none
		return p.list
	}
	return p.own
}

func loadPrices(path string) (prices, error) {
	p := prices{list: model.EmbeddedPrices(), own: &model.PriceTable{}}
	if path == "" {
		return p, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	if p.own, err = model.LoadPrices(bytes.NewReader(text)); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	p.list = p.list.With(p.own)
	return p, nil
}

// cells makes the cells of every variant and source, and reports all that is
// wrong at once.
func (a *assembly) cells(ctx context.Context) ([][]runner.Cell, error) {
	variants, err := a.cfg.Variants()
	if err != nil {
		return nil, err
	}
	var problems []error
	all := make([][]runner.Cell, len(variants))
	for i, v := range variants {
		for s := range v.Run.Sources() {
			cell, err := a.cell(ctx, v, s)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			all[i] = append(all[i], cell)
		}
	}
	return all, joinDistinct(problems)
}

// joinDistinct joins errors and leaves repeats out: a sweep repeats what is
// wrong with the rest of its config.
func joinDistinct(errs []error) error {
	seen := map[string]bool{}
	distinct := slices.DeleteFunc(errs, func(err error) bool {
		again := seen[err.Error()]
		seen[err.Error()] = true
		return again
	})
	return errors.Join(distinct...)
}

func (a *assembly) cell(ctx context.Context, v configs.Variant, source int) (runner.Cell, error) {
	src := v.Run.Sources()[source]
	prompt, err := v.Run.Prompt()
	if err != nil {
		return runner.Cell{}, err
	}
	scorers, err := a.scorers(v.Run, src)
	if err != nil {
		return runner.Cell{}, err
	}
	factory, err := a.env(ctx, v.Run, src, prompt)
	if err != nil {
		return runner.Cell{}, err
	}
	tools, err := tools(v.Run, src)
	if err != nil {
		return runner.Cell{}, err
	}
	described := a.describe(v, src, prompt, tools, scorers)
	m, err := a.model(v.Run, src, described, scorers)
	if a.rehearsal != nil {
		m, err = a.rehearsal.model(err), nil
	}
	if err != nil {
		return runner.Cell{}, err
	}
	loop, err := agent.New(agent.Options{
		Model: m, Tools: tools, SystemPrompt: v.Run.Agent.SystemPrompt,
		Sampling: described.Sampling, Limits: episodeLimits(v.Run.Limits.Episode),
	})
	if err != nil {
		return runner.Cell{}, fmt.Errorf("variant %q: %w", v.Name, err)
	}
	return runner.Cell{Variant: described, Env: factory, Rollout: loop, Scorers: asScorers(scorers)}, nil
}

func (a *assembly) env(ctx context.Context, run *configs.Run, src configs.Source, prompt *configs.Prompt) (env.Factory, error) {
	construct, ok := envs()[src.Env]
	if !ok {
		names := envs().Names()
		return nil, fmt.Errorf("%s: there is no env %q%s; the envs are %s",
			run.Place("env.name"), src.Env, didYouMean(src.Env, names), strings.Join(names, ", "))
	}
	backend, spec, err := a.sandboxes.setup(ctx, run, src.Env)
	if err != nil {
		return nil, err
	}
	return construct(env.Setup{
		Prompt: prompt.Messages, Decode: src.EnvParams, Backend: backend, Spec: spec, LookupEnv: a.std.lookupSecret,
	})
}

func (a *assembly) scorers(run *configs.Run, src configs.Source) (*score.Set, error) {
	list := make([]score.Config, len(src.Score))
	for i, s := range src.Score {
		list[i] = score.Config{
			Name: s.Name, Extract: s.Extract, TargetExtract: s.TargetExtract, Chosen: s.Chosen, Decode: s.Params,
		}
	}
	set, err := score.New(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Place("score"), err)
	}
	return set, nil
}

// tools are those of the config's toolsets that can act in the env: where it has
// no sandbox, those that act in one are left out, so that sources of tasks with
// different envs may share a config.
func tools(run *configs.Run, src configs.Source) ([]env.Tool, error) {
	all, err := tool.Resolve(run.Agent.Toolsets)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Place("agent.toolsets"), err)
	}
	if sandboxedEnvs()[src.Env] {
		return all, nil
	}
	return slices.DeleteFunc(all, func(t env.Tool) bool { return t.Bind != nil }), nil
}

// actInSandbox tells whether some tool of the toolsets acts in a sandbox.
func actInSandbox(toolsets []string) bool {
	all, _ := tool.Resolve(toolsets) // they are known to be good
	return slices.ContainsFunc(all, func(t env.Tool) bool { return t.Bind != nil })
}

func asScorers(set *score.Set) []runner.Scorer {
	scorers := make([]runner.Scorer, len(set.Scorers))
	for i, s := range set.Scorers {
		scorers[i] = s
	}
	return scorers
}

// describe is what the rows say of a variant.
func (a *assembly) describe(
	v configs.Variant, src configs.Source, prompt *configs.Prompt, tools []env.Tool, scorers *score.Set,
) dataset.Variant {
	names := make([]string, len(tools))
	texts := make([]any, len(tools))
	for i, t := range tools {
		names[i] = t.Name
		texts[i] = []any{t.Name, t.Description, string(t.Parameters)}
	}
	provider, name, _ := strings.Cut(v.Run.Agent.Model, "/")
	return dataset.Variant{
		Name: v.Name, Params: v.Params,
		Hash: v.Run.VariantHash(src.Index), Identity: v.Run.Identity(src.Index),
		ScorerHash: scorers.Hash, ConfigHash: a.cfg.ConfigHash(),
		Env: src.Env, Agent: v.Run.Agent.Kind, Provider: provider, Model: name,
		Sampling: v.Run.Agent.Sampling.Dataset(),
		Toolsets: v.Run.Agent.Toolsets, Tools: names,
		PromptHash:  prompt.Hash(),
		ToolsHash:   dataset.ID("tools", dataset.Canonical(texts)),
		CodeVersion: buildVersion().code(),
		Tags:        a.cfg.Tags,
	}
}

func episodeLimits(l configs.EpisodeLimits) agent.Limits {
	return agent.Limits{
		Time: l.Time, Turns: l.Turns, Tokens: l.Tokens, CostNanoUSD: nanoUSD(l.CostUSD), Bytes: int64(l.Bytes),
	}
}

// nanoUSD is an amount of dollars in nano-dollars.
func nanoUSD(usd float64) int64 { return int64(usd*1e9 + 0.5) }

// variantsByHash is the constants of every cell, as the store wants them.
func variantsByHash(cells [][]runner.Cell) map[string]dataset.Variant {
	byHash := map[string]dataset.Variant{}
	for _, row := range cells {
		for _, c := range row {
			byHash[c.Variant.Hash] = c.Variant
		}
	}
	return byHash
}

// closeCells closes the factories of all cells.
func closeCells(ctx context.Context, cells [][]runner.Cell) error {
	var errs []error
	for _, row := range cells {
		for _, c := range row {
			errs = append(errs, c.Env.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// mergeVariants is the variants that a run has seen: those recorded, then the
// new ones in the plan's order, the latest description of each.
func mergeVariants(recorded []dataset.Variant, cells [][]runner.Cell) []dataset.Variant {
	merged := slices.Clone(recorded)
	place := map[string]int{}
	for i, v := range merged {
		place[v.Hash] = i
	}
	for _, row := range cells {
		for _, c := range row {
			if i, seen := place[c.Variant.Hash]; seen {
				merged[i] = c.Variant
				continue
			}
			place[c.Variant.Hash] = len(merged)
			merged = append(merged, c.Variant)
		}
	}
	return merged
}
