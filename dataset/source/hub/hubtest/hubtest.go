// Package hubtest is a server that behaves like Hugging Face's hub, as far as
// datasets are fetched from it. Large files are sent by a second server, to
// which the first one redirects.
package hubtest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git names small files by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hub is the server. Its fields may be changed between requests.
type Hub struct {
	URL string

	mu       sync.Mutex
	repos    map[string]map[string]*commit // of each dataset, by revision and by commit
	requests []string
	cdn      *httptest.Server
	server   *httptest.Server

	// Token is needed for datasets in Gated.
	Token string
	Gated map[string]bool
	// Fault, where it is set, may answer a request itself: it then returns true.
	Fault func(w http.ResponseWriter, r *http.Request) bool
}

type commit struct {
	sha   string
	files map[string][]byte
	card  any
}

// largeFrom is the size from which files are sent by the second server.
const largeFrom = 512

// New starts a hub that ends with the test.
func New(t testing.TB) *Hub {
	t.Helper()
	h := &Hub{repos: map[string]map[string]*commit{}, Gated: map[string]bool{}}
	h.cdn = httptest.NewServer(http.HandlerFunc(h.serveLarge))
	h.server = httptest.NewServer(http.HandlerFunc(h.serve))
	h.URL = h.server.URL
	t.Cleanup(h.Close)
	return h
}

// Close makes the hub unreachable.
func (h *Hub) Close() {
	h.server.Close()
	h.cdn.Close()
}

// Add commits files to a revision of a dataset and returns the commit. card is
// the part configs of the dataset's card, nil: it has none.
func (h *Hub) Add(dataset, revision string, files map[string][]byte, card any) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := sha1.New() //nolint:gosec // as git does
	_, _ = fmt.Fprint(sum, dataset, revision, len(h.repos[dataset]))
	c := &commit{sha: hex.EncodeToString(sum.Sum(nil)), files: files, card: card}
	if h.repos[dataset] == nil {
		h.repos[dataset] = map[string]*commit{}
	}
	h.repos[dataset][revision], h.repos[dataset][c.sha] = c, c
	return c.sha
}

// Requests lists what was asked since the last call, as method and path.
func (h *Hub) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests
	h.requests = nil
	return all
}

func (h *Hub) note(w http.ResponseWriter, r *http.Request) (answered bool) {
	h.mu.Lock()
	what := r.Method + " " + r.URL.EscapedPath()
	if from := r.Header.Get("Range"); from != "" {
		what += " " + from
	}
	h.requests = append(h.requests, what)
	fault := h.Fault
	h.mu.Unlock()
	return fault != nil && fault(w, r)
}

func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	if h.note(w, r) {
		return
	}
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/api/datasets/"); ok {
		if dataset, revision, ok := strings.Cut(rest, "/revision/"); ok {
			h.info(w, r, dataset, unescape(revision))
			return
		}
		if dataset, revision, ok := strings.Cut(rest, "/tree/"); ok {
			h.tree(w, r, dataset, unescape(revision))
			return
		}
	}
	if rest, ok := strings.CutPrefix(path, "/datasets/"); ok {
		if dataset, rest, ok := strings.Cut(rest, "/resolve/"); ok {
			revision, name, _ := strings.Cut(rest, "/")
			h.resolve(w, r, dataset, unescape(revision), unescape(name))
			return
		}
	}
	http.NotFound(w, r)
}

func unescape(s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return u
}

// find answers what keeps the caller from a revision.
func (h *Hub) find(w http.ResponseWriter, r *http.Request, dataset, revision string) *commit {
	h.mu.Lock()
	defer h.mu.Unlock()
	allowed := h.Token != "" && r.Header.Get("Authorization") == "Bearer "+h.Token
	switch {
	case h.repos[dataset] == nil && !allowed:
		fail(w, http.StatusUnauthorized, "RepoNotFound")
	case h.repos[dataset] == nil:
		fail(w, http.StatusNotFound, "RepoNotFound")
	case h.Gated[dataset] && !allowed:
		fail(w, http.StatusUnauthorized, "GatedRepo")
	case h.repos[dataset][revision] == nil:
		fail(w, http.StatusNotFound, "RevisionNotFound")
	default:
		return h.repos[dataset][revision]
	}
	return nil
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Error-Code", code)
	http.Error(w, `{"error":"`+code+`"}`, status)
}

func (h *Hub) info(w http.ResponseWriter, r *http.Request, dataset, revision string) {
	c := h.find(w, r, dataset, revision)
	if c == nil {
		return
	}
	info := map[string]any{"id": dataset, "sha": c.sha, "gated": h.Gated[dataset], "cardData": map[string]any{"license": "mit"}}
	if c.card != nil {
		info["cardData"] = map[string]any{"configs": c.card}
	}
	write(w, info)
}

// tree lists two files a page.
func (h *Hub) tree(w http.ResponseWriter, r *http.Request, dataset, revision string) {
	c := h.find(w, r, dataset, revision)
	if c == nil {
		return
	}
	names := slices.Sorted(maps.Keys(c.files))
	start, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	end := min(start+2, len(names))
	nodes := []map[string]any{{"type": "directory", "oid": strings.Repeat("0", 40), "size": 0, "path": "data"}}
	for _, name := range names[start:end] {
		data := c.files[name]
		node := map[string]any{"type": "file", "oid": gitID(data), "size": len(data), "path": name}
		if len(data) >= largeFrom {
			node["lfs"] = map[string]any{"oid": hash(data), "size": len(data), "pointerSize": 130}
		}
		nodes = append(nodes, node)
	}
	if end < len(names) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, h.URL, r.URL.EscapedPath(), end))
	}
	write(w, nodes)
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone: there is nobody to tell
}

func gitID(data []byte) string {
	sum := sha1.New() //nolint:gosec // as git does
	_, _ = fmt.Fprintf(sum, "blob %d\x00", len(data))
	_, _ = sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, dataset, revision, name string) {
	c := h.find(w, r, dataset, revision)
	if c == nil {
		return
	}
	data, ok := c.files[name]
	if !ok {
		fail(w, http.StatusNotFound, "EntryNotFound")
		return
	}
	w.Header().Set("X-Repo-Commit", c.sha)
	if len(data) >= largeFrom {
		w.Header().Set("X-Linked-Etag", `"`+hash(data)+`"`)
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(data)))
		target := strings.Replace(h.cdn.URL, "127.0.0.1", "localhost", 1) + "/" + c.sha + "/" + url.PathEscape(dataset) + "/" + url.PathEscape(name)
		http.Redirect(w, r, target, http.StatusFound)
		return
	}
	w.Header().Set("ETag", `"`+gitID(data)+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

func (h *Hub) serveLarge(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "the token was sent to another host", http.StatusBadRequest)
		return
	}
	if h.note(w, r) {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	h.mu.Lock()
	c := h.repos[unescape(parts[1])][parts[0]]
	h.mu.Unlock()
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(c.files[unescape(parts[2])]))
}
