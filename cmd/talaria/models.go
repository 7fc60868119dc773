package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/model/ollama"
	"github.com/talaria-run/talaria/agent/model/openai"
	"github.com/talaria-run/talaria/agent/model/scripted"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
	"github.com/talaria-run/talaria/dataset/source"
	"github.com/talaria-run/talaria/eval/score"
)

// endpoints holds one tuned transport and one limiter per base URL: variants
// on one endpoint share its ceiling.
type endpoints struct {
	ceiling int
	bounds  model.LimiterOptions
	byURL   map[string]server
}

type server struct {
	transport *endpoint.Transport
	limiter   *model.Limiter
}

func (e endpoints) of(url string) server {
	at, ok := e.byURL[url]
	if !ok {
		at = server{
			transport: endpoint.NewTransport(e.ceiling, http.ProxyFromEnvironment),
			limiter:   model.NewLimiter(e.ceiling, e.bounds),
		}
		e.byURL[url] = at
	}
	return at
}

func (e endpoints) close() {
	for _, at := range e.byURL {
		at.transport.CloseIdleConnections()
	}
}

// model makes the stack of a variant's policy: record, price, gate, retry,
// limit, provider.
func (a *assembly) model(run *configs.Run, src configs.Source, v dataset.Variant, scorers *score.Set) (model.Model, error) {
	m, err := a.provider(run, src, v, scorers)
	if err != nil {
		return nil, err
	}
	m = model.Retry(m, model.RetryOptions{Tries: 1 + run.Limits.Retries.Requests})
	table := a.prices.of(run)
	rates, _ := table.Rates(v.Provider, v.Model)
	if err := a.checkPrice(run, rates); err != nil {
		return nil, err
	}
	m = model.Gate(m, a.budget, rates)
	m = model.Price(m, table, v.Provider, v.Model)
	return model.Record(m, a.calls), nil
}

// checkPrice refuses a limit on cost where the cost cannot be known.
func (a *assembly) checkPrice(run *configs.Run, rates model.Rates) error {
	var key string
	switch {
	case rates.Known():
		return nil
	case run.Limits.Run.CostUSD > 0:
		key = "limits.run.cost_usd"
	case run.Limits.Episode.CostUSD > 0:
		key = "limits.episode.cost_usd"
	default:
		return nil
	}
	return fmt.Errorf("%s: the price of %s is not known, so its cost cannot be limited: name a file with its price under prices, or remove the limit",
		run.Place(key), run.Agent.Model)
}

func (a *assembly) provider(run *configs.Run, src configs.Source, v dataset.Variant, scorers *score.Set) (model.Model, error) {
	if v.Provider == "scripted" {
		return a.scripted(run, src, v.Model, scorers)
	}
	key, err := a.key(run)
	if err != nil {
		return nil, err
	}
	var members []model.Member
	for _, e := range run.Agent.Endpoints() {
		at := a.endpoints.of(e.URL)
		client, err := a.client(run, v, endpoint.Options{
			BaseURL: e.URL, APIKey: key, Transport: at.transport,
			Silence: run.Limits.Request, UserAgent: "talaria/" + buildVersion().Version,
		})
		if err != nil {
			return nil, err
		}
		members = append(members, model.Member{Name: e.URL, Model: client, Weight: e.Weight, Limit: at.limiter})
	}
	return model.Spread(members), nil
}

// client makes the provider of a preset, and says of which key it is what is
// wrong with an option.
func (a *assembly) client(run *configs.Run, v dataset.Variant, at endpoint.Options) (client model.Model, err error) {
	effort, extra := run.Agent.Reasoning.Effort, run.Agent.ExtraBody.Members.Map()
	if v.Provider == "ollama" {
		client, err = ollama.New(ollama.Options{Options: at, Model: v.Model, Effort: effort, Extra: extra})
	} else {
		client, err = openai.New(openai.Options{
			Options: at, Model: v.Model, Dialect: openai.Dialect(v.Provider), Effort: effort, Extra: extra,
		})
	}
	key := "agent.base_url"
	if wrong := new(endpoint.OptionError); errors.As(err, &wrong) {
		switch wrong.Option {
		case endpoint.OptionEffort:
			key = "agent.reasoning.effort"
		case endpoint.OptionExtra:
			key = "agent.extra_body." + wrong.Key
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Place(key), err)
	}
	return client, nil
}

// key reads the endpoint's key and remembers it, so that it is masked wherever
// it may turn up.
func (a *assembly) key(run *configs.Run) (string, error) {
	variable, file, needed := run.Agent.Key()
	var key string
	switch {
	case variable != "":
		key = strings.TrimSpace(a.std.getenv(variable))
		if key == "" && needed {
			return "", fmt.Errorf("%s: the environment has no %s: set it, or name another variable under agent.api_key_env",
				run.Place("agent.model"), variable)
		}
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s: %w", run.Place("agent.api_key_file"), err)
		}
		key = strings.TrimSpace(string(b))
		if key == "" {
			return "", fmt.Errorf("%s: %s is empty", run.Place("agent.api_key_file"), file)
		}
	case needed:
		return "", fmt.Errorf("%s: %s needs a key: name the variable that holds it under agent.api_key_env",
			run.Place("agent.model"), run.Agent.Model)
	}
	a.std.secrets.add(key)
	return key, nil
}

func (a *assembly) scripted(run *configs.Run, src configs.Source, name string, scorers *score.Set) (model.Model, error) {
	opts := scripted.Options{
		Solution: func(t *dataset.Task) string { return score.Solution(scorers, *t) },
		Seed:     run.Seed,
	}
	if s := run.Agent.Simulate; s != nil {
		opts.LatencyMin, opts.LatencyMax, opts.FailureRate = s.LatencyMin, s.LatencyMax, s.FailureRate
	}
	if r := run.Agent.Replay; r != nil && name == "replay" {
		replay, err := a.replays.open(*r, src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", run.Place("agent.replay.path"), err)
		}
		opts.Replay = replay
	}
	m, err := scripted.New(name, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Place("agent.model"), err)
	}
	return m, nil
}

// replays holds the recorded answers by file, column and source.
type replays map[string]*scripted.Replay

func (r replays) open(cfg configs.Replay, src configs.Source) (*scripted.Replay, error) {
	id := fmt.Sprintf("%s\x00%s\x00%d", cfg.Path, cfg.Column, src.Index)
	if replay, ok := r[id]; ok {
		return replay, nil
	}
	rows, err := source.Open(source.Options{Path: cfg.Path, Columns: src.Columns, Lenient: true})
	if err != nil {
		return nil, err
	}
	replay, err := scripted.NewReplay(rows.Tasks(), cfg.Column)
	if err != nil {
		return nil, err
	}
	r[id] = replay
	return replay, nil
}
