package hub

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// errNoData is returned of a dataset without a file that can be read.
var errNoData = errors.New("the dataset has no file that can be read: no Parquet, Arrow, JSONL or CSV")

// choice is a split of a config.
type choice struct {
	config, split string
	files         []entry
}

// choose picks the files of a split. Where no config or split is named, it is
// the only one; a config may also be the default.
func (l *listing) choose(config, split string) (choice, error) {
	all := l.splits()
	if len(all) == 0 {
		return choice{}, errNoData
	}
	config, err := l.chooseConfig(all, config)
	if err != nil {
		return choice{}, err
	}
	splits := slices.Sorted(maps.Keys(all[config]))
	if split == "" && len(splits) == 1 {
		split = splits[0]
	}
	files, ok := all[config][split]
	switch {
	case split == "":
		return choice{}, fmt.Errorf("it has the splits %s; choose one with ?split=%s", strings.Join(splits, ", "), splits[0])
	case !ok && config != defaultConfig:
		return choice{}, fmt.Errorf("the config %q has no split %q; there are %s", config, split, strings.Join(splits, ", "))
	case !ok:
		return choice{}, fmt.Errorf("there is no split %q; there are %s", split, strings.Join(splits, ", "))
	}
	return choice{config: config, split: split, files: files}, nil
}

const defaultConfig = "default"

func (l *listing) chooseConfig(all map[string]map[string][]entry, name string) (string, error) {
	names := slices.Sorted(maps.Keys(all))
	if name != "" {
		if all[name] == nil {
			return "", fmt.Errorf("there is no config %q; there are %s", name, strings.Join(names, ", "))
		}
		return name, nil
	}
	if len(names) == 1 {
		return names[0], nil
	}
	for _, c := range l.Configs {
		if c.Default && all[c.Name] != nil {
			return c.Name, nil
		}
	}
	if all[defaultConfig] != nil {
		return defaultConfig, nil
	}
	return "", fmt.Errorf("it has the configs %s; choose one with config=%s", strings.Join(names, ", "), names[0])
}

// splits sorts the data files by config and split: as the card says, else as
// their names do.
func (l *listing) splits() map[string]map[string][]entry {
	all := map[string]map[string][]entry{}
	add := func(config, split string, e entry) {
		if all[config] == nil {
			all[config] = map[string][]entry{}
		}
		all[config][split] = append(all[config][split], e)
	}
	var data []entry
	for _, e := range l.Entries {
		if readable(e.Path) {
			data = append(data, e)
		}
	}
	for _, c := range l.Configs {
		for _, s := range c.Data {
			for _, e := range s.of(data) {
				add(cmp.Or(c.Name, defaultConfig), cmp.Or(s.Split, "train"), e)
			}
		}
	}
	if len(all) == 0 {
		for _, e := range data {
			config, split := byName(e.Path)
			add(config, split, e)
		}
	}
	for _, splits := range all {
		for split, files := range splits {
			splits[split] = oneFormat(files)
		}
	}
	return all
}

// of picks the files of a split.
func (s splitFiles) of(data []entry) []entry {
	var files []entry
	for _, e := range data {
		if slices.ContainsFunc(s.Paths, func(p string) bool { return matches(p, e.Path) }) {
			files = append(files, e)
		}
	}
	return files
}

// oneFormat leaves out the same rows in a second format, and sorts.
func oneFormat(files []entry) []entry {
	isParquet := func(e entry) bool { return strings.HasSuffix(e.Path, ".parquet") }
	if slices.ContainsFunc(files, isParquet) {
		files = slices.DeleteFunc(files, func(e entry) bool { return !isParquet(e) })
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(files, func(a, b entry) bool { return a.Path == b.Path })
}

// readable tells whether a file holds rows, by its ending.
func readable(name string) bool {
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ".zst")
	switch base {
	case "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "config.json", "state.json":
		return false
	}
	switch path.Ext(base) {
	case ".parquet", ".arrow", ".jsonl", ".ndjson", ".json", ".csv", ".tsv":
		return !strings.HasPrefix(base, ".")
	}
	return false
}

// byName tells config and split of a file of a dataset whose card names none.
func byName(name string) (config, split string) {
	// The hub's own conversion: config/split/0000.parquet.
	if m := regexp.MustCompile(`^([^/]+)/([^/]+)/\d+\.parquet$`).FindStringSubmatch(name); m != nil {
		return m[1], m[2]
	}
	// What the datasets library writes: config/split-00000-of-00001.parquet.
	if m := regexp.MustCompile(`^(?:(.+)/)?([^/]+)-\d{5}-of-\d{5}[^/]*$`).FindStringSubmatch(name); m != nil {
		if m[1] == "" || m[1] == "data" {
			return defaultConfig, m[2]
		}
		return m[1], m[2]
	}
	parts := strings.Split(name, "/")
	for _, part := range slices.Backward(parts) {
		if split := splitWord(part); split != "" {
			return defaultConfig, split
		}
	}
	return defaultConfig, "train"
}

// splitWord is the split that a word of a file's or folder's name stands for.
func splitWord(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-._ 0123456789", r) })
	for _, w := range words {
		switch w {
		case "train", "training":
			return "train"
		case "validation", "valid", "dev", "val":
			return "validation"
		case "test", "testing", "eval", "evaluation":
			return "test"
		}
	}
	return ""
}

// matches tells whether a pattern of a card names a file: within a folder as
// [path.Match] has it, ** over folders, and a folder for all beneath it.
func matches(pattern, name string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	return match(strings.Split(pattern, "/"), strings.Split(name, "/")) ||
		strings.HasPrefix(name, strings.TrimSuffix(pattern, "/")+"/")
}

func match(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == "**":
		for i := range len(name) + 1 {
			if match(pattern[1:], name[i:]) {
				return true
			}
		}
		return len(pattern) == 1
	case len(name) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && match(pattern[1:], name[1:])
}
