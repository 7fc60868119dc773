package configs

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Preset is what the first part of a model's name stands for.
type Preset struct {
	Scripted bool
	// BaseURL is the preset's own endpoint: the provider's, or where its server
	// listens by default.
	BaseURL string
	KeyEnv  string // the variable that holds the key of that endpoint
	// Local tells that people run the server themselves, mostly without a key.
	Local bool
}

func presets() map[string]Preset {
	return map[string]Preset{
		"openai":     {BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY"},
		"openrouter": {BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		"vllm":       {BaseURL: "http://127.0.0.1:8000/v1", KeyEnv: "VLLM_API_KEY", Local: true},
		"sglang":     {BaseURL: "http://127.0.0.1:30000/v1", KeyEnv: "SGLANG_API_KEY", Local: true},
		"llamacpp":   {BaseURL: "http://127.0.0.1:8080/v1", KeyEnv: "LLAMA_API_KEY", Local: true},
		"ollama":     {BaseURL: "http://127.0.0.1:11434", KeyEnv: "OLLAMA_API_KEY", Local: true},
		"scripted":   {Scripted: true},
	}
}

// PresetNames lists the presets, sorted.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets())) }

// Preset is that of the agent's model; the zero Preset where there is none of
// that name, which a checked config does not have.
func (a Agent) Preset() Preset {
	name, _, _ := strings.Cut(a.Model, "/")
	return presets()[name]
}

// Endpoint is one of the servers behind a model.
type Endpoint struct {
	URL    string
	Weight float64 // its share of the episodes, beside the others'
}

// BaseURLs are the servers behind a model: in a config a text, or a list of
// texts and objects {url, weight}.
type BaseURLs []Endpoint

func (u *BaseURLs) decodeTree(d *decoder, v *value, key string) {
	*u = nil
	switch v.kind {
	case list:
		for i, item := range v.items {
			*u = append(*u, decodeEndpoint(d, item, fmt.Sprintf("%s.%d", key, i)))
		}
	case text:
		if v.raw != "" {
			*u = BaseURLs{{URL: v.raw, Weight: 1}}
		}
	default:
		d.add(v.at, key, "want a URL, such as http://127.0.0.1:8000/v1, or a list of {url, weight}; got %s", v.describe())
	}
}

func decodeEndpoint(d *decoder, v *value, key string) Endpoint {
	e := struct {
		URL    string  `yaml:"url" example:"http://127.0.0.1:8000/v1"`
		Weight float64 `yaml:"weight" min:"0"`
	}{Weight: 1}
	if v.kind == text {
		return Endpoint{URL: v.raw, Weight: 1}
	}
	inner := &decoder{unknown: unknownParameter}
	inner.decode(reflect.ValueOf(&e).Elem(), v, key, `example:"{url: http://127.0.0.1:8000/v1, weight: 2}"`)
	d.problems = append(d.problems, inner.problems...)
	if len(inner.problems) == 0 && (e.Weight == 0 || math.IsInf(e.Weight, 0)) {
		d.add(v.at, join(key, "weight"), "want a number above 0: remove a server that is to get nothing")
	}
	return Endpoint{URL: e.URL, Weight: e.Weight}
}

func (u BaseURLs) encodeTree() *value {
	if len(u) == 0 {
		return &value{}
	}
	if len(u) == 1 {
		return textValue(u[0].URL, place{})
	}
	v := &value{kind: list}
	for _, e := range u {
		o := newObject(place{})
		o.set("url", textValue(e.URL, place{}), place{})
		o.set("weight", encode(reflect.ValueOf(e.Weight)), place{})
		v.items = append(v.items, o)
	}
	return v
}

// Endpoints are the servers behind the model: those of base_url, else the
// preset's own; none for a scripted model.
func (a Agent) Endpoints() []Endpoint {
	p := a.Preset()
	switch {
	case p.Scripted:
		return nil
	case len(a.BaseURL) > 0:
		return a.BaseURL
	}
	return []Endpoint{{URL: p.BaseURL, Weight: 1}}
}

// OwnEndpoint tells whether the model is reached at its preset's own endpoint
// alone, so that the preset's key and list prices are meant.
func (a Agent) OwnEndpoint() bool {
	own := a.Preset().BaseURL
	return !slices.ContainsFunc(a.Endpoints(), func(e Endpoint) bool { return e.URL != own })
}

// Key says where the key of the model's endpoints is: in the environment
// variable env or in file, at most one of which is set. With needed and
// neither there is no way to reach them. Scripted models, endpoints on this
// machine, servers that people run themselves and api_key_env: "" need none. A
// preset's own variable is used for its own endpoint alone, so that a key never
// goes elsewhere unasked.
func (a Agent) Key() (env, file string, needed bool) {
	p := a.Preset()
	switch {
	case p.Scripted:
		return "", "", false
	case a.APIKeyFile != "":
		return "", a.APIKeyFile, true
	case a.APIKeyEnv != nil:
		return *a.APIKeyEnv, "", *a.APIKeyEnv != ""
	case a.OwnEndpoint():
		return p.KeyEnv, "", !p.Local
	case p.Local:
		return "", "", false
	}
	return "", "", slices.ContainsFunc(a.BaseURL, func(e Endpoint) bool { return !loopback(e.URL) })
}

func loopback(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// extraBody checks the members that are merged into the body of a request. What
// clashes with the preset's own is told when the model is made.
func (c *checker) extraBody(a Agent) {
	if a.ExtraBody.Members.empty() {
		return
	}
	sampling := a.Sampling.Extra.Map()
	for _, e := range a.ExtraBody.Members.tree.entries {
		if _, twice := sampling[e.key]; twice {
			c.report("agent.extra_body."+e.key, "%s stands under agent.sampling, too; keep one of them", e.key)
		}
	}
}

// baseURLs never repeats a value: it may hold a secret.
func (c *checker) baseURLs(a Agent) {
	seen, good := map[string]bool{}, len(a.BaseURL) > 0
	for _, e := range a.BaseURL {
		u, err := url.Parse(e.URL)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			good = false
			c.report("agent.base_url", "the value is not a URL, such as http://127.0.0.1:8000/v1")
		case u.User != nil || u.RawQuery != "":
			good = false
			c.report("agent.base_url", "a URL with a password or a query has no place in a config; use api_key_env for the key")
		case seen[e.URL]:
			c.report("agent.base_url", "%s is there twice; give it a weight instead", e.URL)
		}
		seen[e.URL] = true
	}
	if env, file, needed := a.Key(); good && needed && env == "" && file == "" {
		c.report("agent.api_key_env", "%s needs a key; name the environment variable that holds it, such as OPENAI_API_KEY, "+
			"or a file in api_key_file, or write api_key_env: \"\" if it needs none", a.BaseURL[0].URL)
	}
}
