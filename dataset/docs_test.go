package dataset_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talaria-run/talaria/dataset"
)

// TestOutcomePage wants docs/recording.md to list every exit reason with its
// outcome, every outcome and every flag.
func TestOutcomePage(t *testing.T) {
	text, err := os.ReadFile("../docs/recording.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	want := map[string][]string{}
	for _, value := range constants(t, "ExitReason") {
		r := dataset.ExitReason(value)
		truncated := ""
		if r.Truncated() {
			truncated = "yes"
		}
		want[value] = []string{string(r.Outcome()), truncated}
	}
	got := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `([a-z]+)` \\| ?(yes|) ?\\| .+ \\|$")
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		got[m[1]] = m[2:]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/recording.md: exit reasons (-code +page):\n%s", diff)
	}
	outcome := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| [^|`]+ \\| (?:scored|null) \\| .+ \\|$")
	if diff := cmp.Diff(sorted(constants(t, "Outcome")), firsts(outcome, page)); diff != "" {
		t.Errorf("docs/recording.md: outcomes (-code +page):\n%s", diff)
	}
	flag := regexp.MustCompile("(?s)\n\\| flag \\| meaning \\|\n(.*?)\n\n").FindString(page)
	if diff := cmp.Diff(sorted(constants(t, "Flag")), firsts(regexp.MustCompile("(?m)^\\| `([a-z_]+)` "), flag)); diff != "" {
		t.Errorf("docs/recording.md: flags (-code +page):\n%s", diff)
	}
}

// constants are the values of the constants in outcome.go of a type, or, where
// they have none, with a name that begins so.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !is(spec, typ) {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		return true
	})
	if len(values) == 0 {
		t.Fatalf("outcome.go has no constant of %s", typ)
	}
	return values
}

func is(spec *ast.ValueSpec, typ string) bool {
	if ident, ok := spec.Type.(*ast.Ident); ok {
		return ident.Name == typ
	}
	return spec.Type == nil && len(spec.Names[0].Name) > len(typ) && spec.Names[0].Name[:len(typ)] == typ
}

func firsts(re *regexp.Regexp, text string) []string {
	matches := re.FindAllStringSubmatch(text, -1)
	all := make([]string, len(matches))
	for i, m := range matches {
		all[i] = m[1]
	}
	return sorted(all)
}

func sorted(values []string) []string {
	slices.Sort(values)
	return values
}
