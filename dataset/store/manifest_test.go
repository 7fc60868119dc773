package store

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testManifest(tb testing.TB, n int) (text []byte, parts []Part) {
	tb.Helper()
	for i := range n {
		p := Part{
			Part: i, Segment: i, CommittedAt: time.Date(2026, 8, 1, 0, 0, i, 0, time.UTC),
			Files: []PartFile{{Table: tAttempts, Name: "attempts/" + partName(i), Rows: 3, Bytes: 99, SHA256: "ab"}},
		}
		b, err := encodePart(p)
		if err != nil {
			tb.Fatal(err)
		}
		text, parts = append(text, b...), append(parts, p)
	}
	return text, parts
}

func TestParseManifest(t *testing.T) {
	text, parts := testManifest(t, 3)
	lines := bytes.SplitAfter(text, []byte("\n"))
	first, last := len(lines[0]), len(text)-len(lines[2])
	flipped := func(at int) []byte {
		b := bytes.Clone(text)
		b[at] ^= 1
		return b
	}
	tests := []struct {
		name  string
		in    []byte
		parts []Part
		torn  bool
		err   string
	}{
		{"whole", text, parts, false, ""},
		{"empty", nil, nil, false, ""},
		{"torn last line", text[:len(text)-20], parts[:2], true, ""},
		{"last line without its end", text[:len(text)-1], parts[:2], true, ""},
		{"last line flipped", flipped(last + 12), parts[:2], true, ""},
		{"last line of zeros", append(bytes.Clone(text[:last]), make([]byte, 100)...), parts[:2], true, ""},
		{"earlier line flipped", flipped(first + 12), nil, false, "line 2: wrong checksum"},
		{"earlier line cut", append(bytes.Clone(text[:first-9]), text[first:]...), nil, false, "line 1: "},
		{"line twice", append(bytes.Clone(text), lines[2]...), nil, false, "line 4: its segment 2 comes again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := parseManifest(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error = %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.parts, m.parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if m.torn != tt.torn {
				t.Errorf("torn = %t, want %t", m.torn, tt.torn)
			}
		})
	}
}

// TestAppendPartMendsATornLine appends after a try that left half a line.
func TestAppendPartMendsATornLine(t *testing.T) {
	text, parts := testManifest(t, 2)
	fsys := newMemFS()
	if err := fsys.Mkdir("/r"); err != nil {
		t.Fatal(err)
	}
	size := int64(bytes.IndexByte(text, '\n') + 1)
	if err := writeSynced(fsys, filepath.Join("/r", manifestFile), text[:size+40]); err != nil {
		t.Fatal(err)
	}
	if _, err := appendPart(fsys, "/r", size, parts[1]); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(fsys, "/r")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parts, m.parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// FuzzManifest makes sure that a manifest that was cut or in which a byte was
// flipped gives either a prefix of its parts or an error, and never a part that
// was not written.
func FuzzManifest(f *testing.F) {
	f.Add(uint16(100), uint16(300), byte(1))
	f.Add(uint16(3), uint16(9999), byte('\n'^'{'))
	f.Add(uint16(500), uint16(430), byte(0))
	text, parts := testManifest(f, 4)
	f.Fuzz(func(t *testing.T, flip, cut uint16, mask byte) {
		b := bytes.Clone(text)
		b[int(flip)%len(b)] ^= mask
		b = b[:int(cut)%(len(b)+1)]
		m, err := parseManifest(b)
		if len(m.parts) > len(parts) || !cmp.Equal(parts[:len(m.parts)], m.parts) && len(m.parts) > 0 {
			t.Errorf("parts = %+v, want a prefix of what was written", m.parts)
		}
		if err == nil && mask == 0 && len(m.parts) != bytes.Count(b, []byte("\n")) {
			t.Errorf("%d parts of %d whole lines", len(m.parts), bytes.Count(b, []byte("\n")))
		}
	})
}

// TestManifestDamageNamesTheFile opens a run whose manifest has a bad earlier
// line.
func TestManifestDamageNamesTheFile(t *testing.T) {
	fsys := newMemFS()
	s := mustCreate(t, crashDir, Options{FS: fsys, PartRows: 1})
	for i := range 3 {
		mustWrite(t, s, sampleTrajectory(i, false))
	}
	mustClose(t, s)
	path := filepath.Join(crashDir, manifestFile)
	n, err := fsys.find(path)
	if err != nil {
		t.Fatal(err)
	}
	n.data[20] ^= 1
	before := bytes.Clone(n.data)
	_, err = Open(crashDir, Options{FS: fsys})
	damage := new(DamageError)
	if !errors.As(err, &damage) || damage.Path != path || damage.Advice == "" {
		t.Fatalf("error = %v, want a DamageError that names %s and says what to do", err, path)
	}
	if n, _ := fsys.find(path); !bytes.Equal(n.data, before) {
		t.Error("the manifest was changed")
	}
}
