package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/agent/model"
	"github.com/talaria-run/talaria/agent/model/lab"
	"github.com/talaria-run/talaria/dataset"
)

// planOf is what plan says as JSON.
func planOf(t *testing.T, args ...string) (r planReport) {
	t.Helper()
	out, _ := mustExit(t, 0, append([]string{"plan", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

// everyFile lists what is below a folder.
func everyFile(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// provider keeps the first request of each episode, and answers all.
type provider struct {
	mu    sync.Mutex
	first map[string]sentRequest // by call id
	all   int
}

type sentRequest struct {
	Messages []planMessage `json:"messages"`
	Tools    []struct {
		Function model.ToolSpec `json:"function"`
	} `json:"tools"`
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body sentRequest
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.all++
	p.first[r.Header.Get("X-Client-Request-Id")] = body
	p.mu.Unlock()
	_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"7"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":100,"completion_tokens":10}}`))
}

// got is how many requests came, and the first of each episode.
func (p *provider) got() (all int, first map[string]sentRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, maps.Clone(p.first)
}

const planConfig = `version: 1
seed: 3
tasks:
  - {name: sums, path: tasks.jsonl, on_bad_row: skip, columns: {id: id, input: question, target: answer}}
  - {name: more, path: more.jsonl, columns: {id: id, input: question, target: answer}}
prompt: "{question}\nAnswer with a number."
few_shot: {path: more.jsonl, n: 1}
samples: 2
agent: {model: openai/lab, base_url: "URL", toolsets: [math], system_prompt: "Be exact."}
sweep: {agent.sampling.temperature: [0, 1], agent.system_prompt: ["Be exact.", "Be <quick>."]}
score: [{name: numeric, extract: last_number}]
prices: prices.json
out: runs
`

// planFiles writes a config whose model is at url, and its files.
func planFiles(t *testing.T, url, config string) (path string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "tasks.jsonl"), `{"id":"a","question":"3 + 4?","answer":"7"}`+"\n{\n"+`{"id":"b","question":"é < 2?","answer":"1"}`+"\n")
	writeFile(t, filepath.Join(dir, "more.jsonl"), `{"id":"c","question":"1 + 1?","answer":"2"}`+"\n")
	writeFile(t, filepath.Join(dir, "prices.json"),
		`{"version":"test","models":{"openai":{"lab":{"input":1000000000,"cache_read":100000000,"cache_write":1250000000,"output":3000000000}}}}`)
	path = filepath.Join(dir, "c.yaml")
	writeFile(t, path, strings.Replace(config, "URL", url, 1))
	return path
}

// TestPlanShowsWhatIsSent: the prompts that plan shows are those that run sends,
// and plan sends nothing itself and writes nothing.
func TestPlanShowsWhatIsSent(t *testing.T) {
	t.Parallel()
	p := &provider{first: map[string]sentRequest{}}
	web := httptest.NewServer(p)
	t.Cleanup(web.Close)
	config := planFiles(t, web.URL+"/v1", planConfig)
	before := everyFile(t, filepath.Dir(config))
	r := planOf(t, config, "--show-prompt")
	if all, _ := p.got(); all > 0 {
		t.Errorf("plan sent %d requests", all)
	}
	if diff := cmp.Diff(before, everyFile(t, filepath.Dir(config))); diff != "" {
		t.Errorf("plan wrote (-before +after):\n%s", diff)
	}
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", config, "--out", dir, "--quiet")
	if want := []int{2, 1}; r.Sources[0].Tasks != want[0] || r.Sources[1].Tasks != want[1] || r.Sources[0].BadRows != 1 {
		t.Errorf("sources %+v, want %v tasks and a bad row", r.Sources, want)
	}
	if r.Total.Episodes != 24 || r.Total.ToRun != 24 || len(r.Cells) != 8 {
		t.Errorf("%d cells of %d episodes, %d to run, want 8 of 24 and 24", len(r.Cells), r.Total.Episodes, r.Total.ToRun)
	}
	if got := len(recorded(t, dir)); got != r.Total.Episodes {
		t.Errorf("run made %d episodes, plan said %d", got, r.Total.Episodes)
	}
	shown := map[string]sentRequest{}
	for _, prompt := range r.Prompts {
		for _, v := range prompt.Variants {
			sent := sentRequest{Messages: prompt.Messages}
			for _, tool := range prompt.Tools {
				sent.Tools = append(sent.Tools, struct {
					Function model.ToolSpec `json:"function"`
				}{tool})
			}
			shown[prompt.Task+" "+v] = sent
		}
	}
	if len(r.Prompts) != 4 || len(shown) != 8 {
		t.Errorf("%d prompts of %d variants and sources are shown, want 4 of 8", len(r.Prompts), len(shown))
	}
	_, first := p.got()
	for _, row := range recorded(t, dir) {
		want, ok := shown[row.TaskID+" "+row.Variant]
		if !ok {
			continue // not the first task of its source
		}
		ep := dataset.Episode{ID: row.EpisodeID}
		if diff := cmp.Diff(first[model.CallID(&ep, 0)], want); diff != "" {
			t.Errorf("%s %s (-sent +shown):\n%s", row.TaskID, row.Variant, diff)
		}
	}
}

// TestPlanShowsRecordedPrompts: the same for the quickstart, whose terminal
// tasks get no sandbox in a plan.
func TestPlanShowsRecordedPrompts(t *testing.T) {
	t.Parallel()
	r := planOf(t, "bundled:quickstart", "-m", "scripted/null", "--limit", "1", "--samples", "1", "--show-prompt")
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", "bundled:quickstart", "-m", "scripted/null", "--limit", "1", "--samples", "1", "--out", dir, "--quiet")
	type row struct {
		Task, Role, Content string
	}
	var shown []row
	for _, p := range r.Prompts {
		for _, m := range p.Messages {
			shown = append(shown, row{p.Task, string(m.Role), m.Content})
		}
	}
	got := ask[row](t, dir, `SELECT e.task_id AS task, m.role, m.content FROM messages m JOIN episodes e USING (run_id, episode_id, attempt)
		WHERE m.turn = 0 ORDER BY e.dataset, m.position`)
	if diff := cmp.Diff(got, shown); diff != "" || len(shown) != 4 {
		t.Errorf("(-recorded +shown):\n%s", diff)
	}
}

// TestPlanOfAResume: what is recorded is not run again, and tells what the rest
// will use.
func TestPlanOfAResume(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{})
	config := labConfig(t, l.base, 4, "samples: 2\n")
	dir := filepath.Join(t.TempDir(), "run")
	mustExit(t, 0, "run", config, "--out", dir, "--limit", "3", "--quiet")
	sent := len(l.Ledger())
	for name, args := range map[string][]string{
		"run --resume": {config, "--out", dir, "--resume"},
		"the run":      {dir, "--set", "tasks.0.limit=4"},
	} {
		r := planOf(t, args...)
		got := []int{r.Total.Episodes, r.Total.Reused, r.Total.ToRun, r.Total.Again}
		if diff := cmp.Diff([]int{8, 6, 2, 0}, got); diff != "" {
			t.Errorf("%s: episodes, reused, to run, again (-want +got):\n%s", name, diff)
		}
		if !r.Resumes || r.Dir != dir || len(r.Examples) != 1 || r.Examples[0].Run != dir {
			t.Errorf("%s: resumes %t %s after %v", name, r.Resumes, r.Dir, r.Examples)
		}
		used := recorded(t, dir)
		var out, cost int64
		for _, a := range used {
			out += a.OutputTokens
			cost += a.CostKnownNanoUSD
		}
		if want := (2*out + 3) / 6; *r.Total.TokensOut.Expected != want {
			t.Errorf("%s: %d tokens out are expected, want %d: a third of what 6 episodes used", name, *r.Total.TokensOut.Expected, want)
		}
		if want := (2*cost + 3) / 6; *r.Total.CostNanoUSD.Expected != want {
			t.Errorf("%s: %d nano-dollars are expected, want %d", name, *r.Total.CostNanoUSD.Expected, want)
		}
	}
	if now := len(l.Ledger()); now != sent {
		t.Errorf("plan sent %d requests", now-sent)
	}
}

// TestPlanFindsExamples: a finished run of the same tasks is an example, one of
// other tasks or that was stopped is none, and --like goes before all.
func TestPlanFindsExamples(t *testing.T) {
	t.Parallel()
	config := questions(t, 20)
	runs := filepath.Join(filepath.Dir(config), "runs")
	other := scriptedRun(t, 3)
	r := planOf(t, config)
	if len(r.Examples) != 0 || r.Total.TokensIn.Expected != nil || r.Cells[0].Basis != byPrompts {
		t.Errorf("examples %v, basis %s before any run", r.Examples, r.Cells[0].Basis)
	}
	mustExit(t, 0, "run", config, "--set", "out="+runs, "--limit", "10", "--quiet")
	r = planOf(t, config, "--set", "out="+runs)
	if len(r.Examples) != 1 || r.Examples[0].Episodes != 10 || r.Total.TokensIn.Expected == nil {
		t.Errorf("examples %+v of a run of ten", r.Examples)
	}
	r = planOf(t, config, "--set", "out="+runs, "--like", other)
	if len(r.Examples) != 1 || r.Examples[0].Run != other {
		t.Errorf("examples %+v, want %s", r.Examples, other)
	}
	_, stderr := mustExit(t, 2, "plan", config, "--like", filepath.Dir(config))
	wantTexts(t, stderr, "--like: ", "not a run directory")
}

// TestPlanBounds: one question without tools is one call, which max_tokens
// bounds, and so does the run's own use.
func TestPlanBounds(t *testing.T) {
	t.Parallel()
	l := newLab(t, lab.Script{})
	config := labConfig(t, l.base, 5, "samples: 3\n")
	dir := filepath.Join(t.TempDir(), "run")
	set := []string{config, "--set", "agent.toolsets=[]", "--set", "agent.sampling.max_tokens=8"}
	r := planOf(t, set...)
	out, cost := r.Total.TokensOut, r.Total.CostNanoUSD
	if out.Max == nil || *out.Max != 5*3*8 || *out.Min != 0 {
		t.Errorf("tokens out %s, want 0 to %d", out.text(amount), 5*3*8)
	}
	in := *r.Total.TokensIn.Min
	if *r.Total.TokensIn.Max != in || *cost.Min != in*1000 || *cost.Max != in*1000+5*3*8*3000 {
		t.Errorf("%d tokens in cost %d to %d nano-dollars", in, *cost.Min, *cost.Max)
	}
	mustExit(t, 0, append([]string{"run", "--out", dir, "--quiet"}, set...)...)
	var used int64
	for _, a := range recorded(t, dir) {
		used += a.OutputTokens
	}
	if used > *out.Max {
		t.Errorf("the run used %d tokens, the bound was %d", used, *out.Max)
	}
	with := planOf(t, config)
	if with.Total.TokensOut.Max != nil || with.Total.TokensIn.Max != nil || with.Total.CostNanoUSD.Max != nil {
		t.Error("tools and no max_tokens, and there is a bound")
	}
}

// TestPlanRefuses: what run refuses plan tells, all at once, with the same code.
func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	config := planFiles(t, "https://example.com/v1", planConfig)
	there := scriptedRun(t, 1)
	const key = "sk-a-secret-key"
	tests := []struct {
		name string
		args []string
		env  string
		bad  []string // checks
		says string
	}{
		{"no key", []string{config, "--set", "agent.api_key_env=MY_KEY"}, "", []string{"key"}, "the environment has no MY_KEY"},
		{"a key", []string{config, "--set", "agent.api_key_env=MY_KEY"}, "MY_KEY=" + key, nil, "MY_KEY is set, for https://example.com/v1"},
		{"a bad row", []string{config, "--set", "agent.api_key_env=MY_KEY", "--set", "tasks.0.on_bad_row=fail"}, "MY_KEY=" + key, []string{"tasks"}, "tasks.jsonl:2"},
		{"a run that is there", []string{config, "--set", "agent.api_key_env=", "--out", there}, "", []string{"directory"}, "holds a run already"},
		{"another identity", []string{there, "--set", "seed=9"}, "", []string{"directory"}, "describes other episodes"},
		{"no price under a limit", []string{config, "-m", "openai/other", "--set", "agent.api_key_env=", "--set", "limits.run.cost_usd=1", "--set", "agent.sampling.max_tokens=9"}, "", []string{"model"}, "the price of openai/other is not known"},
		{"much at once", []string{config, "--set", "agent.api_key_env=MY_KEY", "--set", "tasks.0.on_bad_row=fail", "--out", there}, "", []string{"directory", "key", "tasks"}, "MY_KEY"},
		{"no such tool", []string{config, "--set", "agent.api_key_env=", "--set", "agent.toolsets=[mth]"}, "", []string{"episodes"}, "mth"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "talaria", append([]string{"plan", "--format", "json"}, tt.args...)...)
			cmd.Env = append(os.Environ(), tt.env)
			p := launch(t, cmd)
			want := 0
			if len(tt.bad) > 0 {
				want = 2
			}
			if code := p.wait(t); code != want {
				t.Fatalf("exit code %d, want %d\n%s%s", code, want, p.out, p.err)
			}
			var r planReport
			if err := json.Unmarshal([]byte(p.out.String()), &r); err != nil {
				t.Fatal(err)
			}
			bad := r.bad()
			slices.Sort(bad)
			if diff := cmp.Diff(tt.bad, bad); diff != "" {
				t.Errorf("bad checks (-want +got):\n%s\n%+v", diff, r.Checks)
			}
			wantTexts(t, p.out.String(), tt.says)
			if strings.Contains(p.out.String()+p.err.String(), key) {
				t.Error("the key is shown")
			}
		})
	}
}

// TestPlanTable reads as it should.
func TestPlanTable(t *testing.T) {
	t.Parallel()
	config := planFiles(t, "http://127.0.0.1:9/v1", planConfig)
	cmd := exec.CommandContext(t.Context(), "talaria", "plan", "c.yaml", "--show-prompt", "--set", "limits.run.cost_usd=2", "--set", "agent.sampling.max_tokens=100")
	cmd.Dir = filepath.Dir(config)
	p := launch(t, cmd)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.err)
	}
	golden(t, "plan.txt", strings.ReplaceAll(p.out.String(), cmd.Dir, "DIR"))
}
