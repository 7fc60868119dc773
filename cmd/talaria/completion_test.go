package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

func TestComplete(t *testing.T) {
	root := testRoot()
	run := root.Subcommands[0]
	run.Flags = append(run.Flags, choiceFlag("format", "", "table", "json"))
	root.Subcommands = append(root.Subcommands, &cli.Command{Name: "secret", Hidden: true}, &cli.Command{Name: "completion", ArgsUsage: "bash|zsh"})
	tests := []struct {
		name  string
		words []string
		want  []string
	}{
		{"commands", []string{""}, []string{"run", "query", "lab", "completion"}},
		{"prefix", []string{"r"}, []string{"run"}},
		{"subcommands", []string{"lab", ""}, []string{"serve"}},
		{"flags", []string{"run", "--"}, []string{"--model", "--set", "--resume", "--format", "--quiet", "--help"}},
		{"flag prefix after an argument", []string{"run", "c.yaml", "--mo"}, []string{"--model"}},
		{"words of a flag", []string{"run", "--format", "t"}, []string{"table"}},
		{"any value", []string{"run", "--model", ""}, nil},
		{"file", []string{"run", ""}, nil},
		{"behind a flag's value", []string{"run", "--model", "a", "--re"}, []string{"--resume"}},
		{"words of an argument", []string{"completion", ""}, []string{"bash", "zsh"}},
		{"behind the last argument", []string{"completion", "bash", ""}, nil},
		{"behind dashes", []string{"run", "--", "--m"}, nil},
		{"nothing", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := complete(&out, root, tt.words); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				got = append(got, word)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

// The scripts work in the shells themselves.
func TestCompletionScripts(t *testing.T) {
	tests := []struct {
		shell  string
		script string
		want   []string
	}{
		{
			"bash", `source <(talaria completion bash)
			COMP_WORDS=(talaria vers) COMP_CWORD=1; _talaria; printf '%s\n' "${COMPREPLY[@]}"
			COMP_WORDS=(talaria version --format ''); COMP_CWORD=3; _talaria; printf '%s\n' "${COMPREPLY[@]}"
			COMP_WORDS=(talaria version --fo); COMP_CWORD=2; _talaria; printf '%s\n' "${COMPREPLY[@]}"`,
			[]string{"version", "text", "json", "--format"},
		},
		{
			"fish", `talaria completion fish | source
			complete -C 'talaria vers' | cut -f 1
			complete -C 'talaria version --format ' | cut -f 1
			complete -C 'talaria version --fo' | cut -f 1`,
			[]string{"version", "json", "text", "--format"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.shell, func(t *testing.T) {
			if _, err := exec.LookPath(tt.shell); err != nil {
				t.Skipf("%s is not installed", tt.shell)
			}
			out, err := exec.CommandContext(t.Context(), tt.shell, "-c", tt.script).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if diff := cmp.Diff(tt.want, strings.Fields(string(out))); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}
