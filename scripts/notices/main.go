// Command notices writes the licence texts of everything that is linked into
// the talaria binary, on every platform that it is built for. Its output
// depends on go.mod and on what cmd/talaria imports, and on nothing else.
//
//	go run ./scripts/notices -o THIRD_PARTY_NOTICES.md
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed header.md
var header string

const (
	binary = "./cmd/talaria"
	// format is module and version, the module's folder, the package's folder.
	format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "THIRD_PARTY_NOTICES.md", "file to write")
	flag.Parse()
	if err := run(context.Background(), *out); err != nil {
		log.Fatal("notices: ", err)
	}
}

func run(ctx context.Context, out string) error {
	found := notices{}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		if err := found.addPlatform(ctx, platform); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	if err := found.addGo(ctx); err != nil {
		return err
	}
	return os.WriteFile(out, found.render(), 0o644)
}

// notices maps a licence text to the modules that come under it.
type notices map[string]map[string]bool

// addPlatform adds the modules whose packages the binary links there.
func (n notices) addPlatform(ctx context.Context, platform string) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, binary)
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=1")
	list.Stderr = os.Stderr
	lines, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing what is linked: %w", err)
	}
	for line := range strings.Lines(string(lines)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue
		}
		if err := n.addPackage(fields[0], fields[1], fields[2]); err != nil {
			return err
		}
	}
	return nil
}

// addPackage adds the licence files of a package's folder and of those above
// it in its module: parts of a module may have a licence of their own.
func (n notices) addPackage(module, root, dir string) error {
	for {
		if err := n.addFolder(module, dir); err != nil {
			return err
		}
		if dir == root {
			break
		}
		dir = filepath.Dir(dir)
	}
	for modules := range maps.Values(n) {
		if modules[module] {
			return nil
		}
	}
	return fmt.Errorf("module %s has no licence file", module)
}

func (n notices) addFolder(module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	licence := regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-](txt|md|[a-z0-9-]+))?$`)
	for _, entry := range entries {
		if entry.IsDir() || !licence.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		if err := n.addFile(module, filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (n notices) addFile(module, path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var text strings.Builder
	for line := range strings.Lines(string(raw)) {
		text.WriteString(strings.TrimRight(line, " \t\r\n") + "\n")
	}
	key := strings.Trim(text.String(), "\n")
	if n[key] == nil {
		n[key] = map[string]bool{}
	}
	n[key][module] = true
	return nil
}

// addGo adds the licence of Go itself, whose library every binary contains.
func (n notices) addGo(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("asking for GOROOT: %w", err)
	}
	for _, name := range []string{"LICENSE", "PATENTS"} {
		err := n.addFile("The Go standard library", filepath.Join(strings.TrimSpace(string(root)), name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("this Go comes without its %s: %w", name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// render writes each text once, under the modules that it is for.
func (n notices) render() []byte {
	sections := make([]string, 0, len(n))
	for text, modules := range n {
		names := slices.Sorted(maps.Keys(modules))
		sections = append(sections, fmt.Sprintf("## %s\n\n```\n%s\n```\n", strings.Join(names, ", "), text))
	}
	slices.Sort(sections)
	return []byte(strings.Join(append([]string{header}, sections...), "\n"))
}
