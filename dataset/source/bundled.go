package source

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed bundled/*.jsonl all:bundled/terminal
var bundled embed.FS

// bundledPrefix names embedded tasks in place of a path.
const bundledPrefix = "bundled:"

// findBundled finds embedded rows, or an embedded folder of Harbor tasks.
func findBundled(name string) ([]part, error) {
	if rows := "bundled/" + name + ".jsonl"; isFile(bundled, rows) {
		return []part{file{path: bundledPrefix + name, open: func() (fs.File, error) { return bundled.Open(rows) }}}, nil
	}
	if info, err := fs.Stat(bundled, "bundled/"+name); name == "" || err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s%s: no such embedded tasks; there are %s", bundledPrefix, name, strings.Join(Bundled(), ", "))
	}
	folder, err := fs.Sub(bundled, "bundled/"+name)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", bundledPrefix, name, err)
	}
	return findHarbor(bundledPrefix+name, folder)
}

func isFile(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}

// Bundled lists the embedded tasks by the names that Options.Path takes.
func Bundled() []string {
	entries, err := bundled.ReadDir("bundled")
	if err != nil {
		panic("source: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = bundledPrefix + strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
	}
	return names
}
