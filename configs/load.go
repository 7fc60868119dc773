package configs

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.yaml
var bundled embed.FS

// bundledPrefix names what is embedded in the binary: configs here, tasks in
// dataset/source.
const bundledPrefix = "bundled:"

// Bundled lists the names of the embedded configs, such as bundled:quickstart.
func Bundled() []string {
	files, err := fs.Glob(bundled, "*.yaml")
	if err != nil {
		panic("configs: " + err.Error())
	}
	for i, f := range files {
		files[i] = bundledPrefix + strings.TrimSuffix(f, ".yaml")
	}
	return files
}

// Load reads the config file at path, or an embedded one by its name as
// [Bundled] lists it. The error joins every problem found.
func Load(path string, o Options) (*Run, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, o)
}

func read(path string) ([]byte, error) {
	if name, ok := strings.CutPrefix(path, bundledPrefix); ok {
		data, err := bundled.ReadFile(name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("%s: no such embedded config; there are %s", path, strings.Join(Bundled(), ", "))
		}
		return data, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file; give the path of a config or an embedded one: %s", path, strings.Join(Bundled(), ", "))
	} else if err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	return data, nil
}

// Parse reads a config from memory. The name stands for the file in errors;
// relative paths are relative to its folder unless o.Dir says otherwise.
func Parse(name string, data []byte, o Options) (*Run, error) {
	dir, err := filepath.Abs(cmp.Or(o.Dir, filepath.Dir(name)))
	if err != nil {
		return nil, fmt.Errorf("finding the folder of %s: %w", name, err)
	}
	at := place{file: name, dir: dir}
	root, err := parseYAML(at, data)
	if err != nil {
		return nil, err
	}
	d := &document{root: root, at: at, name: defaultName(name)}
	return d.load(o)
}

// FromResolved reads a config as [Run.Resolved] wrote it, under the overrides
// of o. Its files are hashed again unless o.Recorded is set, so that
// [DiffIdentity] tells whether they have changed.
func FromResolved(data []byte, o Options) (*Run, error) {
	at := place{file: "run.json"}
	root, err := parseJSON(at, data)
	if err != nil {
		return nil, err
	}
	d := &document{root: root, at: at, resolved: true}
	if root.kind == object && o.Recorded {
		d.recorded = root.get(filesKey)
	}
	root.remove(filesKey)
	return d.load(o)
}

// Resolved is the config as JSON: complete, with defaults, overrides and the
// hashes of its files, without secrets, which no config holds. [FromResolved]
// makes the same Run of it. The order of its keys matters: keep it as it is.
func (r *Run) Resolved() ([]byte, error) {
	v := encode(reflect.ValueOf(*r))
	files := newObject(place{})
	for _, path := range slices.Sorted(maps.Keys(r.doc.hashes)) {
		files.set(path, textValue(r.doc.hashes[path], place{}), place{})
	}
	v.set(filesKey, files, place{})
	return append(v.appendJSON(nil, ""), '\n'), nil
}

// filesKey is where a resolved config keeps the SHA-256 of each file that
// belongs to an identity. It is no key of a config.
const filesKey = "files"

// document is a config on its way to a Run.
type document struct {
	root     *value
	at       place
	name     string            // default of the key name
	resolved bool              // root comes from a resolved config
	recorded *value            // its hashes by path, where they are to be trusted
	hashes   map[string]string // of files by path, as used
	problems
}

func (d *document) load(o Options) (*Run, error) {
	d.hashes = map[string]string{}
	if d.checkVersion(); len(d.problems) > 0 {
		return nil, d.err()
	}
	if err := d.layer(o); err != nil {
		return nil, err
	}
	d.checkSecrets(d.root, "")
	run := d.decode(d.root)
	d.check(run)
	if err := d.err(); err != nil {
		return nil, err
	}
	return run, nil
}

// layer lays environment and flags over the document.
func (d *document) layer(o Options) error {
	wd, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	d.listTasks()
	overrides, bad := o.overrides(wd)
	d.problems = append(d.problems, bad...)
	for _, v := range overrides {
		d.override(v)
		d.listTasks()
	}
	d.models(o.Model, wd)
	d.absolutePaths()
	return nil
}

// listTasks makes a single source of tasks a list of one.
func (d *document) listTasks() {
	if tasks := d.root.get(tasksKey); tasks != nil && tasks.kind == object {
		d.root.set(tasksKey, &value{kind: list, items: []*value{tasks}, single: true, at: tasks.at}, tasks.at)
	}
}

func (d *document) checkVersion() {
	if d.root.kind != object {
		at := d.at
		at.line = d.root.at.line
		d.add(at, "", "a config is an object of keys, not %s; it begins with version: %d", d.root.describe(), Version)
		return
	}
	v := d.root.get("version")
	switch {
	case v == nil || v.kind == null:
		d.add(d.at, "version", "the version of the format is missing; add version: %d", Version)
	case v.kind != integer || v.int < 1:
		d.add(v.at, "version", "want a whole number, got %s; write version: %d", v.describe(), Version)
	case v.int > Version:
		d.add(v.at, "version", "version %d is newer than this release reads (%d); use a newer release", v.int, Version)
	}
}

// decode decodes one document: the whole, or that of a variant.
func (d *document) decode(root *value) *Run {
	run := Defaults()
	dec := &decoder{unknown: unknownKey}
	dec.structure(reflect.ValueOf(&run).Elem(), root, "", "")
	d.problems = append(d.problems, dec.problems...)
	run.Name = cmp.Or(run.Name, d.name)
	for i := range run.Tasks {
		run.Tasks[i].OnBadRow = cmp.Or(run.Tasks[i].OnBadRow, OnBadRowFail)
	}
	run.doc = &document{root: root, at: d.at, name: d.name, resolved: d.resolved, recorded: d.recorded, hashes: d.hashes}
	return &run
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// defaultName makes a run's name of its config's file name.
func defaultName(path string) string {
	base := filepath.Base(strings.TrimPrefix(path, bundledPrefix))
	base = strings.TrimSuffix(base, filepath.Ext(base))
	return cmp.Or(strings.Trim(notInNames.ReplaceAllString(base, "-"), "-._"), "run")
}

// Place says where a key was written, as "file:line: key", or the flag or
// variable that set it. Where the key is absent it is the nearest parent's
// place. A list's elements are addressed by index: score.0.extract.
func (r *Run) Place(key string) string {
	return r.doc.place(key).String() + ": " + key
}

func (d *document) place(key string) place {
	at, v := d.at, d.root
	for segment := range strings.SplitSeq(key, ".") {
		i, isIndex := index(segment, 0)
		if v.kind == list && !isIndex && len(v.items) == 1 {
			v = v.items[0] // written without an index
		}
		switch {
		case v.kind == object && v.get(segment) != nil:
			e := slices.IndexFunc(v.entries, func(e entry) bool { return e.key == segment })
			at, v = v.entries[e].at, v.entries[e].value
		case v.kind == list && isIndex && i < len(v.items):
			at, v = v.items[i].at, v.items[i]
		default:
			return at
		}
	}
	return at
}
