package hub_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset/source/hub"
	"github.com/talaria-run/talaria/dataset/source/hub/hubtest"
)

// content is a file of n bytes that differs by name.
func content(name string, n int) []byte {
	return bytes.Repeat([]byte(name+"\n"), n/(len(name)+1)+1)[:n]
}

func gsm8k() map[string][]byte {
	files := map[string][]byte{"README.md": []byte("# card"), ".gitattributes": []byte("x")}
	for _, name := range []string{"main/test-00000-of-00001.parquet", "main/train-00000-of-00002.parquet", "main/train-00001-of-00002.parquet", "socratic/test-00000-of-00001.parquet"} {
		files[name] = content(name, 5000)
	}
	files["small.csv"] = []byte("input,target\n")
	return files
}

type bundle struct {
	hub   *hubtest.Hub
	cache string
	log   *bytes.Buffer
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{hub: hubtest.New(t), cache: t.TempDir(), log: &bytes.Buffer{}}
}

func (b *bundle) client(change ...func(*hub.Options)) *hub.Client {
	o := hub.Options{
		Endpoint: b.hub.URL, Cache: b.cache, Wait: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	return hub.New(o)
}

func fetch(t *testing.T, c *hub.Client, path string) (hub.Snapshot, error) {
	t.Helper()
	ref, err := hub.Parse(path)
	if err != nil {
		return hub.Snapshot{}, err
	}
	return c.Fetch(t.Context(), ref)
}

func mustFetch(t *testing.T, c *hub.Client, path string) hub.Snapshot {
	t.Helper()
	snap, err := fetch(t, c, path)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func names(s hub.Snapshot) string {
	all := make([]string, len(s.Files))
	for i, f := range s.Files {
		all[i] = f.Name
	}
	return s.Config + "/" + s.Split + ": " + strings.Join(all, " ")
}

func TestFetch(t *testing.T) {
	b := setup(t)
	files := gsm8k()
	commit := b.hub.Add("openai/gsm8k", "main", files, nil)
	snap := mustFetch(t, b.client(), "hf://openai/gsm8k?split=train&config=main")
	if want := "main/train: main/train-00000-of-00002.parquet main/train-00001-of-00002.parquet"; names(snap) != want || snap.Commit != commit {
		t.Errorf("got %s at %s, want %s at %s", names(snap), snap.Commit, want, commit)
	}
	for _, f := range snap.Files {
		data, err := os.ReadFile(f.Path)
		if err != nil || !bytes.Equal(data, files[f.Name]) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(data), err)
		}
	}
	// Again: the hub is asked for the commit alone.
	b.hub.Requests()
	mustFetch(t, b.client(), "hf://openai/gsm8k?split=train&config=main&revision=main")
	if diff := cmp.Diff([]string{"GET /api/datasets/openai/gsm8k/revision/main"}, b.hub.Requests()); diff != "" {
		t.Errorf("requests differ (-want +got):\n%s", diff)
	}
	// And by its commit: not at all.
	mustFetch(t, b.client(), "hf://openai/gsm8k?split=train&config=main&revision="+commit)
	if r := b.hub.Requests(); len(r) > 0 {
		t.Errorf("the hub was asked: %v", r)
	}
}

func TestRevisions(t *testing.T) {
	b := setup(t)
	old := b.hub.Add("o/d", "main", map[string][]byte{"data/test-00000-of-00001.parquet": content("old", 2000)}, nil)
	c := b.client()
	mustFetch(t, c, "hf://o/d")
	now := b.hub.Add("o/d", "main", map[string][]byte{"data/test-00000-of-00001.parquet": content("new", 2000)}, nil)
	if got := mustFetch(t, c, "hf://o/d").Commit; got != now {
		t.Errorf("main is %s, want %s", got, now)
	}
	b.hub.Requests()
	if got := mustFetch(t, c, "hf://o/d?revision="+old).Commit; got != old || len(b.hub.Requests()) > 0 {
		t.Errorf("commit %s, want %s without a request", got, old)
	}
}

func TestOffline(t *testing.T) {
	b := setup(t)
	commit := b.hub.Add("o/d", "main", map[string][]byte{"test.csv": []byte("input\n"), "train.csv": content("t", 900)}, nil)
	mustFetch(t, b.client(), "hf://o/d?split=test")
	offline := b.client(func(o *hub.Options) { o.Offline = true })
	if got := mustFetch(t, offline, "hf://o/d?split=test").Commit; got != commit {
		t.Errorf("commit %s, want %s", got, commit)
	}
	b.hub.Requests()
	_, err := fetch(t, offline, "hf://o/d?split=train")
	if want := "hf://o/d: train.csv is not in the cache, and the hub is not asked, as HF_HUB_OFFLINE is set"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	if r := b.hub.Requests(); len(r) > 0 {
		t.Errorf("the hub was asked: %v", r)
	}
	b.hub.Close()
	if got := mustFetch(t, b.client(), "hf://o/d?split=test").Commit; got != commit {
		t.Errorf("commit %s, want %s", got, commit)
	}
	if !strings.Contains(b.log.String(), "the dataset comes from the cache") {
		t.Errorf("nothing tells that the cache is used: %s", b.log)
	}
	_, err = fetch(t, b.client(), "hf://o/other")
	if err == nil || !strings.HasPrefix(err.Error(), "hf://o/other: the hub cannot be reached: ") || !strings.HasSuffix(err.Error(), "and the cache does not know main") {
		t.Errorf("error = %v", err)
	}
}

func TestErrors(t *testing.T) {
	b := setup(t)
	b.hub.Token = "hf_secret"
	b.hub.Add("openai/gsm8k", "main", gsm8k(), nil)
	b.hub.Add("o/gated", "main", gsm8k(), nil)
	b.hub.Gated["o/gated"] = true
	b.hub.Add("o/one", "main", map[string][]byte{"test.csv": []byte("a"), "train.csv": []byte("b")}, nil)
	b.hub.Add("o/images", "main", map[string][]byte{"README.md": []byte("x"), "a.png": []byte("b")}, nil)
	tests := []struct{ path, want string }{
		{"hf://openai/gsm8k?split=tset&config=main", `hf://openai/gsm8k: the config "main" has no split "tset"; there are test, train`},
		{"hf://openai/gsm8k?split=test&config=x", `hf://openai/gsm8k: there is no config "x"; there are default, main, socratic`},
		{"hf://openai/gsm8k?config=main", `hf://openai/gsm8k: it has the splits test, train; choose one with ?split=test`},
		{"hf://o/one?split=validation", `hf://o/one: there is no split "validation"; there are test, train`},
		{"hf://o/one?revision=v9", `hf://o/one: the dataset has no such revision; revision= is a branch, a tag or a commit of it`},
		{"hf://o/gated", `hf://o/gated: the dataset is gated (status 401): ask for access on its page at HUB, and set HF_TOKEN to a token that may read it`},
		{"hf://o/none", `hf://o/none: there is no such dataset on HUB, or it is private (status 401): look at its name, or set HF_TOKEN to a token that may read it`},
		{"hf://o/images", `hf://o/images: the dataset has no file that can be read: no Parquet, Arrow, JSONL or CSV, and none that the hub has converted: the dataset has no such revision; revision= is a branch, a tag or a commit of it`},
		{"hf://", `hf://: a dataset on a hub is written hf://org/name?split=test`},
		{"hf://a/b/c", `hf://a/b/c: a dataset on a hub is written hf://org/name?split=test`},
		{"hf://../b", `hf://../b: a dataset on a hub is written hf://org/name?split=test`},
		{"hf://o/d?splt=test", `hf://o/d?splt=test: "splt" is not known here; known are split, revision and config`},
		{"hf://o/d?split=a&split=b", `hf://o/d?split=a&split=b: split is there twice`},
	}
	for _, test := range tests {
		_, err := fetch(t, b.client(), test.path)
		if err == nil || strings.ReplaceAll(err.Error(), b.hub.URL, "HUB") != test.want {
			t.Errorf("%s:\nerror %v\n want %s", test.path, err, test.want)
		}
	}
	allowed := b.client(func(o *hub.Options) { o.Token = "hf_secret" })
	mustFetch(t, allowed, "hf://o/gated?config=main&split=test")
	_, err := fetch(t, allowed, "hf://o/none")
	if want := "HF_TOKEN is set, but its owner may not read it"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error = %v, want ...%s", err, want)
	}
}

// What the card or the names of the files say.
func TestSplits(t *testing.T) {
	card := []map[string]any{
		{"config_name": "main", "data_files": []map[string]any{{"split": "test", "path": "m/te*"}, {"split": "train", "path": []string{"m/tr-*.jsonl", "extra/**"}}}},
		{"config_name": "all", "default": true, "data_files": "m/*.jsonl"},
	}
	files := func(names ...string) map[string][]byte {
		m := map[string][]byte{}
		for _, n := range names {
			m[n] = []byte(n)
		}
		return m
	}
	tests := []struct {
		name  string
		files map[string][]byte
		card  any
		query string
		want  string
	}{
		{"the card", files("m/te.jsonl", "m/tr-1.jsonl", "m/tr-2.jsonl", "extra/a/b.jsonl", "extra/c.txt"), card, "config=main&split=train", "main/train: extra/a/b.jsonl m/tr-1.jsonl m/tr-2.jsonl"},
		{"the card's default", files("m/te.jsonl", "m/tr-1.jsonl"), card, "", "all/train: m/te.jsonl m/tr-1.jsonl"},
		{"sharded", files("data/test-00000-of-00002.parquet", "data/test-00001-of-00002-abc.parquet", "data/train-00000-of-00001.parquet"), nil, "split=test", "default/test: data/test-00000-of-00002.parquet data/test-00001-of-00002-abc.parquet"},
		{"words in names", files("my_data/questions.dev.jsonl.gz", "my_data/train_v2.jsonl"), nil, "split=validation", "default/validation: my_data/questions.dev.jsonl.gz"},
		{"words in folders", files("test/a.csv", "test/b.csv", "train/a.csv"), nil, "split=test", "default/test: test/a.csv test/b.csv"},
		{"one file", files("problems.jsonl", "README.md", "dataset_infos.json"), nil, "", "default/train: problems.jsonl"},
		{"two formats", files("test.jsonl", "test.parquet"), nil, "", "default/test: test.parquet"},
		{"odd names", files("data/über & co#1.csv"), nil, "", "default/train: data/über & co#1.csv"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := setup(t)
			dataset := fmt.Sprintf("o/d%d", i)
			b.hub.Add(dataset, "main", test.files, test.card)
			if got := names(mustFetch(t, b.client(), "hf://"+dataset+"?"+test.query)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A dataset in a format of its own is taken as the hub has converted it.
func TestConverted(t *testing.T) {
	b := setup(t)
	b.hub.Add("o/d", "main", map[string][]byte{"script.py": []byte("x")}, nil)
	commit := b.hub.Add("o/d", "refs/convert/parquet", map[string][]byte{
		"plain/test/0000.parquet": content("a", 600), "plain/test/0001.parquet": content("b", 600), "plain/train/0000.parquet": content("c", 600),
	}, nil)
	snap := mustFetch(t, b.client(), "hf://o/d?split=test")
	if want := "plain/test: plain/test/0000.parquet plain/test/0001.parquet"; names(snap) != want || snap.Commit != commit {
		t.Errorf("got %s at %s", names(snap), snap.Commit)
	}
	if again := mustFetch(t, b.client(), "hf://o/d?split=test&revision="+commit); names(again) != names(snap) {
		t.Errorf("by its commit it is %s", names(again))
	}
}

// faults answers the n-th request for a large file.
func faults(answers ...func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/api/") || strings.Contains(r.URL.Path, "/resolve/") {
			return false
		}
		i := int(n.Add(1)) - 1
		if i >= len(answers) || answers[i] == nil {
			return false
		}
		answers[i](w, r)
		return true
	}
}

func cut(data []byte, n int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:n])
		panic(http.ErrAbortHandler)
	}
}

// A download that is cut off goes on where it was, also in another process.
func TestResume(t *testing.T) {
	b := setup(t)
	data := content("x", 300_000)
	b.hub.Add("o/d", "main", map[string][]byte{"test.parquet": data}, nil)
	b.hub.Fault = faults(cut(data, 100_000), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	snap := mustFetch(t, b.client(), "hf://o/d")
	got, err := os.ReadFile(snap.Files[0].Path)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	resumed := slices.ContainsFunc(b.hub.Requests(), func(r string) bool { return strings.Contains(r, " bytes=") })
	if !resumed {
		t.Error("the download began anew")
	}
	// What a killed process left behind is gone on with.
	if err := os.Rename(snap.Files[0].Path, snap.Files[0].Path+".partial"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(snap.Files[0].Path+".partial", 200_000); err != nil {
		t.Fatal(err)
	}
	b.hub.Fault = nil
	mustFetch(t, b.client(), "hf://o/d")
	if r := b.hub.Requests(); !strings.HasSuffix(r[len(r)-1], "bytes=200000-") {
		t.Errorf("requests %v", r)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(snap.Files[0].Path), "*.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is not what the hub lists never gets into the cache.
func TestChecksums(t *testing.T) {
	b := setup(t)
	data := content("x", 3000)
	b.hub.Add("o/d", "main", map[string][]byte{"test.parquet": data}, nil)
	other := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content("y", 3000)) }
	b.hub.Fault = faults(other)
	mustFetch(t, b.client(), "hf://o/d") // the second try is whole

	b.cache = t.TempDir()
	b.hub.Fault = faults(other, other, other, other, other)
	_, err := fetch(t, b.client(), "hf://o/d")
	if err == nil || !strings.Contains(err.Error(), "downloading test.parquet: it came with the checksum ") {
		t.Errorf("error = %v", err)
	}
	b.hub.Fault = faults(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data[:100]) })
	mustFetch(t, b.client(), "hf://o/d")
}

// A server that says nothing is asked again.
func TestSilence(t *testing.T) {
	b := setup(t)
	b.hub.Add("o/d", "main", map[string][]byte{"test.parquet": content("x", 3000)}, nil)
	b.hub.Fault = faults(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mustFetch(t, b.client(func(o *hub.Options) { o.Silence = 50 * time.Millisecond }), "hf://o/d")
}

// Processes that share a cache fetch a file once.
func TestSharedCache(t *testing.T) {
	b := setup(t)
	b.hub.Add("o/d", "main", map[string][]byte{"test.parquet": content("x", 100_000)}, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := b.client(func(o *hub.Options) { o.Log = nil }).Fetch(t.Context(), hub.Ref{Dataset: "o/d"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	n := 0
	for _, r := range b.hub.Requests() {
		if strings.Contains(r, "/resolve/") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the file was fetched %d times, want once", n)
	}
}
