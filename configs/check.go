package configs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// check reports what no single key tells: what is missing and what does not go
// together. What a sweep completes is checked in each variant.
func (d *document) check(r *Run) {
	if len(r.Sweep) == 0 {
		d.checkVariant(r)
		return
	}
	c := &checker{run: r, before: d.problems}
	c.files()
	d.problems = append(d.problems, c.problems...)
	variants, bad := r.expand()
	d.problems = append(d.problems, bad...)
	for _, v := range variants {
		d.checkVariant(v.Run)
	}
	if len(d.problems) == 0 {
		d.problems = checkDistinct(r, variants)
	}
}

func (d *document) checkVariant(r *Run) {
	c := &checker{run: r, before: d.problems}
	c.name()
	c.tasks()
	c.scores("score", r.Score)
	c.env("env.name", r.Env)
	c.sandbox(r.Sandbox)
	c.prompt()
	c.agent()
	c.credentials()
	c.scripted()
	c.limits()
	c.files()
	d.problems = append(d.problems, c.problems...)
}

// checker leaves out keys that are wrong in themselves already.
type checker struct {
	run    *Run
	before problems
	problems
}

func (c *checker) report(key, format string, args ...any) {
	for _, p := range c.before {
		if under(key, p.key) || p.key != "" && under(p.key, key) {
			return
		}
	}
	c.add(c.run.doc.place(key), key, format, args...)
}

func (c *checker) name() {
	if notInNames.MatchString(c.run.Name) || strings.HasPrefix(c.run.Name, ".") || len(c.run.Name) > 100 {
		c.report("name", "%q cannot name a directory; use up to 100 letters, digits, dots, dashes and underscores", shorten(c.run.Name, 120))
	}
	if c.run.Out == "" {
		c.report("out", "the folder for runs is empty; name one, such as runs")
	}
}

func (c *checker) tasks() {
	if len(c.run.Tasks) == 0 {
		c.report("tasks", "no tasks; name a file of them, such as tasks: {path: tasks.jsonl}")
	}
	names := map[string]int{}
	for i, t := range c.run.Tasks {
		key := c.run.tasksKey(i)
		c.source(key, t)
		name := t.name()
		if first, ok := names[name]; ok && t.Path != "" {
			c.report(key+".name", "source %d is called %q already; give one of them a name: of its own", first, name)
			continue
		}
		names[name] = i
	}
}

func (c *checker) source(key string, t Tasks) {
	if t.Path == "" {
		c.report(key+".path", "no path; name a file of tasks, such as tasks.jsonl, or %squickstart", bundledPrefix)
	}
	if t.OnBadRow != OnBadRowFail && t.OnBadRow != OnBadRowSkip {
		c.report(key+".on_bad_row", "%q is neither %s nor %s", t.OnBadRow, OnBadRowFail, OnBadRowSkip)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Columns)) {
		if column := t.Columns[name]; column == "" && name != "target" {
			c.report(key+".columns."+name, "no column is named; only target may be empty, for tasks without one")
		}
		if name == "" {
			c.report(key+".columns", "a column is renamed to nothing; the keys are input, target, id and names of your own")
		}
	}
	if name, ok := duplicate(t.Keep.Names); ok {
		c.report(key+".keep", "the column %q is there twice; remove one", name)
	}
	if t.Env != nil {
		c.env(key+".env.name", *t.Env)
	}
	c.scores(key+".score", t.Score)
}

func (c *checker) sandbox(s Sandbox) {
	if s.Backend != "local" {
		c.report("sandbox.backend", "there is no backend %q; the one there is is local", s.Backend)
	}
	if s.Network != "none" && s.Network != "host" {
		c.report("sandbox.network", "%q is neither none nor host", s.Network)
	}
}

func (c *checker) env(key string, e Env) {
	if e.Name == "" {
		c.report(key, "the env has no name; name one, such as {name: answer}")
	}
}

func (c *checker) scores(key string, scores []Scorer) {
	chosen, names := -1, map[string]int{}
	for i, s := range scores {
		k := key + "." + strconv.Itoa(i)
		if s.Name == "" {
			c.report(k+".name", "the scorer has no name; name one, such as exact")
		} else if first, ok := names[s.Name]; ok {
			c.report(k+".name", "scorer %d is %s already; a scorer may be there once", first, s.Name)
		}
		names[s.Name] = i
		if s.Chosen == nil || !*s.Chosen {
			continue
		}
		if chosen >= 0 {
			c.report(k+".chosen", "scorer %d is chosen already; one value becomes the reward", chosen)
		}
		chosen = i
	}
}

func (c *checker) prompt() {
	if _, err := parseTemplate(c.run.Template); err != nil {
		c.report("prompt", "%v", err)
	}
	f := c.run.FewShot
	if f == nil {
		return
	}
	if f.Path == "" {
		c.report("few_shot.path", "no path; name a JSONL file with the columns of the tasks")
	}
	if f.N == 0 {
		c.report("few_shot.n", "say how many examples are drawn, such as n: 4")
	}
}

func (c *checker) agent() {
	a := c.run.Agent
	if a.Kind != "tools" {
		c.report("agent.kind", "unknown kind %q; this release has tools", a.Kind)
	}
	name, model, ok := strings.Cut(a.Model, "/")
	if a.Model == "" {
		c.report("agent.model", "no model; name one as preset/model, such as openai/gpt-4o-mini or scripted/oracle, or use -m")
	} else if _, known := presets()[name]; !ok || model == "" || !known {
		c.report("agent.model", "%q is not preset/model; the presets are %s; openai is for every server that speaks its protocol",
			a.Model, strings.Join(PresetNames(), ", "))
	}
	if set, ok := duplicate(a.Toolsets); ok {
		c.report("agent.toolsets", "the toolset %q is there twice; remove one", set)
	}
	c.extra(a.Sampling.Extra)
	c.extraBody(a)
}

// extra checks the parameters that go to the server under the user's names.
func (c *checker) extra(p Params) {
	if p.empty() {
		return
	}
	for _, e := range p.tree.entries {
		key := "agent.sampling." + e.key
		switch e.key {
		case "model", "messages", "tools", "stream":
			c.report(key, "a request's %s is made by the harness; remove the key", e.key)
		case "n":
			c.report(key, "one request gives one reply; use samples for more")
		default:
			if near := misspelled(e.key, "temperature", "top_p", "max_tokens"); near != "" {
				c.report(key, "unknown parameter; did you mean %s?", near)
			}
		}
	}
}

// misspelled finds the known name that an unknown one writes differently. Short
// names are compared without case and underscores only: top_k is not top_p.
func misspelled(name string, known ...string) string {
	fold := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for _, k := range known {
		if fold(name) == fold(k) || len(k) > 8 && levenshtein.ComputeDistance(name, k) == 1 {
			return k
		}
	}
	return ""
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// credentials never repeats a value: it may be a secret in the wrong place.
func (c *checker) credentials() {
	a := c.run.Agent
	if a.APIKeyEnv != nil && *a.APIKeyEnv != "" && !variableName.MatchString(*a.APIKeyEnv) {
		c.report("agent.api_key_env", "the value is not the name of an environment variable, such as OPENAI_API_KEY; the key itself has no place here")
	}
	if a.APIKeyEnv != nil && *a.APIKeyEnv != "" && a.APIKeyFile != "" {
		c.report("agent.api_key_file", "there is an api_key_env too; keep one of them")
	}
	c.baseURLs(a)
}

func (c *checker) scripted() {
	a := c.run.Agent
	if a.Model == "scripted/replay" && a.Replay == nil {
		c.report("agent.replay", "scripted/replay needs the recorded answers: replay: {path: answers.jsonl, column: solution}")
	}
	if r := a.Replay; r != nil {
		if r.Path == "" {
			c.report("agent.replay.path", "no path; name the JSONL file of recorded answers")
		}
		if r.Column == "" {
			c.report("agent.replay.column", "no column; name the one that holds the answers, such as solution or model.solution")
		}
	}
	if a.Simulate == nil {
		return
	}
	if a.Model != "" && !strings.HasPrefix(a.Model, "scripted/") {
		c.report("agent.simulate", "%s is no scripted model and simulates nothing; remove it", a.Model)
	}
	if a.Simulate.LatencyMin > a.Simulate.LatencyMax {
		c.report("agent.simulate.latency_min", "%v is more than latency_max, which is %v", a.Simulate.LatencyMin, a.Simulate.LatencyMax)
	}
}

func (c *checker) limits() {
	if c.run.Limits.Run.CostUSD > 0 && c.run.Agent.Sampling.MaxTokens == nil {
		c.report("limits.run.cost_usd", "a cost budget needs to know how much one reply can cost; set agent.sampling.max_tokens")
	}
}

// files hashes the files that belong to the run's identity.
func (c *checker) files() {
	if f := c.run.FewShot; f != nil {
		c.hash("few_shot", f.Path, &f.SHA256)
	}
	if r := c.run.Agent.Replay; r != nil {
		c.hash("agent.replay", r.Path, &r.SHA256)
	}
}

func (c *checker) hash(key, path string, sum *string) {
	d := c.run.doc
	if path == "" {
		return
	}
	got, err := d.hashFile(path)
	if err != nil {
		c.report(key+".path", "%v", err)
		return
	}
	if *sum != "" && *sum != got && !d.resolved {
		c.report(key+".sha256", "the file %s has another content: its SHA-256 is %s", path, got)
	}
	*sum = got
}

func duplicate(names []string) (string, bool) {
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return n, true
		}
	}
	return "", false
}

// tasksKey is the key of a source as it was written.
func (r *Run) tasksKey(i int) string {
	if tasks := r.doc.root.get(tasksKey); tasks != nil && tasks.single {
		return tasksKey
	}
	return fmt.Sprintf("%s.%d", tasksKey, i)
}
