package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/env/terminal"
	"github.com/talaria-run/talaria/eval/table"
	"github.com/talaria-run/talaria/runner"
)

// verdict is what an audit found of one task. Its JSON keeps its meaning
// between releases.
type verdict struct {
	Task    string              `json:"task"`
	OK      bool                `json:"ok"`
	Rewards map[string]*float64 `json:"rewards"` // by player: oracle, null, random, wrong/<script>; null: none could be given
	Why     []string            `json:"why,omitempty"`
}

// player is a policy that an audit plays tasks with, once each.
type player struct {
	name   string                    // "": that of the script
	model  string                    // scripted
	script func(dataset.Task) string // of terminal tasks, played in the model's place; nil: none
	plays  func(dataset.Task) bool   // nil: every task
	must   *float64                  // the reward that it has to get; nil: any
}

// called is the player's name in verdicts on a task.
func (p player) called(t dataset.Task) string {
	if p.name == "" {
		return p.script(t)
	}
	return p.name
}

// auditor plays the tasks of a config. It is the sink of its players' runs.
type auditor struct {
	load   func(model string) (*configs.Run, error)
	std    *stdio
	shard  runner.Shard
	player player // that is playing
	byTask map[string]*verdict
}

// audit plays every task with the oracle, which must get 1, with a model that
// gives up and with each near-miss, which must get 0, and with one that acts at
// random.
func (a *auditor) audit(ctx context.Context) ([]verdict, error) {
	a.byTask = map[string]*verdict{}
	players, err := a.players(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range players {
		if err := a.play(ctx, p); err != nil {
			return nil, fmt.Errorf("playing %s: %w", cmp.Or(p.name, "near-misses"), err)
		}
	}
	all := make([]verdict, 0, len(a.byTask))
	for _, v := range a.byTask {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(x, y verdict) int { return strings.Compare(x.Task, y.Task) })
	return all, nil
}

func (a *auditor) players(ctx context.Context) ([]player, error) {
	cfg, err := a.load("scripted/null")
	if err != nil {
		return nil, err
	}
	most, err := a.mostNearMisses(ctx, cfg)
	if err != nil {
		return nil, err
	}
	sources := cfg.Sources()
	scripted := func(t dataset.Task) bool { return sources[t.Source].Env == terminalEnv }
	solution := func(dataset.Task) string { return terminal.Solution }
	one, zero := 1.0, 0.0
	players := make([]player, 0, 4+most)
	if slices.ContainsFunc(sources, func(s configs.Source) bool { return s.Env != terminalEnv }) {
		other := func(t dataset.Task) bool { return !scripted(t) }
		players = append(players, player{name: "oracle", model: "scripted/oracle", plays: other, must: &one})
	}
	if slices.ContainsFunc(sources, func(s configs.Source) bool { return s.Env == terminalEnv }) {
		players = append(players, player{name: "oracle", model: "scripted/null", script: solution, plays: scripted, must: &one})
	}
	players = append(players,
		player{name: "null", model: "scripted/null", must: &zero},
		player{name: "random", model: "scripted/random"},
	)
	for i := range most {
		has := func(t dataset.Task) bool { return scripted(t) && len(terminal.NearMisses(t)) > i }
		script := func(t dataset.Task) string { return terminal.NearMisses(t)[i] }
		players = append(players, player{model: "scripted/null", script: script, plays: has, must: &zero})
	}
	return players, nil
}

// terminalEnv is the env whose tasks have scripts.
const terminalEnv = "terminal"

// mostNearMisses is how many near-misses a task has at most. One player plays one
// of each task.
func (a *auditor) mostNearMisses(ctx context.Context, cfg *configs.Run) (most int, err error) {
	list, err := openSources(ctx, cfg, nil, a.std)
	if err != nil {
		return 0, err
	}
	for t, err := range a.shard.Of(list.tasks()) {
		if err != nil {
			return 0, err
		}
		most = max(most, len(terminal.NearMisses(t)))
	}
	list.warn(a.std.log)
	return most, nil
}

// play runs the tasks with one player. Nothing is recorded but the verdicts.
func (a *auditor) play(ctx context.Context, p player) error {
	a.player = p
	cfg, err := a.load(p.model)
	if err != nil {
		return err
	}
	made, err := newAssembly(cfg, a.std)
	if err != nil {
		return err
	}
	made.calls.CallSink, made.budget.Budget = noLedger{}, runner.NewBudget(runner.Limits{}, model.Spend{})
	s := &session{cfg: cfg, std: a.std, shard: a.shard, made: made}
	defer s.close(ctx)
	if err := s.check(ctx); err != nil {
		return err
	}
	plan := s.plan()
	plan.Samples, plan.Total, plan.Cells, plan.Tasks = 1, 0, plan.Cells[:1], only(plan.Tasks, p.plays)
	if err := p.direct(plan.Cells[0]); err != nil {
		return err
	}
	limits := cfg.Limits.Concurrency
	r, err := runner.New(plan, a, runner.Options{Workers: limits.Episodes, Grading: limits.Grading, Log: a.std.log})
	if err != nil {
		return err
	}
	if _, err := r.Run(ctx, ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// direct has the worlds of terminal tasks play the player's script.
func (p player) direct(cells []runner.Cell) (err error) {
	for i, c := range cells {
		if p.script != nil && c.Variant.Env == terminalEnv {
			if cells[i].Env, err = terminal.Scripted(c.Env, p.script); err != nil {
				return err
			}
		}
	}
	return nil
}

// noLedger keeps no model calls.
type noLedger struct{}

func (noLedger) Call(context.Context, dataset.Call) error { return nil }

// only leaves out the tasks that plays refuses.
func only(tasks iter.Seq2[dataset.Task, error], plays func(dataset.Task) bool) iter.Seq2[dataset.Task, error] {
	if plays == nil {
		return tasks
	}
	return func(yield func(dataset.Task, error) bool) {
		for t, err := range tasks {
			if err == nil && !plays(t) {
				continue
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// Write implements [runner.Sink].
func (a *auditor) Write(_ context.Context, trs []*dataset.Trajectory) error {
	for _, tr := range trs {
		v, ok := a.byTask[tr.Episode.Task.ID]
		if !ok {
			v = &verdict{Task: tr.Episode.Task.ID, OK: true, Rewards: map[string]*float64{}}
			a.byTask[v.Task] = v
		}
		v.Rewards[a.player.called(tr.Episode.Task)] = tr.Reward
		if why := a.player.complaint(tr); why != "" {
			v.OK, v.Why = false, append(v.Why, a.std.secrets.mask(why))
		}
	}
	return nil
}

// Rewards implements [runner.Sink]; an audit scores nothing again.
func (a *auditor) Rewards(context.Context, []dataset.LateReward) error { return nil }

// complaint is what is wrong with what the player got, "" if nothing.
func (p player) complaint(tr *dataset.Trajectory) string {
	switch {
	case tr.Reward == nil:
		return strings.TrimSpace(fmt.Sprintf("%s got no reward: %s %s", p.called(tr.Episode.Task), tr.ExitReason, tr.Error))
	case p.must != nil && *tr.Reward != *p.must:
		return fmt.Sprintf("%s got %g and must get %g%s", p.called(tr.Episode.Task), *tr.Reward, *p.must, explained(tr))
	default:
		return ""
	}
}

// explained is what the judge said of the reward that counts, on one line.
func explained(tr *dataset.Trajectory) string {
	for _, r := range tr.Rewards {
		if text := strings.Join(strings.Fields(r.Explanation), " "); r.Chosen && text != "" {
			return ": " + text
		}
	}
	return ""
}

// verdictTable shows the near-misses by their number.
func verdictTable(all []verdict) ([]table.Column, [][]any) {
	columns := []table.Column{
		{Name: "task"},
		{Name: "verdict"},
		{Name: "oracle", Number: true},
		{Name: "null", Number: true},
		{Name: "random", Number: true},
		{Name: "near-misses", Number: true},
		{Name: "why"},
	}
	rows := make([][]any, len(all))
	for i, v := range all {
		state, why := "ok", ""
		if !v.OK {
			state, why = "bad", strings.Join(v.Why, "; ")
		}
		reward := func(name string) any {
			if r := v.Rewards[name]; r != nil {
				return *r
			}
			return nil
		}
		rows[i] = []any{v.Task, state, reward("oracle"), reward("null"), reward("random"), max(len(v.Rewards)-3, 0), why}
	}
	return columns, rows
}
