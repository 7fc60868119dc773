package source

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed bundled/*.jsonl
var bundled embed.FS

// bundledPrefix names embedded tasks in place of a path.
const bundledPrefix = "bundled:"

func findBundled(name string) ([]file, error) {
	path := "bundled/" + name + ".jsonl"
	if _, err := fs.Stat(bundled, path); err != nil {
		return nil, fmt.Errorf("%s%s: no such embedded tasks; there are %s", bundledPrefix, name, strings.Join(Bundled(), ", "))
	}
	return []file{{path: bundledPrefix + name, open: func() (fs.File, error) { return bundled.Open(path) }}}, nil
}

// Bundled lists the embedded tasks by the names that Options.Path takes.
func Bundled() []string {
	files, err := fs.Glob(bundled, "bundled/*.jsonl")
	if err != nil {
		panic("source: " + err.Error())
	}
	for i, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "bundled/"), ".jsonl")
		files[i] = bundledPrefix + name
	}
	return files
}
