package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/runner"
)

type planOptions struct {
	runOptions

	Like       []string // runs to estimate from
	ShowPrompt bool
	Format     string
}

func newPlanCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "Tells what run would do, checks what it needs, and estimates tokens, cost and time; runs nothing.",
		UsageText: "talaria plan bundled:quickstart",
		ArgsUsage: "CONFIG",
		Description: "It takes the flags of run. CONFIG may be the directory of a run: then it tells what resume would do.\n" +
			"The exit code is 2 if run would refuse. No request leaves, and nothing is written.",
		Flags: append(planFlags(),
			&cli.StringSliceFlag{Name: "like", Usage: "estimate from what the finished `RUN` used; default: recent runs of the same tasks"},
			&cli.BoolFlag{Name: "show-prompt", Usage: "print the first request of each source and variant as it would be sent"},
			choiceFlag("format", "print as `FORMAT`", "table", "json"),
		),
		Action: func(c *cli.Context) error {
			run, err := runOptionsOf(c, std)
			if err != nil {
				return err
			}
			return runPlan(c.Context, planOptions{
				runOptions: run, Like: c.StringSlice("like"), ShowPrompt: c.Bool("show-prompt"), Format: c.String("format"),
			}, std)
		},
	}
}

func runPlan(ctx context.Context, opts planOptions, std *stdio) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	p := &planner{std: std, opts: opts, rehearsal: &rehearsal{}}
	if err := p.load(); err != nil {
		return err
	}
	defer p.close(ctx)
	if err := p.plan(ctx); err != nil {
		return err
	}
	if err := p.report.print(std, opts.Format); err != nil {
		return err
	}
	if bad := p.report.bad(); len(bad) > 0 {
		return usageErrorf("", "run would refuse: the check of %s has failed", strings.Join(bad, ", "))
	}
	return nil
}

// planner fills a planReport. Each step does what it can after an earlier one
// has failed, so that one invocation tells all that is wrong.
type planner struct {
	std       *stdio
	opts      planOptions
	rehearsal *rehearsal
	dir       string     // of the run to go on with; "": a new one
	record    *store.Run // of that run
	session   *session
	variants  []configs.Variant
	report    planReport
}

// load reads the config and finds the run that is gone on with. Without a
// config there is nothing to tell.
func (p *planner) load() error {
	if err := checkLike(p.opts.Like); err != nil {
		return err
	}
	cfg, err := p.config()
	if err != nil {
		return err
	}
	made, err := newAssembly(cfg, p.std)
	if err != nil {
		return &usageError{err: err}
	}
	made.rehearsal, made.sandboxes.rehearsal = p.rehearsal, noSandboxes{}
	p.session = &session{cfg: cfg, std: p.std, made: made, shard: p.opts.Shard}
	p.report = planReport{
		Config: p.opts.Config, Dir: p.dir, Resumes: p.record != nil,
		Variants: []planVariant{}, Sources: []planSource{}, Cells: []planCell{}, Examples: []planExample{},
	}
	p.report.check("config", p.opts.Config, nil)
	return nil
}

// config is what run or resume would run: the file's, or that of a run which
// was named in its place.
func (p *planner) config() (*configs.Run, error) {
	if isRun(p.opts.Config) {
		if p.opts.Out != "" {
			return nil, usageErrorf("talaria plan", "%s is a run, which goes on where it is: leave --out out", p.opts.Config)
		}
		p.dir = p.opts.Config
		record, err := store.ReadRun(p.dir)
		if err != nil {
			return nil, notRun(err)
		}
		p.record = &record
		cfg, err := configs.FromResolved(record.Config, p.opts.Load)
		if err != nil {
			return nil, &usageError{err: err}
		}
		return cfg, nil
	}
	cfg, err := configs.Load(p.opts.Config, p.opts.Load)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return cfg, nil
}

func (p *planner) close(ctx context.Context) { p.session.close(ctx) }

func (p *planner) plan(ctx context.Context) (err error) {
	if p.variants, err = p.session.cfg.Variants(); err != nil {
		return &usageError{err: err}
	}
	p.checkDirectory()
	p.report.describe(p.variants)
	p.checkModels(p.variants)
	p.checkCells(ctx)
	p.checkSandbox(ctx)
	p.checkTasks(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.session.cells == nil || p.session.sources == nil {
		return nil // nothing can be counted
	}
	return p.forecast(ctx)
}

// checkDirectory tells where the run would be recorded, or why it would not.
func (p *planner) checkDirectory() {
	const name = "directory"
	opts := p.opts.runOptions
	if p.record == nil {
		goesOn, err := opts.goesOn()
		if err == nil && !goesOn {
			err = p.checkNewDirectory()
		}
		if err != nil {
			p.report.check(name, opts.Out, err)
			return
		}
		if !goesOn {
			return
		}
		record, err := store.ReadRun(opts.Out)
		if err != nil {
			p.report.check(name, opts.Out, err)
			return
		}
		p.dir, p.record = opts.Out, &record
		p.report.Dir, p.report.Resumes = p.dir, true
	}
	shard, err := shardOn(*p.record, p.dir, opts.Shard)
	p.session.shard = shard
	p.report.check(name, p.dir+" holds a run, which goes on", errors.Join(err, checkIdentity(*p.record, p.session.cfg, false)))
}

func (p *planner) checkNewDirectory() error {
	dir := p.opts.Out
	if dir == "" {
		dir = filepath.Join(p.session.cfg.Out, p.session.cfg.Name+"-<time>-<4 hex>")
	} else if err := checkEmpty(dir); err != nil {
		return err
	}
	p.report.Dir = dir
	p.report.check("directory", dir+" is new", nil)
	return nil
}

// forecast counts episodes, sizes prompts and estimates.
func (p *planner) forecast(ctx context.Context) error {
	s := p.session
	index, done, err := p.recorded()
	if err != nil {
		return err
	}
	defer done()
	counts, err := s.plan().Forecast(runner.Options{Index: index, InfraRetries: s.cfg.Limits.Retries.Infra})
	if err != nil {
		return err
	}
	p.report.count(s, counts)
	if err := p.rehearse(ctx); err != nil {
		return err
	}
	seen, err := p.observe()
	if err != nil {
		return err
	}
	p.estimate(seen)
	p.report.limits(s.cfg, index)
	return nil
}

// recorded is the index of the run that is gone on with, nil for a new one.
func (p *planner) recorded() (*store.Index, func(), error) {
	if p.record == nil {
		return nil, func() {}, nil
	}
	views, done, err := openViews([]string{p.dir})
	if err != nil {
		return nil, nil, err
	}
	index, err := views[0].Index()
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("reading what is recorded: %w", err)
	}
	return index, done, nil
}
