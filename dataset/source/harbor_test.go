package source

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// writeTasks makes a folder of files, named by path.
func writeTasks(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// harborFiles are the files of one task.
func harborFiles(folder, toml string) map[string]string {
	return map[string]string{
		folder + "/task.toml":         toml,
		folder + "/instruction.md":    "Do " + folder + ".\n",
		folder + "/tests/test.sh":     "echo 1\n",
		folder + "/solution/solve.sh": "true " + folder + "\n",
	}
}

func joinFiles(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

const fullTOML = `
schema_version = "1.4"
source = "somewhere"
artifacts = ["/logs/artifacts"]

[task]
name = "org/full"
version = "2"
description = "all keys that can be run"
keywords = ["a", "b"]
authors = [{name = "Ada", email = "ada@example.org"}]

[metadata]
difficulty = "hard"
estimate = 12
weights = [0.5, 1]
when = 2025-01-02
requires = ["sh"]
deep = {x = true}

[agent]
timeout_sec = 90
network_mode = "public"

[verifier]
timeout_sec = 30.5
env = {KEY = "${KEY:-x}"}
environment_mode = "shared"

[[verifier.collect]]
command = "make report"
service = "main"
timeout_sec = 5

[environment]
build_timeout_sec = 600
os = "linux"
cpus = 2
memory_mb = 2048
storage_mb = 512.5
gpus = 0
network_mode = "no-network"
workdir = "/app"
env = {A = "1"}

[solution]
env = {S = "2"}
`

func TestHarborTask(t *testing.T) {
	dir := writeTasks(t, joinFiles(harborFiles("b-full", fullTOML), harborFiles("a-bare", ""), map[string]string{"notes/readme.md": "no task"}))
	s, err := Open(Options{Path: "harbor:" + dir, Name: "mine", Keep: []string{"difficulty"}, SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []dataset.Task
	for task, err := range s.Tasks() {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat(task.Files, "tests/test.sh"); err != nil {
			t.Errorf("the files of %s: %v", task.ID, err)
		}
		task.Files, task.Row = nil, nil
		got = append(got, task)
	}
	params, _ := json.Marshal(dataset.TerminalParams{
		Workdir: "/app", Network: "no-network", Env: map[string]string{"A": "1"},
		Memory: 2 << 30, Storage: 512<<20 + 1<<19, CPUs: 2,
		AgentTimeoutSec: 90, VerifierTimeoutSec: 30.5, VerifierEnv: map[string]string{"KEY": "${KEY:-x}"},
		Collect:     []dataset.TerminalHook{{Command: "make report", TimeoutSec: 5}},
		SolutionEnv: map[string]string{"S": "2"},
		Metadata: map[string]any{
			"description": "all keys that can be run", "keywords": []any{"a", "b"}, "estimate": json.Number("12"),
			"weights": []any{json.Number("0.5"), json.Number("1")}, "when": "2025-01-02", "requires": []any{"sh"},
			"deep": map[string]any{"x": true},
		},
	})
	hash := func(id, input, target string) string {
		return dataset.TaskHash(map[string]any{"id": id, "input": input, "target": target})
	}
	want := []dataset.Task{
		{
			ID: "a-bare", Hash: hash("a-bare", "Do a-bare.\n", "true a-bare\n"), Dataset: "mine",
			Input: "Do a-bare.\n", Target: "true a-bare\n", Params: "{}", Keep: map[string]any{},
		},
		{
			ID: "org/full", Hash: hash("org/full", "Do b-full.\n", "true b-full\n"), Dataset: "mine",
			Input: "Do b-full.\n", Target: "true b-full\n", Params: string(params), Keep: map[string]any{"difficulty": "hard"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks differ (-want +got):\n%s", diff)
	}
	if s.Bad().Count != 0 || len(s.Skipped()) != 0 {
		t.Errorf("bad %+v, skipped %+v", s.Bad(), s.Skipped())
	}
}

// TestHarborOldNames says the same by names that were given up.
func TestHarborOldNames(t *testing.T) {
	doc, err := parseHarbor([]byte("version = \"1.0\"\n[environment]\nmemory = \"1.5G\"\nstorage = \"512 MiB\"\nallow_internet = false\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := dataset.TerminalParams{Memory: 3 << 29, Storage: 512 << 20, Network: "no-network"}
	if diff := cmp.Diff(want, doc.params()); diff != "" {
		t.Errorf("params differ (-want +got):\n%s", diff)
	}
}

// TestHarborSingle opens one task, under columns of one's own.
func TestHarborSingle(t *testing.T) {
	dir := writeTasks(t, harborFiles("t", "[metadata]\ntopic = \"x\"\n"))
	path := "harbor:" + filepath.Join(dir, "t")
	tasks := readAll(t, Options{Path: path})
	if len(tasks) != 1 || tasks[0].ID != "t" || tasks[0].Row["topic"] != "x" {
		t.Errorf("tasks %+v", tasks)
	}
	tasks = readAll(t, Options{Path: path, Columns: map[string]string{ID: "topic", Target: ""}})
	if tasks[0].ID != "x" || tasks[0].Target != "" {
		t.Errorf("tasks %+v", tasks)
	}
}

func TestHarborBroken(t *testing.T) {
	tests := []struct{ name, toml, want string }{
		{"syntax", "[task]\nname = \"x\n", "task.toml:2: "},
		{"unknown key", "[agent]\n\ntime_out = 3\n", "task.toml:3: unknown key agent.time_out; it is not in schema 1.4 of task.toml, and notes of your own belong under [metadata]"},
		{"unknown table", "[continuous]\nx = 1\n", "task.toml:1: unknown key continuous"},
		{"type", "[verifier]\ntimeout_sec = \"long\"\n", "task.toml:2: "},
		{"type within env", "[environment]\nenv = {A = 1}\n", "task.toml:2: "},
		{"twice", "[task]\nname = \"a\"\nname = \"b\"\n", "task.toml:3: "},
		{"schema", "# head\nschema_version = \"2.0\"\n", `task.toml:2: schema_version: "2.0" is not a schema known here: 1.0 to 1.4`},
		{"old schema key", "version = \"0.9\"\n", `task.toml:1: schema_version: "0.9" is not`},
		{"negative", "[verifier]\ntimeout_sec = -1\n", "task.toml:2: verifier.timeout_sec: it must be a number above 0"},
		{"not finite", "[agent]\ntimeout_sec = inf\n", "task.toml:2: agent.timeout_sec: it must be"},
		{"old size", "[environment]\nmemory = \"much\"\n", "task.toml:2: environment.memory_mb: it must be"},
		{"mode", "[environment]\nnetwork_mode = \"some\"\n", `task.toml:2: environment.network_mode: "some" is none of public, no-network, allowlist`},
		{"relative", "environment.workdir = \"app\"\n", `task.toml:1: environment.workdir: "app" must be absolute`},
		{"hook", "[[verifier.collect]]\ncommand = \" \"\n", "task.toml:1: verifier.collect: a hook without a command"},
		{"requires", "[metadata]\nrequires = \"git\"\n", `task.toml:2: metadata.requires: it must list names of programs`},
		{"requires a path", "[metadata]\nrequires = [\"/bin/sh\"]\n", `task.toml:2: metadata.requires: it must list`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeTasks(t, joinFiles(harborFiles("a", tt.toml), harborFiles("b", "")))
			s, err := Open(Options{Path: "harbor:" + dir})
			if err != nil {
				t.Fatal(err)
			}
			_, err = collect(s.Tasks())
			if err == nil || !strings.HasPrefix(err.Error(), "harbor:"+dir+"/a/"+tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			s, err = Open(Options{Path: "harbor:" + dir, SkipBadRows: true})
			if err != nil {
				t.Fatal(err)
			}
			tasks, err := collect(s.Tasks())
			if err != nil || len(tasks) != 1 || tasks[0].ID != "b" || s.Bad().Count != 1 {
				t.Errorf("with bad rows skipped: tasks %+v, bad %+v, error %v", tasks, s.Bad(), err)
			}
		})
	}
}

func TestHarborMissingFiles(t *testing.T) {
	tests := []struct{ name, remove, replace, want string }{
		{name: "no settings", remove: "task.toml", want: "task.toml: no such file"},
		{name: "no instruction", remove: "instruction.md", want: "instruction.md: no such file"},
		{name: "empty instruction", remove: "instruction.md", replace: " \n", want: "instruction.md: the instruction is empty"},
		{name: "no text", remove: "instruction.md", replace: "\xff\xfe", want: "instruction.md: not text in UTF-8"},
		{name: "no tests", remove: "tests/test.sh", want: "tests/test.sh: no such file; without it nothing can verify the task"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := joinFiles(harborFiles("a", ""), harborFiles("b", ""))
			delete(files, "a/"+tt.remove)
			if tt.replace != "" {
				files["a/"+tt.remove] = tt.replace
			}
			dir := writeTasks(t, files)
			s, err := Open(Options{Path: "harbor:" + dir})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = collect(s.Tasks()); err == nil || err.Error() != "harbor:"+dir+"/a/"+tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestHarborSkips names what cannot be run without an image.
func TestHarborSkips(t *testing.T) {
	tests := []struct{ name, toml, file, want string }{
		{name: "image", toml: "[environment]\ndocker_image = \"debian:12\"\n", want: "it needs the image debian:12"},
		{name: "dockerfile", file: "environment/Dockerfile", want: "it needs the image of its Dockerfile"},
		{name: "compose", file: "environment/docker-compose.yaml", toml: "[metadata]\nrequires = []\n", want: "docker-compose"},
		{name: "steps", toml: "[[steps]]\nname = \"one\"\n", want: "several steps"},
		{name: "windows", toml: "[environment]\nos = \"windows\"\n", want: "it needs Windows"},
		{name: "gpus", toml: "[environment]\ngpus = 1\n", want: "it needs a GPU"},
		{name: "gpu types", toml: "[environment]\ngpu_types = [\"H100\"]\n", want: "it needs a GPU"},
		{name: "tpu", toml: "[environment]\ntpu = {type = \"v6e\", topology = \"2x4\"}\n", want: "it needs a TPU"},
		{name: "allowlist", toml: "[agent]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"example.org\"]\n", want: "allowed hosts"},
		{name: "mcp", toml: "[[environment.mcp_servers]]\nname = \"x\"\ntransport = \"stdio\"\ncommand = \"x\"\nargs = []\n", want: "MCP servers"},
		{name: "skills", toml: "[environment]\nskills_dir = \"/skills\"\n", want: "skills"},
		{name: "healthcheck", toml: "[environment.healthcheck]\ncommand = \"true\"\n", want: "waits for a service"},
		{name: "user", toml: "[agent]\nuser = \"root\"\n", want: "certain users"},
		{name: "hook elsewhere", toml: "[[verifier.collect]]\ncommand = \"true\"\nservice = \"db\"\n", want: "certain users or services"},
		{name: "separate", toml: "[verifier]\nenvironment_mode = \"separate\"\n", want: "environment of its own"},
		{name: "separate by default", toml: "[verifier.environment]\ndocker_image = \"x\"\n", want: "environment of its own"},
		{name: "program", toml: "[metadata]\nrequires = [\"sh\", \"no-such-program-x\"]\n", want: "it needs the program no-such-program-x, which this machine does not have"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := joinFiles(harborFiles("a", tt.toml), harborFiles("b", ""))
			if tt.file != "" {
				files["a/"+tt.file] = "FROM x\n"
			}
			s, err := Open(Options{Path: "harbor:" + writeTasks(t, files)})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a pass counts anew
				tasks, err := collect(s.Tasks())
				skipped := s.Skipped()
				if err != nil || len(tasks) != 1 || tasks[0].ID != "b" || s.Bad().Count != 0 ||
					len(skipped) != 1 || skipped[0].Task != "a" || !strings.Contains(skipped[0].Reason, tt.want) {
					t.Errorf("tasks %d, skipped %+v, bad %+v, error %v; want a skipped: %s", len(tasks), skipped, s.Bad(), err, tt.want)
				}
			}
		})
	}
}

// TestHarborSkipsAll does not take a source without a task for a good one.
func TestHarborSkipsAll(t *testing.T) {
	dir := writeTasks(t, harborFiles("a", "[environment]\ngpus = 8\n"))
	s, err := Open(Options{Path: "harbor:" + dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Tasks()); err == nil || err.Error() != "harbor:"+dir+": not one of 1 tasks can be run here; a: it needs a GPU" {
		t.Errorf("error %v", err)
	}
}

// TestHarborRequires takes programs in place of a Dockerfile.
func TestHarborRequires(t *testing.T) {
	files := joinFiles(harborFiles("a", "[metadata]\nrequires = []\n"), map[string]string{"a/environment/Dockerfile": "FROM x\n"})
	if tasks := readAll(t, Options{Path: "harbor:" + writeTasks(t, files)}); len(tasks) != 1 {
		t.Errorf("tasks %+v", tasks)
	}
}

func TestHarborOpen(t *testing.T) {
	dir := writeTasks(t, map[string]string{"x/readme": ""})
	for path, want := range map[string]string{
		"harbor:" + dir:           "harbor:" + dir + ": it is not a Harbor task and holds none: there is no task.toml",
		"harbor:" + dir + "/none": "harbor:" + dir + "/none: no such folder",
	} {
		if _, err := Open(Options{Path: path}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestHarborLimit counts and skips nothing behind the limit.
func TestHarborLimit(t *testing.T) {
	files := map[string]string{}
	for i := range 4 {
		files = joinFiles(files, harborFiles(fmt.Sprint("t", i), "[task]\nname = \"same\"\n"))
	}
	files = joinFiles(files, harborFiles("t4", "[environment]\ngpus = 1\n"), harborFiles("t5", "broken"))
	s, err := Open(Options{Path: "harbor:" + writeTasks(t, files), Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := collect(s.Tasks())
	if err != nil || len(tasks) != 3 || len(s.Skipped()) != 0 {
		t.Fatalf("%d tasks, skipped %+v, error %v", len(tasks), s.Skipped(), err)
	}
	for i, task := range tasks {
		if task.ID != "same" || task.Occurrence != i {
			t.Errorf("task %d is %q, the %d. of its name", i, task.ID, task.Occurrence)
		}
	}
}

// TestHarborFingerprint changes with every file of a task, a hash of the task
// only with what the agent reads.
func TestHarborFingerprint(t *testing.T) {
	files := harborFiles("t", "")
	files["t/environment/data"] = "data\n"
	read := func(name, text string) (File, string) {
		changed := joinFiles(files)
		if name != "" {
			changed[name] = text
		}
		dir := writeTasks(t, changed)
		s, err := Open(Options{Path: "harbor:" + dir})
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := collect(s.Tasks())
		if err != nil {
			t.Fatal(err)
		}
		sums, err := s.Fingerprint()
		if err != nil || len(sums) != 1 || sums[0].Path != "harbor:"+dir {
			t.Fatalf("fingerprint %+v, error %v", sums, err)
		}
		return sums[0], tasks[0].Hash
	}
	first, hash := read("", "")
	again, _ := read("", "")
	if again.SHA256 != first.SHA256 || again.Bytes != first.Bytes {
		t.Errorf("the same files: %+v, then %+v", first, again)
	}
	for name, sameHash := range map[string]bool{
		"t/environment/data": true, "t/environment/more": true, "t/tests/test.sh": true, "t/instruction.md": false, "t/solution/solve.sh": false,
	} {
		changed, h := read(name, "other\n")
		if changed.SHA256 == first.SHA256 || (h == hash) != sameHash {
			t.Errorf("%s changed: fingerprint %v, hash as before %v", name, changed.SHA256 != first.SHA256, h == hash)
		}
	}
}

// TestHarborChanged ends a second pass over other files than the first.
func TestHarborChanged(t *testing.T) {
	dir := writeTasks(t, harborFiles("t", ""))
	s, err := Open(Options{Path: "harbor:" + dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Tasks()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "t/tests/test.sh"), []byte("echo 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Tasks()); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("error %v", err)
	}
}

func FuzzHarborTOML(f *testing.F) {
	f.Add(fullTOML)
	f.Add("[[steps]]\nname = \"x\"\n")
	f.Add("a.b.\"c d\" = {x = [1, {y = 2}]}\n")
	f.Add("environment.memory = \"2G\"\n# end")
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := parseHarbor([]byte(text))
		if err != nil {
			if _, ok := err.(RowError); !ok { //nolint:errorlint // exactly that, unwrapped
				t.Errorf("error %T: %v", err, err)
			}
			return
		}
		if _, err := encodeParams(doc.params()); err != nil {
			t.Error(err)
		}
		for _, v := range doc.Metadata {
			if _, err := encodeParams(plain(v)); err != nil {
				t.Error(err)
			}
		}
	})
}
