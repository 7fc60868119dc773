package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/env/sandbox/local"
)

// checkModels tells of each endpoint whether its key is there, and of each model
// what it costs. It never shows a key.
func (p *planner) checkModels(variants []configs.Variant) {
	keys, prices := map[string]bool{}, map[string]bool{}
	for _, v := range variants {
		variable, file, needed := v.Run.Agent.Key()
		at := endpointOf(v.Run)
		if id := strings.Join([]string{variable, file, at}, "\x00"); !keys[id] {
			keys[id] = true
			_, err := p.session.made.key(v.Run)
			p.report.check("key", keyText(variable, file, needed, at, err == nil && p.present(variable)), err)
		}
		if id := v.Run.Agent.Model + "\x00" + at; !prices[id] {
			prices[id] = true
			p.report.check("price", v.Run.Agent.Model+": "+priceText(p.rates(v.Run)), nil)
		}
	}
}

func (p *planner) present(variable string) bool {
	return variable != "" && strings.TrimSpace(p.std.getenv(variable)) != ""
}

// endpointOf is where a model is reached, "" for one that is part of this
// program.
func endpointOf(run *configs.Run) string {
	at := run.Agent.Endpoints()
	urls := make([]string, 0, len(at))
	for _, e := range at {
		urls = append(urls, e.URL)
	}
	return strings.Join(urls, ", ")
}

func keyText(variable, file string, needed bool, endpoint string, present bool) string {
	switch {
	case endpoint == "":
		return "scripted models need none"
	case file != "":
		return file + " holds one, for " + endpoint
	case present:
		return variable + " is set, for " + endpoint
	case variable != "" && !needed:
		return variable + " is not set; none is sent to " + endpoint
	default:
		return "none is sent to " + endpoint
	}
}

// rates are the prices that calls of a config would be priced by.
func (p *planner) rates(run *configs.Run) model.Rates {
	provider, name, _ := strings.Cut(run.Agent.Model, "/")
	rates, _ := p.session.made.prices.of(run).Rates(provider, name)
	return rates
}

func priceText(r model.Rates) string {
	if !r.Known() {
		return "not known, so that its cost will be null: name a file with it under prices"
	}
	if free(r) {
		return "free"
	}
	return fmt.Sprintf("%s in, %s out per million tokens (table of %s)", dollars(*r.Input), dollars(*r.Output), r.Version)
}

// checkCells makes everything that an episode needs. Where it can be made but
// for its model, that is a check of its own.
func (p *planner) checkCells(ctx context.Context) {
	s := p.session
	cells, err := s.made.cells(ctx)
	s.cells = cells
	if err != nil {
		p.report.check("episodes", "", err)
		s.cells = nil
		_ = closeCells(ctx, cells) // of a rehearsal
	}
	for _, err := range p.rehearsal.problems {
		if !p.report.tells(err) {
			p.report.check("model", "", err)
		}
	}
	p.report.check("open files", "the limit is high enough", checkDescriptors(s.cfg, s.made.endpoints))
}

// checkSandbox tries the backend where an env needs one.
func (p *planner) checkSandbox(ctx context.Context) {
	cfg := p.session.cfg
	if !needsSandboxes(cfg) {
		return
	}
	allowed, err := p.session.made.sandboxes.unconfined()
	if err == nil {
		err = trySandbox(ctx, allowed)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", cfg.Place("sandbox.backend"), err)
	}
	text := cfg.Sandbox.Backend + " starts sandboxes"
	if allowed {
		text = cfg.Sandbox.Backend + "; commands may run unconfined where there is no bubblewrap"
	}
	p.report.check("sandbox", text, err)
}

func trySandbox(ctx context.Context, allowUnconfined bool) error {
	backend, err := local.New(ctx, local.Options{AllowUnconfined: allowUnconfined})
	if err != nil {
		return err
	}
	return backend.Close(context.WithoutCancel(ctx))
}

// checkTasks reads every row of every source.
func (p *planner) checkTasks(ctx context.Context) {
	s := p.session
	list, err := openSources(ctx, s.cfg, p.record, p.std)
	tasks := 0
	if err == nil {
		tasks, err = list.count(ctx, s.shard, &s.kept)
	}
	if err != nil {
		p.report.check("tasks", "", err)
		return
	}
	s.sources = list
	s.total = tasks * len(s.cells) * s.cfg.Samples
	p.report.sources(s)
	p.report.check("tasks", plural(tasks, "task", "tasks")+inBrackets(s.shard), nil)
}
