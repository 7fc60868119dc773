package file

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/talaria-run/talaria/env"
	"github.com/talaria-run/talaria/env/sandbox"
)

// missing is the result for a file that is not there, with the names of those
// that may be meant.
func missing(ctx context.Context, box sandbox.Sandbox, name string, found error) (env.ToolResult, error) {
	at, ok := errors.AsType[*fs.PathError](found)
	if !ok {
		return env.ToolResult{}, found
	}
	dir, base := path.Split(name)
	listing, err := box.Exec(ctx, sandbox.Command{
		Script: "command ls -1A -- " + sandbox.Quote(cmp.Or(dir, ".")) + " 2>/dev/null", Timeout: 10 * time.Second,
	})
	if err != nil {
		return env.ToolResult{}, err
	}
	text := explain(at)
	if names := similar(base, strings.Split(readable(string(listing.Output)), "\n")); len(names) > 0 && listing.ExitCode == 0 {
		text += "; there is " + dir + strings.Join(names, ", "+dir)
	}
	return failed(text), nil
}

// similar picks the names that are most like one, at most three.
func similar(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	const most, looked = 3, 5000
	var list []candidate
	for _, n := range names[:min(len(names), looked)] {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d <= max(1, len(name)/3) && n != "" {
			list = append(list, candidate{n, d})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	picked := make([]string, 0, most)
	for _, c := range list[:min(len(list), most)] {
		picked = append(picked, c.name)
	}
	return picked
}

// distance is how many letters differ; another extension counts for one.
func distance(a, b string) int {
	if stem := strings.TrimSuffix(a, path.Ext(a)); stem != "" && stem == strings.TrimSuffix(b, path.Ext(b)) && a != b {
		return 1
	}
	return levenshtein.ComputeDistance(a, b)
}
