package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/endpoint"
	"github.com/talaria-run/talaria/agent/tool/calculator"
	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset"
)

// modelDoctor looks at the endpoints of one model.
type modelDoctor struct {
	made *assembly
	run  *configs.Run
	key  string
}

// examineModel makes one call with a tool at each endpoint of a model.
func examineModel(ctx context.Context, load configs.Options, std *stdio) ([]finding, error) {
	run, err := configs.Parse("doctor", []byte("version: 1\ntasks: {path: 'bundled:answer'}\n"), load)
	if err != nil {
		return nil, &usageError{command: "talaria doctor", err: err}
	}
	if run.Agent.Preset().Scripted {
		return []finding{{Name: "model", OK: true, Detail: run.Agent.Model + " is part of this program"}}, nil
	}
	made, err := newAssembly(run, std)
	if err != nil {
		return nil, err
	}
	d := &modelDoctor{made: made, run: run}
	if d.key, err = made.key(run); err != nil {
		return []finding{{Name: "key", Detail: err.Error(), Fix: d.keyFix()}}, nil //nolint:nilerr // it is what was found
	}
	var found []finding
	for _, at := range run.Agent.Endpoints() {
		each, err := d.call(ctx, at.URL)
		if err != nil {
			return nil, err
		}
		found = append(found, each...)
	}
	return found, nil
}

// call makes one call at an endpoint and says what is to be made of it.
func (d *modelDoctor) call(ctx context.Context, base string) ([]finding, error) {
	provider, name, _ := strings.Cut(d.run.Agent.Model, "/")
	options := endpoint.Options{
		BaseURL: base, APIKey: d.key, Silence: d.run.Limits.Request,
		Transport: endpoint.NewTransport(1, http.ProxyFromEnvironment), UserAgent: "talaria/" + buildVersion().Version,
	}
	client, err := d.made.client(d.run, dataset.Variant{Provider: provider, Model: name}, options)
	if err != nil {
		return nil, &usageError{command: "talaria doctor", err: err}
	}
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	resp, err := client.Generate(ctx, d.request())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if failed := new(model.Error); errors.As(err, &failed) {
		return d.failed(ctx, options, failed), nil
	}
	return []finding{
		{Name: "endpoint", OK: true, Detail: base},
		{Name: "model", OK: true, Detail: cmp.Or(resp.ModelServed, name)},
		d.tools(resp),
	}, err
}

func (d *modelDoctor) request() model.Request {
	t := calculator.Tool()
	return model.Request{
		Messages: []dataset.Message{{
			Role: dataset.User, Content: "What is 1234 * 5678? Call the tool " + t.Name + "; do not compute it yourself.",
		}},
		Tools:    []model.ToolSpec{{Name: t.Name, Description: t.Description, Parameters: t.Parameters}},
		Sampling: d.run.Agent.Sampling.Dataset(), CallID: "doctor-0-0", Agent: dataset.AgentPolicy,
	}
}

// tools judges a reply to a request that asked for a call.
func (d *modelDoctor) tools(resp model.Response) finding {
	if len(resp.Message.ToolCalls) == 0 {
		return finding{Name: "tools", Detail: "the reply called no tool: " + clip(resp.Message.Content), Fix: d.toolFix()}
	}
	c := resp.Message.ToolCalls[0]
	if !json.Valid([]byte(c.Arguments)) {
		return finding{Name: "tools", Detail: "the arguments of the call are not JSON: " + clip(c.Arguments), Fix: d.toolFix()}
	}
	return finding{Name: "tools", OK: true, Detail: "called " + c.Name + " with " + clip(c.Arguments)}
}

// failed says what helps when the call failed.
func (d *modelDoctor) failed(ctx context.Context, at endpoint.Options, e *model.Error) []finding {
	reached := finding{Name: "endpoint", OK: true, Detail: at.BaseURL}
	switch {
	case e.Class == model.ClassAuth:
		return []finding{reached, {Name: "key", Detail: e.Error(), Fix: d.keyFix()}}
	case e.Class == model.ClassModelNotFound:
		return []finding{reached, {Name: "model", Detail: e.Error(), Fix: d.modelFix(ctx, at)}}
	case strings.Contains(strings.ToLower(e.Error()), "tool"):
		return []finding{reached, {Name: "tools", Detail: e.Error(), Fix: d.toolFix()}}
	case e.Class == model.ClassConnection, e.Class == model.ClassTimeout:
		return []finding{{Name: "endpoint", Detail: e.Error(), Fix: "is the server running? Start it, or name its address with --base-url"}}
	case e.Class == model.ClassContextOverflow:
		return []finding{reached, {Name: "context", Detail: e.Error(), Fix: "give the model a longer context; for ollama: --set agent.sampling.num_ctx=8192"}}
	}
	return []finding{{Name: "endpoint", Detail: e.Error(), Fix: "see what the server's own log says of it"}}
}

func (d *modelDoctor) keyFix() string {
	variable, file, _ := d.run.Agent.Key()
	switch {
	case variable != "":
		return "set " + variable + " to a key that this endpoint knows"
	case file != "":
		return "put a key that this endpoint knows into " + file
	}
	return "name the variable that holds the key: --set agent.api_key_env=" + cmp.Or(d.run.Agent.Preset().KeyEnv, "MY_KEY")
}

// modelFix lists the models that the endpoint has.
func (d *modelDoctor) modelFix(ctx context.Context, options endpoint.Options) string {
	_, name, _ := strings.Cut(d.run.Agent.Model, "/")
	names, err := modelsAt(ctx, options, d.run.Agent.Preset().BaseURL == "http://127.0.0.1:11434")
	switch {
	case err != nil:
		return "it lists no models either: base_url is to end where the API begins, mostly in /v1"
	case strings.HasPrefix(d.run.Agent.Model, "ollama/") && len(names) == 0:
		return "ollama pull " + name
	case len(names) == 0:
		return "it has no models: start the server with one"
	case len(names) > 20:
		return fmt.Sprintf("it has %d models, such as %s", len(names), strings.Join(names[:20], ", "))
	}
	return "it has " + strings.Join(names, ", ")
}

// modelsAt asks an endpoint for its models.
func modelsAt(ctx context.Context, options endpoint.Options, ollama bool) ([]string, error) {
	at, err := endpoint.New(options)
	if err != nil {
		return nil, err
	}
	defer at.CloseIdleConnections()
	address := at.At("/models")
	if ollama {
		address = at.At("/api/tags", "/v1", "/api")
	}
	var list struct {
		Data   []struct{ ID string }   `json:"data"`
		Models []struct{ Name string } `json:"models"`
	}
	failed := at.Get(ctx, address, func(a endpoint.Answer) *model.Error {
		if !a.OK() {
			failed, _ := at.Refused(a)
			return failed
		}
		if err := json.Unmarshal(a.Body, &list); err != nil {
			return at.Unreadable(a, err)
		}
		return nil
	})
	if failed != nil {
		return nil, failed
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	for _, m := range list.Models {
		names = append(names, m.Name)
	}
	return names, nil
}

func (d *modelDoctor) toolFix() string {
	provider, _, _ := strings.Cut(d.run.Agent.Model, "/")
	fix, ok := map[string]string{
		"vllm":     "start it with --enable-auto-tool-choice --tool-call-parser PARSER, such as hermes for Qwen and llama3_json for Llama 3",
		"sglang":   "start it with --tool-call-parser PARSER, such as qwen25 for Qwen and llama3 for Llama 3",
		"llamacpp": "start it with --jinja, and with a model whose chat template knows tools",
		"ollama":   "pull a model that has tools (ollama show NAME lists its capabilities), and give it room: --set agent.sampling.num_ctx=16384",
	}[provider]
	if !ok {
		return "take a model that calls tools, or do without: leave agent.toolsets out"
	}
	return fix
}

// clip makes text of a model fit for a line.
func clip(text string) string {
	const most = 100
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return cmp.Or(text, "(nothing)")
}
