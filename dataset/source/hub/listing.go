package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// listing is what a dataset holds at a commit.
type listing struct {
	Commit  string   `json:"commit"`
	Configs []config `json:"configs,omitempty"` // as the dataset's card has them
	Entries []entry  `json:"files"`
}

// entry is a file of a dataset.
type entry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // of a large file
	OID    string `json:"oid"`              // git's, of a small one
}

// config is a part of a dataset with splits of its own.
type config struct {
	Name    string    `json:"config_name"`
	Default bool      `json:"default,omitempty"`
	Data    dataFiles `json:"data_files"`
}

// dataFiles are the patterns of the files of each split, in order.
type dataFiles []splitFiles

type splitFiles struct {
	Split string   `json:"split"`
	Paths patterns `json:"path"`
}

// UnmarshalJSON reads what cards may have: a pattern, a list of them, or a list
// with splits.
func (d *dataFiles) UnmarshalJSON(data []byte) error {
	var splits []splitFiles
	if json.Unmarshal(data, &splits) == nil {
		*d = splits
		return nil
	}
	var all patterns
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*d = dataFiles{{Split: "train", Paths: all}}
	return nil
}

// patterns is a list that may be written as its only element.
type patterns []string

// UnmarshalJSON reads a text or a list of texts.
func (p *patterns) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*p = patterns{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(p))
}

// A commit is 40 or 64 hex digits.
func isCommit(revision string) bool {
	return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(revision)
}

// listing finds the commit of a revision and what it holds: a commit from the
// cache, a name from the hub, or from the cache where the hub cannot be reached.
func (c *Client) listing(ctx context.Context, dataset, revision string) (*listing, error) {
	if isCommit(revision) {
		if l, err := c.cached(dataset, revision); l != nil || err != nil {
			return l, err
		}
	}
	if c.opts.Offline {
		return c.known(dataset, revision, errors.New("the hub is not asked, as HF_HUB_OFFLINE is set"))
	}
	l, err := c.ask(ctx, dataset, revision)
	if unreachable, ok := errors.AsType[*unreachableError](err); ok && ctx.Err() == nil {
		return c.known(dataset, revision, unreachable)
	}
	return l, err
}

// known is what the cache knows of a revision; why tells what keeps the hub
// from being asked.
func (c *Client) known(dataset, revision string, why error) (*listing, error) {
	commit := revision
	if !isCommit(revision) {
		data, err := os.ReadFile(c.refPath(dataset, revision))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w, and the cache does not know %s", why, revision)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the cache: %w", err)
		}
		commit = strings.TrimSpace(string(data))
	}
	l, err := c.cached(dataset, commit)
	if err == nil && l == nil {
		return nil, fmt.Errorf("%w, and the cache does not know %s", why, revision)
	}
	if err == nil {
		c.opts.Log.Warn("the dataset comes from the cache, as it was when it was last fetched",
			slog.String("dataset", dataset), slog.String("commit", commit), slog.String("because", why.Error()))
	}
	return l, err
}

// ask asks the hub, and remembers what it says.
func (c *Client) ask(ctx context.Context, dataset, revision string) (*listing, error) {
	var info struct {
		SHA  string `json:"sha"`
		Card struct {
			Configs json.RawMessage `json:"configs"`
		} `json:"cardData"`
	}
	api := c.opts.Endpoint + "/api/datasets/" + dataset
	if _, err := c.get(ctx, api+"/revision/"+url.PathEscape(revision), &info); err != nil {
		return nil, err
	}
	if !isCommit(info.SHA) {
		return nil, fmt.Errorf("the hub says that %s is commit %q, which is none", revision, info.SHA)
	}
	l, err := c.cached(dataset, info.SHA)
	if err != nil {
		return nil, err
	}
	if l == nil {
		l = &listing{Commit: info.SHA}
		if len(info.Card.Configs) > 0 {
			_ = json.Unmarshal(info.Card.Configs, &l.Configs) // a card is written by hand; without it the names of the files tell
		}
		if l.Entries, err = c.tree(ctx, api+"/tree/"+info.SHA+"?recursive=true"); err != nil {
			return nil, err
		}
		if err := writeJSON(c.listingPath(dataset, info.SHA), l); err != nil {
			return nil, err
		}
	}
	if isCommit(revision) {
		return l, nil
	}
	return l, writeFile(c.refPath(dataset, revision), []byte(info.SHA+"\n"))
}

// tree lists all files, page by page.
func (c *Client) tree(ctx context.Context, page string) ([]entry, error) {
	var all []entry
	for page != "" {
		var nodes []struct {
			Type string `json:"type"`
			OID  string `json:"oid"`
			Size int64  `json:"size"`
			Path string `json:"path"`
			LFS  *struct {
				OID  string `json:"oid"`
				Size int64  `json:"size"`
			} `json:"lfs"`
		}
		next, err := c.get(ctx, page, &nodes)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			e := entry{Path: n.Path, Size: n.Size, OID: n.OID}
			if n.LFS != nil {
				e.SHA256, e.Size = n.LFS.OID, n.LFS.Size
			}
			if n.Type == "file" {
				all = append(all, e)
			}
		}
		page = next
	}
	return all, nil
}

func (c *Client) refPath(dataset, revision string) string {
	return filepath.Join(c.folder(dataset), "refs", url.PathEscape(revision))
}

func (c *Client) listingPath(dataset, commit string) string {
	return filepath.Join(c.folder(dataset), "commits", commit+".json")
}

// cached is the listing of a commit that was fetched before, nil if it was not.
func (c *Client) cached(dataset, commit string) (*listing, error) {
	path := c.listingPath(dataset, commit)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", err)
	}
	var l listing
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; remove it, and it is fetched again", path, err)
	}
	return &l, nil
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// writeFile puts a whole file into the cache.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a cache may be shared
		return fmt.Errorf("writing the cache: %w; TALARIA_CACHE may name another folder", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the cache: %w; TALARIA_CACHE may name another folder", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing the cache: %w", err)
	}
	return nil
}
