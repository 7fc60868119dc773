package source

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-run/talaria/dataset"
)

// harborPrefix names a folder of Harbor tasks, or one of them.
const harborPrefix = "harbor:"

// Files of a task's folder.
const (
	taskFile        = "task.toml"
	instructionFile = "instruction.md"
	solutionFile    = "solution/solve.sh"
	testFile        = "tests/test.sh"
)

// harbor is a folder of Harbor tasks.
type harbor struct {
	path    string // as given
	fsys    fs.FS
	folders []string // of the tasks, sorted; "." alone: the folder is itself a task
}

// findHarbor lists the tasks of a folder: itself, or the folders in it that
// look like one.
func findHarbor(given string, fsys fs.FS) ([]part, error) {
	h := harbor{path: given, fsys: fsys}
	if isFile(fsys, taskFile) {
		h.folders = []string{"."}
		return []part{h}, nil
	}
	entries, err := fs.ReadDir(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such folder", given)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the tasks of %s: %w", given, err)
	}
	for _, e := range entries {
		if isFile(fsys, path.Join(e.Name(), taskFile)) || isFile(fsys, path.Join(e.Name(), instructionFile)) {
			h.folders = append(h.folders, e.Name())
		}
	}
	if len(h.folders) == 0 {
		return nil, fmt.Errorf("%s: it is not a Harbor task and holds none: there is no %s", given, taskFile)
	}
	return []part{h}, nil
}

// harborTasks tells whether the parts are folders of tasks.
func harborTasks(parts []part) bool {
	_, ok := parts[0].(harbor)
	return ok
}

func (h harbor) check() (empty bool, err error) { return false, nil }

func (h harbor) read(p *pass) (File, error) {
	for _, name := range h.folders {
		if err := h.readTask(p, name); err != nil {
			return File{}, err
		}
	}
	return h.fingerprint()
}

// readTask reads one task's folder. What a task's files are at fault with is
// the row's error; that this machine cannot run it is none.
func (h harbor) readTask(p *pass, name string) error {
	folder, err := fs.Sub(h.fsys, name)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path.Join(h.path, name), err)
	}
	f := taskFolder{Source: p.Source, fsys: folder, shown: path.Join(h.path, name)}
	t, why, err := f.task()
	at, bad := errors.AsType[RowError](err)
	switch {
	case err != nil && !bad:
		return err
	case bad:
		return p.row(t, errors.New(at.Reason), at)
	case why != "" && p.full():
		return nil
	case why != "":
		p.skipped = append(p.skipped, Skip{Task: t.ID, Reason: why})
		return nil
	}
	return p.row(t, nil, RowError{File: f.at(taskFile)})
}

// taskFolder is one task's folder being read.
type taskFolder struct {
	*Source
	fsys  fs.FS
	shown string // its path in messages
}

func (f taskFolder) at(name string) string { return path.Join(f.shown, name) }

// task makes a task of the folder; why tells what keeps this machine from
// running it.
func (f taskFolder) task() (t dataset.Task, why string, err error) {
	text, err := f.text(taskFile)
	if err != nil {
		return t, "", err
	}
	doc, err := parseHarbor([]byte(text))
	if err != nil {
		at, _ := errors.AsType[RowError](err)
		at.File = f.at(taskFile)
		return t, "", at
	}
	row, err := f.row(doc)
	if err != nil {
		return t, "", err
	}
	t, rest, err := f.fromRow(row)
	if err != nil {
		return t, "", RowError{File: f.at(taskFile), Reason: err.Error()}
	}
	params := doc.params()
	params.Metadata = rest
	if t.Params, err = encodeParams(params); err != nil {
		return t, "", RowError{File: f.at(taskFile), Reason: err.Error()}
	}
	t.Files = f.fsys
	return t, f.unable(doc), nil
}

// row is the task as columns.
func (f taskFolder) row(doc *harborTask) (map[string]any, error) {
	instruction, err := f.text(instructionFile)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(instruction) == "" {
		return nil, RowError{File: f.at(instructionFile), Reason: "the instruction is empty"}
	}
	if !isFile(f.fsys, testFile) && len(doc.Steps) == 0 {
		return nil, RowError{File: f.at(testFile), Reason: "no such file; without it nothing can verify the task"}
	}
	target := ""
	if isFile(f.fsys, solutionFile) {
		if target, err = f.text(solutionFile); err != nil {
			return nil, err
		}
	}
	row := map[string]any{}
	for key, value := range doc.Metadata {
		row[key] = plain(value)
	}
	if doc.Task.Description != "" {
		row["description"] = doc.Task.Description
	}
	if len(doc.Task.Keywords) > 0 {
		row["keywords"] = plain(doc.Task.Keywords)
	}
	row[ID] = cmp.Or(doc.Task.Name, path.Base(f.shown))
	row[Input], row[Target] = instruction, target
	return row, nil
}

// maxText bounds the files of a task that are read as text, in bytes.
const maxText = 4 << 20

func (f taskFolder) text(name string) (string, error) {
	file, err := f.fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", RowError{File: f.at(name), Reason: "no such file"}
	}
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", f.at(name), err)
	}
	defer func() { _ = file.Close() }() // read only
	data, err := io.ReadAll(io.LimitReader(file, maxText+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", f.at(name), err)
	case len(data) > maxText:
		return "", RowError{File: f.at(name), Reason: fmt.Sprintf("larger than %d bytes", maxText)}
	case !utf8.Valid(data):
		return "", RowError{File: f.at(name), Reason: "not text in UTF-8"}
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n"), nil
}

// plain is a TOML value as JSON would have it, with numbers as they are in
// other rows.
func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case []string:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = e
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, e := range v {
			object[key] = plain(e)
		}
		return object
	}
	return fmt.Sprint(v) // dates and times
}

// fingerprint sums up all files of all tasks: names, contents, links and
// whether they can be executed.
func (h harbor) fingerprint() (File, error) {
	sum := &treeSum{fsys: h.fsys, hash: sha256.New()}
	for _, folder := range h.folders {
		if err := fs.WalkDir(h.fsys, folder, sum.add); err != nil {
			return File{}, fmt.Errorf("reading the tasks of %s: %w", h.path, err)
		}
	}
	return File{Path: h.path, Bytes: sum.bytes, SHA256: hex.EncodeToString(sum.hash.Sum(nil))}, nil
}

type treeSum struct {
	fsys  fs.FS
	hash  hash.Hash
	bytes int64
}

// note hashes what is told of a file; a hash takes everything.
func (s *treeSum) note(format string, args ...any) { _, _ = fmt.Fprintf(s.hash, format, args...) }

func (s *treeSum) add(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	info, err := fs.Lstat(s.fsys, name)
	if err != nil {
		return err
	}
	size := int64(0)
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	s.note("%q %s %t %d\n", name, entry.Type(), info.Mode().IsRegular() && info.Mode()&0o100 != 0, size)
	switch {
	case entry.Type() == fs.ModeSymlink:
		target, err := fs.ReadLink(s.fsys, name)
		s.note("%q\n", target)
		return err
	case !info.Mode().IsRegular():
		return nil
	}
	file, err := s.fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	n, err := io.Copy(s.hash, file)
	s.bytes += n
	return err
}
