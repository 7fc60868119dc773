package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

// testRoot has a command with arguments, one with repeated ones, and a group.
func testRoot() *cli.Command {
	return &cli.Command{
		Name:  "talaria",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}}, &cli.BoolFlag{Name: helpFlag, Aliases: []string{"h"}}},
		Subcommands: []*cli.Command{
			{Name: "run", ArgsUsage: "CONFIG", Flags: []cli.Flag{
				&cli.StringFlag{Name: "model", Aliases: []string{"m"}},
				&cli.StringSliceFlag{Name: "set"},
				&cli.BoolFlag{Name: "resume"},
			}},
			{Name: "query", ArgsUsage: "RUN... [SQL]"},
			{Name: "lab", Subcommands: []*cli.Command{{Name: "serve", Flags: []cli.Flag{&cli.StringFlag{Name: "addr"}}}}},
		},
	}
}

func TestArrange(t *testing.T) {
	tests := []struct {
		name string
		line string
		want string // what urfave/cli parses
	}{
		{"flags before", "run -m a --resume c.yaml", "run -m=a --resume -- c.yaml"},
		{"flags after", "run c.yaml -m a --resume", "run -m=a --resume -- c.yaml"},
		{"flags around", "run --resume c.yaml --model=a", "run --resume --model=a -- c.yaml"},
		{"global flag after", "run c.yaml -q", "-q run -- c.yaml"},
		{"global flag first", "--quiet run c.yaml", "--quiet run -- c.yaml"},
		{"one dash", "run -model a c.yaml", "run --model=a -- c.yaml"},
		{"value with dash", "run --model -1 c.yaml", "run --model=-1 -- c.yaml"},
		{"value with comma and equals", "run c.yaml --set a=b,c=d --set e=f", "run --set=a=b,c=d --set=e=f -- c.yaml"},
		{"dashes end flags", "run -m a -- --resume", "run -m=a -- --resume"},
		{"bool with value", "run --resume=false c.yaml", "run --resume=false -- c.yaml"},
		{"stdin", "run -", "run -- -"},
		{"group", "lab --quiet serve --addr :1", "--quiet lab serve --addr=:1 --"},
		{"repeated", "query a b c", "query -- a b c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line, err := arrange(testRoot(), strings.Fields(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Fields(tt.want), line.args()); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArrangeFails(t *testing.T) {
	tests := []struct {
		line    string
		command string
		want    string
	}{
		{"", "talaria", "no command given; want one of run, query, lab"},
		{"rnu", "talaria", `unknown command "rnu"; did you mean run?`},
		{"lab", "talaria lab", "no command given; want one of serve"},
		{"lab srve", "talaria lab", `unknown command "srve"; did you mean serve?`},
		{"run", "talaria run", "argument CONFIG is missing"},
		{"query", "talaria query", "argument RUN... is missing"},
		{"run a b", "talaria run", `surplus argument "b"`},
		{"run a --moddel x", "talaria run", "unknown flag --moddel; did you mean --model?"},
		{"--model x run a", "talaria", "unknown flag --model"},
		{"run a --model", "talaria run", "flag --model needs a value"},
		{"run --model --resume a", "talaria run", "flag --model needs a value"},
		{"run a -x", "talaria run", "unknown flag -x; did you mean -h?"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			_, err := arrange(testRoot(), strings.Fields(tt.line))
			usage, ok := errors.AsType[*usageError](err)
			if !ok {
				t.Fatalf("got error %v, want a usage error", err)
			}
			if diff := cmp.Diff([]string{tt.command, tt.want}, []string{usage.command, usage.Error()}); diff != "" {
				t.Errorf("command and error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArrangeHelp(t *testing.T) {
	for _, line := range []string{"run --help", "--help run", "run -h a b c", "help run", "run a --model x -help"} {
		got, err := arrange(testRoot(), strings.Fields(line))
		if err != nil || !got.help || got.command().Name != "run" {
			t.Errorf("%q: got help %v of %s, error %v; want help of run", line, got.help, got.command().Name, err)
		}
	}
}
