package configs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Any text is either a config or refused with an error that names the file;
// what is accepted survives being resolved.
func FuzzParse(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data, "samples=2")
	}
	f.Add([]byte(full), "tasks.0.limit=3")
	f.Add([]byte(minimal), "sweep={env.x: [1, 2]}")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		r, err := Parse("fuzz.yaml", data, Options{Dir: "testdata", Set: []string{set}})
		if err != nil {
			checkPlaces(t, err)
			return
		}
		if _, err := r.Variants(); err != nil {
			t.Fatalf("accepted, but its variants are not: %v", err)
		}
		once := resolved(t, r)
		again := fromResolved(t, once, Options{})
		if twice := resolved(t, again); !bytes.Equal(once, twice) {
			t.Fatalf("resolved twice:\n%s\nwant\n%s", twice, once)
		}
		if r.ConfigHash() != again.ConfigHash() || r.VariantHash(0) != again.VariantHash(0) {
			t.Fatal("hashes change when resolved")
		}
	})
}

func seeds(f *testing.F) [][]byte {
	f.Helper()
	var seeds [][]byte
	for _, pattern := range []string{"*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			seeds = append(seeds, data)
		}
	}
	return seeds
}

func checkPlaces(t *testing.T, err error) {
	t.Helper()
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, "fuzz.yaml") && !strings.HasPrefix(line, "--set: ") {
			t.Fatalf("error without place: %s", line)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("{a} {{b}} {")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text)
		if err != nil {
			return
		}
		var b strings.Builder
		escape := strings.NewReplacer("{", "{{", "}", "}}")
		for _, p := range parsed {
			b.WriteString(escape.Replace(p.text))
			if p.column != "" {
				b.WriteString("{" + p.column + "}")
			}
		}
		if b.String() != text {
			t.Fatalf("%q is read as %q", text, b.String())
		}
	})
}
