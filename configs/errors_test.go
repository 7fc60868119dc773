package configs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func TestErrors(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 70 {
		t.Fatalf("%d bad configs, want at least 70", len(files))
	}
	var report strings.Builder
	for _, f := range files {
		_, err := Load(f, Options{})
		if err == nil {
			t.Errorf("%s gives no error", f)
			continue
		}
		message := strings.ReplaceAll(err.Error(), wd+string(filepath.Separator), "")
		if strings.Contains(message, "sk-") {
			t.Errorf("%s: the error repeats a secret: %s", f, message)
		}
		report.WriteString(message + "\n\n")
	}
	golden(t, "bad.golden", strings.ReplaceAll(report.String(), "testdata/bad/", ""))
}
