package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/talaria-run/talaria/dataset/store"
)

// Set by the linker in a release: -ldflags "-X main.linkedVersion=v1.2.3 -X main.linkedCommit=...".
var linkedVersion, linkedCommit string //nolint:gochecknoglobals // the linker can only set package variables

// versionInfo is what this binary was made of.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty if not known
	Dirty    bool   `json:"dirty"`  // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the rows that it writes
	SQL      bool   `json:"sql"`    // DuckDB is built in
}

type versionOptions struct{ format string }

func newVersionCommand(std *stdio) *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "Prints the version, what it was built from and what is built in.",
		UsageText: "talaria version",
		Flags:     []cli.Flag{choiceFlag("format", "print as `FORMAT`", "text", "json")},
		Action: func(c *cli.Context) error {
			return runVersion(c.Context, versionOptions{format: c.String("format")}, std)
		},
	}
}

func runVersion(_ context.Context, opts versionOptions, std *stdio) error {
	info := buildVersion()
	if opts.format == "json" {
		return json.NewEncoder(std.out).Encode(info)
	}
	_, err := fmt.Fprint(std.out, info)
	return err
}

// buildVersion reads what the linker and the go command left in the binary.
func buildVersion() versionInfo {
	v := versionInfo{
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Schema:   store.SchemaVersion,
		SQL:      sqlBuiltIn,
	}
	var built string
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Dirty = s.Value == "true"
			}
		}
	}
	v.Version = cmp.Or(linkedVersion, built, "(devel)")
	v.Commit = cmp.Or(linkedCommit, v.Commit)
	return v
}

// code names what ran in the rows: the version and, where it is known, the
// commit.
func (v versionInfo) code() string {
	switch {
	case v.Commit == "":
		return v.Version
	case v.Dirty:
		return v.Version + "+" + v.Commit + ".dirty"
	default:
		return v.Version + "+" + v.Commit
	}
}

func (v versionInfo) String() string {
	commit := cmp.Or(v.Commit, "unknown")
	if v.Dirty {
		commit += " (with changes)"
	}
	sql := "DuckDB is built in"
	if !v.SQL {
		sql = "not built in (built with CGO_ENABLED=0)"
	}
	return fmt.Sprintf("talaria %s\ncommit  %s\ngo      %s %s\nschema  %d\nsql     %s\n",
		v.Version, commit, v.Go, v.Platform, v.Schema, sql)
}
