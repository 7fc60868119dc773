//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// fenced is the block of a page in a language that holds a text.
func fenced(t *testing.T, page, language, text string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		if strings.Contains(block[1], text) {
			return block[1]
		}
	}
	t.Fatalf("docs/%s has no %s block with %q", page, language, text)
	return ""
}

// cluster runs the scripts of docs/slurm.md as SLURM would.
type cluster struct {
	dir   string
	array []int // ids of the array's tasks
}

// newCluster writes the scripts and a config, and a scontrol that writes down
// what it is asked.
func newCluster(t *testing.T, config string) *cluster {
	t.Helper()
	c := &cluster{dir: t.TempDir()}
	shards := fenced(t, "slurm.md", "bash", "#SBATCH --array")
	writeFile(t, filepath.Join(c.dir, "shards.sbatch"), shards)
	writeFile(t, filepath.Join(c.dir, "merge.sbatch"), fenced(t, "slurm.md", "bash", "talaria merge"))
	writeFile(t, filepath.Join(c.dir, "config.yaml"), config)
	scontrol := filepath.Join(c.dir, "bin", "scontrol")
	if err := os.Mkdir(filepath.Dir(scontrol), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, scontrol, "#!/bin/sh\necho \"$@\" >> '"+filepath.Join(c.dir, "scontrol.log")+"'\n")
	if err := os.Chmod(scontrol, 0o755); err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`(?m)^#SBATCH --array=(\d+)-(\d+)$`).FindStringSubmatch(shards)
	if ids == nil {
		t.Fatal("the script says no array")
	}
	first, _ := strconv.Atoi(ids[1])
	last, _ := strconv.Atoi(ids[2])
	for id := first; id <= last; id++ {
		c.array = append(c.array, id)
	}
	return c
}

// task is a script as a task of an array.
func (c *cluster) task(t *testing.T, script string, id int, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", script)
	cmd.Dir = c.dir
	cmd.Env = slices.Concat(os.Environ(), []string{
		"PATH=" + filepath.Join(c.dir, "bin") + ":" + os.Getenv("PATH"),
		"SLURM_ARRAY_JOB_ID=77", "SLURM_ARRAY_TASK_ID=" + strconv.Itoa(id),
		"SLURM_ARRAY_TASK_MIN=" + strconv.Itoa(c.array[0]), "SLURM_ARRAY_TASK_STEP=1",
		"SLURM_ARRAY_TASK_COUNT=" + strconv.Itoa(len(c.array)),
	}, env)
	return cmd
}

const deployConfig = `version: 1
name: demo
tasks: {path: "bundled:quickstart", limit: 40, columns: {id: id, input: question, target: answer}}
agent: {model: scripted/oracle}
score: [{name: exact}]
`

// TestSlurmScripts runs the job array of docs/slurm.md and its merge.
func TestSlurmScripts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, deployConfig)
	for _, id := range c.array {
		if out, err := c.task(t, "shards.sbatch", id).CombinedOutput(); err != nil {
			t.Fatalf("task %d: %v\n%s", id, err, out)
		}
	}
	// A task that is submitted again by itself is another array of one place.
	alone := c.task(t, "shards.sbatch", 3, "SLURM_ARRAY_JOB_ID=78", "SLURM_ARRAY_TASK_MIN=3", "SLURM_ARRAY_TASK_COUNT=1", "RUNS=runs/77")
	if out, err := alone.CombinedOutput(); err == nil || !strings.Contains(string(out), "is the run of shard 3/8 and not of 0/1") {
		t.Errorf("a task alone: %v\n%s", err, out)
	}
	alone = c.task(t, "shards.sbatch", 3, "SLURM_ARRAY_JOB_ID=78", "SLURM_ARRAY_TASK_MIN=3", "SLURM_ARRAY_TASK_COUNT=1", "RUNS=runs/77", "SHARD=3/8")
	if out, err := alone.CombinedOutput(); err != nil {
		t.Errorf("a task alone with its shard: %v\n%s", err, out)
	}
	out, err := c.task(t, "merge.sbatch", 0, "RUNS="+filepath.Join(c.dir, "runs", "77")).CombinedOutput()
	if err != nil {
		t.Fatalf("merging: %v\n%s", err, out)
	}
	wantTexts(t, string(out), "demo: complete, 40 of 40 episodes")
	stdout, _ := mustExit(t, 0, "status", filepath.Join(c.dir, "runs", "77", "whole"))
	wantTexts(t, stdout, "demo: complete, 40 of 40 episodes")
	if _, err := os.Stat(filepath.Join(c.dir, "scontrol.log")); err == nil {
		t.Error("something was queued again")
	}
}

// TestSlurmSignal sends a task the signal that SLURM sends to the batch script:
// it drains, queues itself again, and goes on.
func TestSlurmSignal(t *testing.T) {
	t.Parallel()
	c := newCluster(t, strings.Replace(deployConfig, "scripted/oracle}", "scripted/oracle, simulate: {latency_min: 300ms, latency_max: 300ms}}\nlimits: {concurrency: {episodes: 1}}", 1))
	dir := filepath.Join(c.dir, "runs", "77", "shard-2")
	slow := c.task(t, "shards.sbatch", 2)
	p := launch(t, slow)
	until(t, "an episode is recorded", func() bool { return isRun(dir) && len(ended(t, dir)) > 0 })
	if err := slow.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != 130 {
		t.Fatalf("exit code %d, want 130\n%s%s", code, p.out, p.err)
	}
	log, err := os.ReadFile(filepath.Join(c.dir, "scontrol.log"))
	if diff := cmp.Diff("requeue 77_2\n", string(log)); diff != "" || err != nil {
		t.Errorf("asked of scontrol: %v (-want +got):\n%s", err, diff)
	}
	stdout, _ := mustExit(t, 0, "status", dir)
	wantTexts(t, stdout, "demo, shard 2/8: interrupted, ")
	if out, err := c.task(t, "shards.sbatch", 2).CombinedOutput(); err != nil {
		t.Fatalf("queued again: %v\n%s", err, out)
	}
	stdout, _ = mustExit(t, 0, "status", dir)
	wantTexts(t, stdout, "demo, shard 2/8: complete, ")
}

// TestSlurmDirectives wants every line of sbatch's to be one that it knows, and
// to stand before the first command, behind which they count for nothing.
func TestSlurmDirectives(t *testing.T) {
	known := []string{
		"job-name", "array", "cpus-per-task", "mem", "time", "signal", "requeue", "open-mode", "output",
	}
	for _, name := range []string{"#SBATCH --array", "talaria merge"} {
		script, found := fenced(t, "slurm.md", "bash", name), 0
		head, body, _ := strings.Cut(script, "\nset -euo pipefail\n")
		for line := range strings.SplitSeq(head, "\n") {
			option, isOption := strings.CutPrefix(line, "#SBATCH --")
			word, _, _ := strings.Cut(option, "=")
			if line != "#!/bin/bash" && (!isOption || !slices.Contains(known, word)) {
				t.Errorf("%q is no option of sbatch", line)
			}
			found++
		}
		if found < 4 || strings.Contains(body, "#SBATCH") {
			t.Errorf("options stand behind the first command:\n%s", script)
		}
	}
}

// object is a value of a manifest.
type object = map[string]any

// at goes down by keys and indices.
func at[T any](t *testing.T, v any, path ...any) T {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				t.Fatalf("%v: there is no %d", path, step)
			}
			v = l[step]
		}
	}
	got, ok := v.(T)
	if !ok {
		t.Fatalf("%v is a %T", path, v)
	}
	return got
}

// manifests are the objects of a YAML block, by kind.
func manifests(t *testing.T, text string) map[string]object {
	t.Helper()
	byKind := map[string]object{}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o object
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return byKind
		}
		if err != nil {
			t.Fatal(err)
		}
		byKind[at[string](t, o, "kind")] = o
	}
}

// argsOf is the command line of a Job's container as a pod of an index has it,
// with its volumes in a directory.
func argsOf(t *testing.T, job object, index int, dir string) []string {
	t.Helper()
	container := []any{"spec", "template", "spec", "containers", 0}
	args := make([]string, 0, 16)
	for _, arg := range at[[]any](t, job, append(container, "args")...) {
		s := strings.ReplaceAll(fmt.Sprint(arg), "$(SHARD)", strconv.Itoa(index))
		for _, mount := range at[[]any](t, job, append(container, "volumeMounts")...) {
			path := at[string](t, mount, "mountPath")
			if flag, rest, found := strings.Cut(s, path+"/"); found && (flag == "" || strings.HasSuffix(flag, "=")) {
				s = flag + dir + path + "/" + rest
				break
			}
		}
		args = append(args, s)
	}
	return args
}

// TestKubernetesManifests runs the command lines of docs/kubernetes.md as the
// pods of an Indexed Job would, and those of the merge.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	made := manifests(t, fenced(t, "kubernetes.md", "yaml", "completionMode: Indexed"))
	job, dir := made["Job"], t.TempDir()
	n := at[int](t, job, "spec", "completions")
	if p := at[int](t, job, "spec", "parallelism"); at[string](t, job, "spec", "completionMode") != "Indexed" || p != n {
		t.Errorf("%d completions, %d at a time", n, p)
	}
	variable := at[object](t, job, "spec", "template", "spec", "containers", 0, "env", 0)
	from := at[string](t, variable, "valueFrom", "fieldRef", "fieldPath")
	if variable["name"] != "SHARD" || from != "metadata.annotations['batch.kubernetes.io/job-completion-index']" {
		t.Errorf("SHARD comes from %s", from)
	}
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "config", "config.yaml"), at[string](t, made["ConfigMap"], "data", "config.yaml"))
	for index := range n {
		cmd := exec.CommandContext(t.Context(), "talaria", argsOf(t, job, index, dir)...)
		cmd.Env = append(os.Environ(), jobIndex+"="+strconv.Itoa(index))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("pod %d: %v\n%s", index, err, out)
		}
	}
	merge := manifests(t, fenced(t, "kubernetes.md", "yaml", "- merge\n"))["Job"]
	stdout, _ := mustExit(t, 0, argsOf(t, merge, 0, dir)...)
	wantTexts(t, stdout, "demo: complete, ")
	if strings.Contains(stdout, "missing") {
		t.Errorf("the merge misses shards:\n%s", stdout)
	}
	image := func(job object) string {
		return at[string](t, job, "spec", "template", "spec", "containers", 0, "image")
	}
	if image(job) != image(merge) {
		t.Errorf("the images are %s and %s", image(job), image(merge))
	}
}

// TestContainerfile wants the stages of the Containerfile to fit each other and
// the sources.
func TestContainerfile(t *testing.T) {
	text := fenced(t, "kubernetes.md", "dockerfile", "FROM")
	build := regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 go build .*-o (\S+) (\./\S+)$`).FindStringSubmatch(text)
	if build == nil {
		t.Fatalf("no static build in\n%s", text)
	}
	if _, err := os.Stat(filepath.Join("..", "..", build[2], "main.go")); err != nil {
		t.Error(err)
	}
	copied := regexp.MustCompile(`(?m)^COPY --from=build ` + build[1] + ` (\S+)$`).FindStringSubmatch(text)
	if copied == nil || !strings.Contains(text, `ENTRYPOINT ["`+copied[1]+`"]`) {
		t.Errorf("what is built is not what is started:\n%s", text)
	}
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if !strings.Contains(text, "golang:"+string(version[1])+" ") || !bytes.Contains(mod, version[1]) {
		t.Errorf("the image's Go is not %s", version[1])
	}
}
