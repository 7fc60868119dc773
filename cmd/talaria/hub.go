package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/talaria-run/talaria/configs"
	"github.com/talaria-run/talaria/dataset/source/hub"
	"github.com/talaria-run/talaria/dataset/store"
)

// newHub reads what the environment says of the hub. The token is masked
// wherever it may turn up.
func newHub(std *stdio) (*hub.Client, error) {
	cache := std.getenv("TALARIA_CACHE")
	if cache == "" {
		folder, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("looking for a folder to keep datasets in: %w; name one in TALARIA_CACHE", err)
		}
		cache = filepath.Join(folder, "talaria")
	}
	token := strings.TrimSpace(std.getenv("HF_TOKEN"))
	std.secrets.add(token)
	offline := std.getenv("HF_HUB_OFFLINE")
	isOffline, err := strconv.ParseBool(cmp.Or(offline, "false"))
	if err != nil {
		return nil, fmt.Errorf("HF_HUB_OFFLINE is %q; it must be 1 or 0", offline)
	}
	return hub.New(hub.Options{
		Endpoint: std.getenv("HF_ENDPOINT"), Token: token, Cache: cache, Offline: isOffline,
		UserAgent: "talaria/" + buildVersion().Version, Log: std.log,
	}), nil
}

// fetchHub brings a source that is on a hub into the cache; nil: it is elsewhere.
// A run that is gone on with stays at the commit that it began with.
func fetchHub(ctx context.Context, src configs.Source, earlier *store.Run, std *stdio) (*hub.Snapshot, error) {
	if !strings.HasPrefix(src.Path, hub.Prefix) {
		return nil, nil //nolint:nilnil // none is what there is
	}
	ref, err := hub.Parse(src.Path)
	if err != nil {
		return nil, err
	}
	ref.Split = cmp.Or(ref.Split, src.Split)
	ref.Revision = cmp.Or(commitOf(earlier, src.Path), ref.Revision)
	client, err := newHub(std)
	if err != nil {
		return nil, err
	}
	snap, err := client.Fetch(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &snap, nil
}

// commitOf is the commit that a run had its source at, "" if it had none.
func commitOf(run *store.Run, path string) string {
	if run == nil {
		return ""
	}
	for _, f := range run.Datasets {
		if f.Source == path {
			return f.Revision
		}
	}
	return ""
}
