package sandbox_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

// headers lists the entries of a tree.
func headers(t *testing.T, tree []byte) []tar.Header {
	t.Helper()
	var list []tar.Header
	r := tar.NewReader(bytes.NewReader(tree))
	for {
		head, err := r.Next()
		if err != nil {
			return list
		}
		list = append(list, tar.Header{
			Typeflag: head.Typeflag, Name: head.Name, Linkname: head.Linkname, Size: head.Size,
			Mode: head.Mode, ModTime: head.ModTime, Uid: head.Uid, Uname: head.Uname,
		})
	}
}

func TestPack(t *testing.T) {
	then := time.Unix(1_000_000_000, 123_000_000)
	fsys := fstest.MapFS{
		"a/z":     {Data: []byte("zz"), Mode: 0o600, ModTime: then},
		"a/b/c":   {Data: []byte("embedded"), Mode: 0o444},
		"a/link":  {Data: []byte("../.."), Mode: fs.ModeSymlink | 0o777, ModTime: then},
		"a/fifo":  {Mode: fs.ModeNamedPipe | 0o644, ModTime: then},
		"a/setid": {Mode: fs.ModeSetuid | 0o755, ModTime: then},
		"b":       {Data: []byte("not asked for")},
	}
	var tree, again, one bytes.Buffer
	if err := errors.Join(sandbox.Pack(&tree, fsys, "a"), sandbox.Pack(&again, fsys, "a"), sandbox.Pack(&one, fsys, "a/z")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(tree.Bytes(), again.Bytes()) {
		t.Error("the same tree packs differently")
	}
	got := headers(t, tree.Bytes())
	for i := range got {
		if got[i].ModTime.Year() < 1971 {
			got[i].ModTime = time.Time{}
		}
	}
	want := []tar.Header{
		{Typeflag: tar.TypeDir, Name: "b/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "b/c", Size: 8, Mode: 0o644},
		{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "../..", Mode: 0o777, ModTime: then},
		{Typeflag: tar.TypeReg, Name: "setid", Mode: 0o755, ModTime: then},
		{Typeflag: tar.TypeReg, Name: "z", Size: 2, Mode: 0o600, ModTime: then},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]tar.Header{want[4]}, headers(t, one.Bytes())); diff != "" {
		t.Errorf("a file alone (-want +got):\n%s", diff)
	}
	if err := sandbox.Pack(&one, fsys, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("packing what is not there: %v", err)
	}
}

// fickle cuts files down to a byte when they are opened.
type fickle struct{ dir string }

func (f fickle) Open(name string) (fs.File, error) {
	file := filepath.Join(f.dir, name)
	if info, err := os.Stat(file); err == nil && !info.IsDir() {
		if err := os.Truncate(file, 1); err != nil {
			return nil, err
		}
	}
	return os.Open(file)
}

func (f fickle) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(filepath.Join(f.dir, name)) }

func (f fickle) ReadLink(name string) (string, error) { return os.Readlink(filepath.Join(f.dir, name)) }

// TestPackShrinkingFile sees that a file that changes meanwhile does not spoil
// the tree.
func TestPackShrinkingFile(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	var tree bytes.Buffer
	if err := errors.Join(sandbox.Pack(&tree, fickle{dir}, "."), sandbox.Unpack(out, &tree, 0)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(out, "f"))
	if err != nil || string(got) != "a\x00\x00" {
		t.Errorf("a file that shrank came as %q, error %v", got, err)
	}
}

func TestUnpack(t *testing.T) {
	reg := func(name, content string) entry {
		return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}, content}
	}
	link := func(name, to string) entry {
		return entry{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
	}
	for _, c := range []struct {
		name    string
		entries []entry
		limit   int64
		ok      bool
		file    string // and what is then in it
		content string
	}{
		{name: "plain", entries: []entry{reg("a/b/c", "x")}, ok: true, file: "a/b/c", content: "x"},
		{name: "dots", entries: []entry{{tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, ""}, reg("./a", "x")}, ok: true, file: "a", content: "x"},
		{name: "dots that stay inside", entries: []entry{reg("a/../b", "x")}, ok: true, file: "b", content: "x"},
		{name: "twice", entries: []entry{reg("a", "x"), reg("a", "y")}, ok: true, file: "a", content: "y"},
		{name: "over a link to itself", entries: []entry{link("a", "a"), reg("a", "y")}, ok: true, file: "a", content: "y"},
		{name: "closed directory", entries: []entry{{tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o555}, ""}, reg("d/a", "x")}, ok: true, file: "d/a", content: "x"},
		{name: "link inside", entries: []entry{reg("d/a", "x"), link("way", "d"), reg("way/b", "y")}, ok: true, file: "d/b", content: "y"},
		{name: "within the limit", entries: []entry{reg("a", "12345"), reg("b", "67890")}, limit: 10, ok: true, file: "b", content: "67890"},
		{name: "beyond the limit", entries: []entry{reg("a", "12345"), reg("b", "67890")}, limit: 9},
		{name: "parent", entries: []entry{reg("../a", "x")}},
		{name: "parent in the middle", entries: []entry{reg("a/../../b", "x")}},
		{name: "absolute", entries: []entry{reg("/a", "x")}},
		{name: "through a link", entries: []entry{link("way", ".."), reg("way/a", "x")}},
		{name: "through an absolute link", entries: []entry{link("way", "/tmp"), reg("way/a", "x")}},
		{name: "through two links", entries: []entry{link("one", "two"), link("two", ".."), reg("one/a", "x")}},
		{name: "file in the way of a directory", entries: []entry{reg("a", "x"), reg("a/b", "y")}},
		{name: "directory in the way of a file", entries: []entry{reg("a/b", "x"), reg("a", "y")}},
		{name: "hard link", entries: []entry{{tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""}}},
		{name: "device", entries: []entry{{tar.Header{Name: "a", Typeflag: tar.TypeBlock}, ""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outside := t.TempDir()
			dir := filepath.Join(outside, "inside")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			err := sandbox.Unpack(dir, bytes.NewReader(pack(t, c.entries)), c.limit)
			if tooLarge := c.limit > 0 && !c.ok; (err == nil) != c.ok || tooLarge != errors.Is(err, sandbox.ErrTooLarge) {
				t.Errorf("error %v", err)
			}
			onlyInside(t, outside)
			if !c.ok {
				return
			}
			got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(c.file)))
			if err != nil || string(got) != c.content {
				t.Errorf("%s holds %q, error %v; want %q", c.file, got, err, c.content)
			}
		})
	}
	if err := sandbox.Unpack(t.TempDir(), bytes.NewReader([]byte("no tar at all, but long enough to be taken for one or not")), 0); err == nil {
		t.Error("what is no tar was unpacked")
	}
}

// onlyInside sees that nothing has come to lie beside the tree.
func onlyInside(t *testing.T, outside string) {
	t.Helper()
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside there is %v, error %v", left, err)
	}
}

type entry struct {
	head    tar.Header
	content string
}

func pack(t *testing.T, entries []entry) []byte {
	t.Helper()
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	for _, e := range entries {
		if err := w.WriteHeader(&e.head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return tree.Bytes()
}

func FuzzUnpack(f *testing.F) {
	var tree bytes.Buffer
	if err := sandbox.Pack(&tree, fstest.MapFS{"a/b": {Data: []byte("x")}, "l": {Data: []byte("/"), Mode: fs.ModeSymlink}}, "."); err != nil {
		f.Fatal(err)
	}
	f.Add(tree.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		outside := t.TempDir()
		dir := filepath.Join(outside, "inside")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = sandbox.Unpack(dir, bytes.NewReader(data), 1<<20) // whatever it is, it stays inside
		onlyInside(t, outside)
	})
}
