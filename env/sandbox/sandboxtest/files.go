package sandboxtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/env/sandbox"
)

// runFiles is about files and trees.
func runFiles(t *testing.T, b sandbox.Backend) {
	t.Helper()
	box := start(t, b, sandbox.Spec{})
	t.Run("write and read", func(t *testing.T) { testReadWrite(t, box) })
	t.Run("what cannot be read or written", func(t *testing.T) { testFileErrors(t, box) })
	t.Run("trees", func(t *testing.T) { testTrees(t, box) })
	t.Run("trees that lead outside", func(t *testing.T) { testEscapes(t, box) })
	t.Run("taker fails", func(t *testing.T) { testTakerFails(t, box) })
}

func testReadWrite(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	content := bytes.Repeat([]byte("0123456789\x00\xff"), 100_000)
	if err := box.WriteFile(t.Context(), "deep/down/file", content, 0o750); err != nil {
		t.Fatal(err)
	}
	if got, want := must(t, box, "cd deep; wc -c < down/file | tr -d ' '; test -x down/file"), "1200000\n"; got != want {
		t.Errorf("the sandbox sees %q, want %q", got, want)
	}
	got, err := box.ReadFile(t.Context(), "down/file", 0, 0) // relative to where the last command ended
	if err != nil || !bytes.Equal(got.Data, content) {
		t.Errorf("read %d of %d bytes, error %v", len(got.Data), len(content), err)
	}
	part, err := box.ReadFile(t.Context(), box.Info().Workdir+"/deep/down/file", 1_199_995, 100)
	want := sandbox.File{Data: []byte("789\x00\xff"), Size: 1_200_000, Mode: 0o750, ModTime: got.ModTime}
	if diff := cmp.Diff(want, part); err != nil || diff != "" {
		t.Errorf("reading a part, error %v (-want +got):\n%s", err, diff)
	}
	if err := box.WriteFile(t.Context(), "down/file", []byte("short"), 0); err != nil {
		t.Error(err)
	}
	if got, err := box.ReadFile(t.Context(), "down/file", 0, 0); err != nil || string(got.Data) != "short" || got.Mode != 0o750 {
		t.Errorf("read %q with mode %v, error %v", got.Data, got.Mode, err)
	}
	must(t, box, "cd ..")
}

func testFileErrors(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	must(t, box, "mkdir -p dir && mkfifo fifo && echo x > secret && chmod 0 secret && mkdir -p locked && chmod 0500 locked")
	read := func(name string) error { _, err := box.ReadFile(t.Context(), name, 0, 0); return err }
	write := func(name string) error { return box.WriteFile(t.Context(), name, []byte("x"), 0) }
	for _, c := range []struct {
		name string
		do   func(string) error
		want error // nil: any *fs.PathError
	}{
		{"missing", read, fs.ErrNotExist},
		{"secret", read, fs.ErrPermission},
		{"dir", read, syscall.EISDIR},
		{"fifo", read, nil},
		{"secret/below", read, nil},
		{"dir", write, syscall.EISDIR},
		{"locked/file", write, fs.ErrPermission},
		{"fifo", write, nil}, // nobody reads it
		{"missing", func(name string) error { return box.Download(t.Context(), name, &bytes.Buffer{}) }, fs.ErrNotExist},
		{"secret", func(name string) error { return box.Upload(t.Context(), name, &bytes.Buffer{}) }, nil},
	} {
		err := c.do(c.name)
		if _, ok := errors.AsType[*fs.PathError](err); !ok || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want an fs.PathError with %v", c.name, err, c.want)
		}
	}
}

func testTrees(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	from := fstest.MapFS{
		"a/run.sh":     {Data: []byte("#!/bin/sh\necho ran\n"), Mode: 0o755},
		"a/b/data":     {Data: bytes.Repeat([]byte("x"), 1<<20), Mode: 0o640},
		"a/link":       {Data: []byte("b/data"), Mode: fs.ModeSymlink | 0o777},
		"a/dangling":   {Data: []byte("/no/where"), Mode: fs.ModeSymlink | 0o777},
		"a/empty":      {Mode: fs.ModeDir | 0o755},
		"a/read-only":  {Data: []byte("r"), Mode: 0o444},
		"a/ünïcode x ": {Data: []byte("u"), Mode: 0o644},
	}
	var tree bytes.Buffer
	if err := sandbox.Pack(&tree, from, "a"); err != nil {
		t.Fatal(err)
	}
	first := bytes.Clone(tree.Bytes())
	if err := box.Upload(t.Context(), "tree", &tree); err != nil {
		t.Fatal(err)
	}
	if err := box.Upload(t.Context(), "tree", bytes.NewReader(first)); err != nil {
		t.Fatalf("uploading over what is there: %v", err)
	}
	script("cd tree && ./run.sh && wc -c < link | tr -d ' ' && test -d empty && cd ..", "ran\n1048576\n").check(t, box)
	var back bytes.Buffer
	if err := box.Download(t.Context(), "tree", &back); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := sandbox.Unpack(dir, &back, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listing(t, mapped(from)), listing(t, os.DirFS(dir))); diff != "" {
		t.Errorf("what came back (-want +got):\n%s", diff)
	}
	var one bytes.Buffer
	if err := box.Download(t.Context(), "tree/run.sh", &one); err != nil {
		t.Fatal(err)
	}
	head, err := tar.NewReader(&one).Next()
	if err != nil || head.Name != "run.sh" || head.Mode != 0o755 {
		t.Errorf("a file alone came as %+v, error %v", head, err)
	}
}

// mapped is what a should look like from inside.
func mapped(from fstest.MapFS) fs.FS {
	below := fstest.MapFS{}
	for name, file := range from {
		copied := *file
		if file.ModTime.IsZero() && file.Mode.IsRegular() {
			copied.Mode |= 0o200
		}
		below[strings.TrimPrefix(name, "a/")] = &copied
	}
	return below
}

// listing is a tree as text, one line for each entry.
func listing(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	var lines []string
	err := fs.WalkDir(fsys, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := fs.Lstat(fsys, name)
		if err != nil {
			return err
		}
		line := info.Mode().Type().String() + " " + name
		switch {
		case info.Mode().IsRegular():
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				return err
			}
			line += " " + info.Mode().String() + " " + string(data[:min(9, len(data))])
		case !info.IsDir():
			target, err := fs.ReadLink(fsys, name)
			if err != nil {
				return err
			}
			line += " -> " + target
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func testEscapes(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	must(t, box, "mkdir -p outside victim && echo untouched > outside/file")
	for _, c := range []struct {
		name    string
		entries []tar.Header
	}{
		{"parent", []tar.Header{{Name: "../outside/file", Typeflag: tar.TypeReg, Mode: 0o644}}},
		{"absolute", []tar.Header{{Name: box.Info().Workdir + "/outside/file", Typeflag: tar.TypeReg, Mode: 0o644}}},
		{"through a link", []tar.Header{
			{Name: "way", Typeflag: tar.TypeSymlink, Linkname: "../outside"},
			{Name: "way/file", Typeflag: tar.TypeReg, Mode: 0o644},
		}},
		{"device", []tar.Header{{Name: "zero", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5}}},
		{"hard link", []tar.Header{{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../outside/file"}}},
	} {
		var tree bytes.Buffer
		w := tar.NewWriter(&tree)
		for i := range c.entries {
			if err := w.WriteHeader(&c.entries[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), box.Upload(t.Context(), "victim", &tree)); err == nil {
			t.Errorf("%s: the tree was accepted", c.name)
		}
	}
	script("cat outside/file; ls outside", "untouched\nfile\n").check(t, box)
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	// A link in the way of a file is replaced, not followed.
	for _, head := range []tar.Header{
		{Name: "file", Typeflag: tar.TypeSymlink, Linkname: "../outside/file"}, {Name: "file", Typeflag: tar.TypeReg, Mode: 0o644},
	} {
		if err := w.WriteHeader(&head); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), box.Upload(t.Context(), "victim", &tree)); err != nil {
		t.Error(err)
	}
	script("cat outside/file; test ! -L victim/file", "untouched\n").check(t, box)
}

type broken struct{}

var errBroken = errors.New("the disk is full here")

func (broken) Write([]byte) (int, error) { return 0, errBroken }
func (broken) Read([]byte) (int, error)  { return 0, errBroken }

// testTakerFails sees that the harness's own failures come back as they are, and
// harm nothing else.
func testTakerFails(t *testing.T, box sandbox.Sandbox) {
	t.Helper()
	must(t, box, "head -c 10000000 /dev/zero > big")
	if err := box.Download(t.Context(), "big", broken{}); !errors.Is(err, errBroken) {
		t.Errorf("Download returned %v, want %v", err, errBroken)
	}
	if err := box.Upload(t.Context(), "up", broken{}); !errors.Is(err, errBroken) {
		t.Errorf("Upload returned %v, want %v", err, errBroken)
	}
	script("echo fine", "fine\n").check(t, box)
	if _, err := os.Stat(filepath.Join(box.Info().Workdir, "big")); box.Info().Root == "" && err == nil {
		t.Error("the sandbox's file is one of the host")
	}
}
