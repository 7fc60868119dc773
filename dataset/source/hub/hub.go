// Package hub fetches datasets from a server that speaks Hugging Face's
// protocol, and keeps them in a cache.
//
// [Client.Fetch] finds the commit that a revision stands for, the files of a
// split, and downloads those that the cache lacks. What is in the cache is named
// by the checksum of its content and was verified, so files are shared between
// revisions and processes, and a commit that was fetched once needs no network.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Prefix begins a path that names a dataset on a hub.
const Prefix = "hf://"

// DefaultEndpoint is the hub that is asked where no other is named.
const DefaultEndpoint = "https://huggingface.co"

// Options say where datasets come from and where they are kept.
type Options struct {
	// Endpoint is the server's URL; default: DefaultEndpoint.
	Endpoint string
	// Token is sent to the endpoint alone; "": none.
	Token string
	// Cache is the folder that downloads are kept in.
	Cache string
	// Offline reads from the cache alone.
	Offline bool
	// Transport does the requests; nil: [http.DefaultTransport].
	Transport http.RoundTripper
	UserAgent string
	// Wait is before the first retry of a request; it grows. Default: a second.
	Wait time.Duration
	// Silence is how long a server may say nothing; default: a minute.
	Silence time.Duration
	Log     *slog.Logger
}

// Client fetches datasets. It is safe for concurrent use, also by several
// processes with one cache.
type Client struct {
	opts Options
	http *http.Client
}

// New makes a Client.
func New(o Options) *Client {
	o.Endpoint = strings.TrimRight(cmp.Or(o.Endpoint, DefaultEndpoint), "/")
	o.Wait, o.Silence = cmp.Or(o.Wait, time.Second), cmp.Or(o.Silence, time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{opts: o, http: &http.Client{Transport: o.Transport}}
}

// Ref names a split of a dataset.
type Ref struct {
	Dataset  string // organisation/name, or the name alone
	Config   string // "": the only one, or the default
	Split    string // "": the only one
	Revision string // a branch, a tag or a commit; "": main
}

// Revisions that have a meaning of their own.
const (
	mainBranch = "main"
	// converted is where the hub keeps datasets of other formats as Parquet.
	converted = "refs/convert/parquet"
)

// Parse reads a path of the form hf://org/name?split=test&revision=main&config=x.
func Parse(path string) (Ref, error) {
	rest, ok := strings.CutPrefix(path, Prefix)
	if !ok {
		return Ref{}, fmt.Errorf("%s: it does not begin with %s", path, Prefix)
	}
	name, query, _ := strings.Cut(rest, "?")
	name = strings.TrimPrefix(strings.Trim(name, "/"), "datasets/")
	if !regexp.MustCompile(`^[\w.-]+(/[\w.-]+)?$`).MatchString(name) || strings.Contains(name, "..") {
		return Ref{}, fmt.Errorf("%s: a dataset on a hub is written %sorg/name?split=test", path, Prefix)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Ref{}, fmt.Errorf("%s: what follows the question mark cannot be read: %w", path, err)
	}
	ref := Ref{Dataset: name}
	for key, list := range values {
		into, known := map[string]*string{"split": &ref.Split, "revision": &ref.Revision, "config": &ref.Config}[key]
		if !known {
			return Ref{}, fmt.Errorf("%s: %q is not known here; known are split, revision and config", path, key)
		}
		if len(list) > 1 {
			return Ref{}, fmt.Errorf("%s: %s is there twice", path, key)
		}
		*into = list[0]
	}
	return ref, nil
}

func (r Ref) String() string { return Prefix + r.Dataset }

// Snapshot is a split at one commit, in the cache.
type Snapshot struct {
	Dataset string
	Commit  string // of the files; of the hub's conversion to Parquet where that is used
	Config  string
	Split   string
	Files   []File // sorted by name
}

// File is one file of a split.
type File struct {
	Name   string // within the dataset
	Path   string // in the cache
	Size   int64
	SHA256 string // "": the hub does not tell; it was verified by git's id
}

// Fetch brings a split into the cache. The errors say what to do: name another
// split, set a token, ask for access.
func (c *Client) Fetch(ctx context.Context, ref Ref) (Snapshot, error) {
	snap, err := c.fetch(ctx, ref)
	if err != nil {
		return Snapshot{}, fmt.Errorf("%s: %w", ref, err)
	}
	return snap, nil
}

func (c *Client) fetch(ctx context.Context, ref Ref) (Snapshot, error) {
	listed, err := c.listing(ctx, ref.Dataset, cmp.Or(ref.Revision, mainBranch))
	if err != nil {
		return Snapshot{}, err
	}
	chosen, err := listed.choose(ref.Config, ref.Split)
	if errors.Is(err, errNoData) && cmp.Or(ref.Revision, mainBranch) == mainBranch {
		listed, err = c.listing(ctx, ref.Dataset, converted)
		if err != nil {
			return Snapshot{}, fmt.Errorf("%w, and none that the hub has converted: %w", errNoData, err)
		}
		chosen, err = listed.choose(ref.Config, ref.Split)
	}
	if err != nil {
		return Snapshot{}, err
	}
	snap := Snapshot{Dataset: ref.Dataset, Commit: listed.Commit, Config: chosen.config, Split: chosen.split}
	for _, e := range chosen.files {
		snap.Files = append(snap.Files, File{Name: e.Path, Path: c.blobPath(e), Size: e.Size, SHA256: e.SHA256})
	}
	return snap, c.download(ctx, ref.Dataset, listed.Commit, chosen.files)
}

// folder is where what is known of a dataset is kept.
func (c *Client) folder(dataset string) string {
	host := regexp.MustCompile(`[^\w.-]+`).ReplaceAllString(strings.TrimPrefix(c.opts.Endpoint, "https://"), "-")
	return filepath.Join(c.opts.Cache, "hub", host, strings.ReplaceAll(dataset, "/", "--"))
}
